package schema

import (
	"strings"
	"testing"
)

func TestSchemasOfStrangersLoadNothing(t *testing.T) {
	for _, text := range []string{
		`{"$ref": "file:///etc/passwd"}`,
		`{"$ref": "https://example.com/schema.json"}`,
		`{"type": 7}`,
		`{"pattern": "("}`,
		`not json`,
	} {
		if _, err := Compile([]byte(text)); err == nil {
			t.Errorf("%s compiled", text)
		}
	}
}

func TestCompleteDescends(t *testing.T) {
	s, err := Compile(
		[]byte(
			`{"type":"object","properties":{"a":{"default":{"b":1}},"c":{"type":"object","properties":{"d":{"default":[1]}}}}}`,
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	doc := map[string]any{"c": map[string]any{}}
	s.Complete(doc)
	if doc["a"] == nil || doc["c"].(map[string]any)["d"] == nil {
		t.Errorf("got %v", doc)
	}
	// Defaults are copies: changing one document must not change the next.
	doc["a"].(map[string]any)["b"] = 2
	other := map[string]any{}
	s.Complete(other)
	if got := other["a"].(map[string]any)["b"]; got == 2 {
		t.Error("a default is shared between documents")
	}
}

// TestEveryDefaultMeetsItsSchema: wherever a default stands, and whatever the names on
// the way to it are.
func TestEveryDefaultMeetsItsSchema(t *testing.T) {
	const bad = `{"type":"integer","default":"x"}`
	for text, field := range map[string]string{
		`{"properties":{"a":` + bad + `}}`:                                                                  "a",
		`{"properties":{"w":{"properties":{"a":` + bad + `}}}}`:                                             "w.a",
		`{"properties":{"w":{"items":{"properties":{"a":` + bad + `}}}}}`:                                   "w.a",
		`{"properties":{"w":{"oneOf":[{"type":"null"},{"properties":{"a":` + bad + `}}]}}}`:                 "w.a",
		`{"properties":{"a":{"$ref":"#/$defs/s"}},"$defs":{"s":` + bad + `}}`:                               "s",
		`{"properties":{"a":{"$ref":"#/$defs/s","default":"x"}},"$defs":{"s":{"type":"integer"}}}`:          "a",
		`{"properties":{"a/b ~%":{"properties":{"ü":` + bad + `}}}}`:                                        "a/b ~%.ü",
		`{"default":{"a":"x"},"properties":{"a":{"type":"integer"}}}`:                                       "a",
		`{"properties":{"w":{"default":{},"required":["a"],"properties":{"a":{"type":"integer"}}}}}`:        "w.a",
		`{"properties":{"w":{"default":{},"required":["a"],"properties":{"a":{"default":1}}}}}`:             "",
		`{"properties":{"default":{"type":"integer","default":1},"a":{"enum":[{"default":"x"}]},"b":true}}`: "",
	} {
		wrong, err := CheckDefaults([]byte(text))
		if err != nil || (wrong == nil) != (field == "") || wrong != nil && wrong.Field != field {
			t.Errorf("%s: %+v, %v; expected %q", text, wrong, err, field)
		}
	}
}

// TestRareKeywordsAreSaidInWords: none shows what Go makes of it.
func TestRareKeywordsAreSaidInWords(t *testing.T) {
	for text, c := range map[string]struct {
		doc  any
		says string
	}{
		`{"const":4}`:                            {3, "must be 4, not 3"},
		`{"not":{"type":"integer"}}`:             {3, "cannot have"},
		`{"oneOf":[true,true]}`:                  {3, "more than one"},
		`{"maxProperties":0}`:                    {map[string]any{"a": 1}, "at most 0"},
		`{"uniqueItems":true}`:                   {[]any{1, 1}, "twice, at 0 and 1"},
		`{"contains":{"type":"string"}}`:         {[]any{}, "lacks"},
		`{"minContains":1,"contains":{}}`:        {[]any{}, "at least 1"},
		`{"maxContains":0,"contains":{}}`:        {[]any{1}, "at most 0"},
		`{"dependentRequired":{"a":["b","c"]}}`:  {map[string]any{"a": 1}, "with a, it must have b, c too"},
		`{"propertyNames":{"pattern":"^x"}}`:     {map[string]any{"a": 1}, ""},
		`{"prefixItems":[true],"items":false}`:   {[]any{1, 2}, ""},
		`{"unevaluatedProperties":false}`:        {map[string]any{"a": 1}, ""},
		`{"enum":["a",1]}`:                       {map[string]any{"max": 1}, "a group of fields is not a value it can have"},
		`{"enum":["b"]}`:                         {[]any{1}, "a list is not a value it can have"},
		`{"enum":["c"]}`:                         {"d", `"d" is not a value it can have`},
		`{"contentEncoding":"base64","const":1}`: {"?", "must be 1, not ?"},
	} {
		s, err := Compile([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		found := s.Check(c.doc, "f")
		if len(found) == 0 || !strings.Contains(found[0].Message, c.says) || strings.ContainsAny(found[0].Message, "&{}<>") {
			t.Errorf("%s: %+v, expected %q", text, found, c.says)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"duration_seconds", "warmup_seconds", "seed"}
	for name, want := range map[string]string{
		"durations_seconds": "duration_seconds", "DurationSeconds": "duration_seconds",
		"sede": "seed", "banana": "", "": "",
		"duration": "duration_seconds", "warmup": "warmup_seconds", "seconds": "", "see": "seed",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestMultiples(t *testing.T) {
	s, err := Compile(
		[]byte(`{"type":"object","properties":{"n":{"type":"integer","multipleOf":10,"description":"tens"}}}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	found := s.Check(map[string]any{"n": 25}, "")
	if len(found) != 1 || found[0].Message != "25 is not a multiple of 10" || found[0].Hint != "tens" {
		t.Errorf("%+v", found)
	}
}
