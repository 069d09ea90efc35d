package library

import "testing"

func TestDepth(t *testing.T) {
	for doc, want := range map[string]int{
		``: 0, `7`: 0, `{}`: 1, `{"a": [{"b": 1}], "c": {}}`: 3, `"[[["`: 0, `{"\"[": "\\"}`: 1, `["\\", ["]"]]`: 2,
	} {
		if got := depth([]byte(doc)); got != want {
			t.Errorf("depth(%s) = %d, want %d", doc, got, want)
		}
	}
}
