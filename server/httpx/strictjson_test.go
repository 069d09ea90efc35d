package httpx

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

// FuzzCheckJSON holds that what passes is JSON that encoding/json reads too.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":null}]}`, `{"a":1,"a":2}`, `{"a":1e400}`, "{\"a\":\"\\u0000\"}", `[`, ``,
		`{}{}`, `{"a" 1}`, `"x"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v any
		err := json.Unmarshal(text, &v)
		if p := CheckJSON(text); p == nil && err != nil {
			t.Fatalf("%q passed, and cannot be read: %v", text, err)
		} else if p != nil && p.Status != 400 && (p.Status != 422 || len(p.Errors) == 0) {
			t.Fatalf("%q: %+v", text, p)
		}
	})
}

// TestJSONCostsWhatItWeighs checks bodies whose paths would be far larger than they are.
func TestJSONCostsWhatItWeighs(t *testing.T) {
	many := "[" + strings.Repeat("1,", 40_000) + "1]"
	for name, c := range map[string]struct{ text, field string }{
		"a long name": {`{"` + strings.Repeat("k", 256<<10) + `":` + many + `}`, "body"},
		"names of the limit": {strings.Repeat(`{"`+strings.Repeat("k", 512)+`":`, 60) + many + strings.Repeat("}", 60),
			""},
		"too many values":  {`{"a":[` + strings.Repeat("1,", 500_000) + `1]}`, "body"},
		"too many members": {`{"a":{` + strings.Repeat(`"b":{},`, 2) + `"c":1}}`, "a.b"},
		"a deep error": {strings.Repeat(`{"`+strings.Repeat("k", 512)+`":`, 60) + `"\u0000"` +
			strings.Repeat("}", 60), strings.Repeat("k", 300) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p := CheckJSON([]byte(c.text))
			runtime.ReadMemStats(&after)
			if cost := after.TotalAlloc - before.TotalAlloc; cost > uint64(8<<20+8*len(c.text)) {
				t.Errorf("%d bytes took %d MB", len(c.text), cost>>20)
			}
			switch {
			case c.field == "" && p != nil, c.field != "" && p == nil:
				t.Fatalf("problem %+v", p)
			case p != nil && p.Errors[0].Field != c.field:
				t.Errorf("it blames %.100s", p.Errors[0].Field)
			}
		})
	}
}
