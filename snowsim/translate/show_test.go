package translate

import (
	"strings"
	"testing"
)

func TestLike(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{{"a%", "ABC", true}, {"_b_", "abc", true}, {"a", "ab", false}, {`a\_c`, "abc", false}, {`a\_c`, "A_C", true},
		{"%%", "", true}, {"", "", true}, {"", "x", false},
		{strings.Repeat("%a", 200), strings.Repeat("a", 199), false}} {
		if got := like(c.pattern, c.s); got != c.want {
			t.Errorf("%q LIKE %q is %v", c.s, c.pattern, got)
		}
	}
}
