package engine

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestQueryIDIsItsUUID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q QueryID
		copy(q[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes"))
		s := q.String()
		for _, form := range []string{s, strings.ToUpper(s)} {
			if back, err := ParseQueryID(form); err != nil || back != q {
				t.Fatalf("%q is %v, %v", form, back, err)
			}
		}
	})
	const text = "01c24de4-0b06-2bbb-0000-8b5900e7b6e2"
	q, err := ParseQueryID(text)
	if err != nil || q.String() != text || q[0] != 1 || q[15] != 0xe2 {
		t.Fatalf("%v is %q, %v", q[:], q, err)
	}
	if none, err := ParseQueryID(""); err != nil || none.String() != "" {
		t.Fatalf("%q, %v", none, err)
	}
	if n := testing.AllocsPerRun(100, func() { q, _ = ParseQueryID(text) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func FuzzParseQueryID(f *testing.F) {
	f.Add("01c24de4-0b06-2bbb-0000-8b5900e7b6e2")
	f.Add("01c24de4-0b06-2bbb-0000-8b5900e7b6e-")
	f.Add("01c24de4 0b06-2bbb-0000-8b5900e7b6e2")
	f.Fuzz(func(t *testing.T, s string) {
		if q, err := ParseQueryID(s); err == nil && q != (QueryID{}) && q.String() != strings.ToLower(s) {
			t.Fatalf("%q became %q", s, q)
		}
	})
}
