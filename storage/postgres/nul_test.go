package postgres

import (
	"encoding/json"
	"testing"
)

func FuzzWithoutNUL(f *testing.F) {
	f.Add(`{"a":"x\u0000y","b":"c:\\u0000"}`)
	f.Fuzz(func(t *testing.T, text string) {
		raw := detail([]byte(text))
		if !json.Valid(raw) {
			t.Errorf("detail(%q) = %q is not JSON", text, raw)
		}
	})
}
