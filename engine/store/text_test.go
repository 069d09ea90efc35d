package store

import (
	"encoding/json"
	"testing"
)

func FuzzWithoutNUL(f *testing.F) {
	f.Add(`{"a":"x\u0000y","b":"c:\\u0000"}`)
	f.Fuzz(func(t *testing.T, text string) {
		raw := CleanDetails([]byte(text))
		if !json.Valid(raw) {
			t.Errorf("CleanDetails(%q) = %q is not JSON", text, raw)
		}
	})
}
