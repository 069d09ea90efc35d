package fake

import (
	"slices"
	"testing"
)

func TestCircles(t *testing.T) {
	of := map[string][]string{"a": nil, "b": {"a"}, "c": {"b", "a"}}
	for _, c := range []struct {
		name    string
		sources []string
		want    []string
	}{
		{"d", []string{"c", "b"}, nil}, {"a", []string{"c"}, []string{"a", "c", "b", "a"}}, {"b", []string{"b"},
			[]string{"b", "b"}}, {"a", []string{"nowhere"}, nil},
	} {
		if got := findCycle(c.name, c.sources, of); !slices.Equal(got, c.want) {
			t.Errorf("%s reading %v: %v, want %v", c.name, c.sources, got, c.want)
		}
	}
}
