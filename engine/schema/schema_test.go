package schema

import (
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
	s, err := Compile([]byte(`{"type":"object","properties":{"a":{"default":{"b":1}},"c":{"type":"object","properties":{"d":{"default":[1]}}}}}`))
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

func TestNearest(t *testing.T) {
	names := []string{"duration_seconds", "warmup_seconds", "seed"}
	for name, want := range map[string]string{
		"durations_seconds": "duration_seconds", "DurationSeconds": "duration_seconds",
		"sede": "seed", "banana": "", "": "",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestMultiples(t *testing.T) {
	s, err := Compile([]byte(`{"type":"object","properties":{"n":{"type":"integer","multipleOf":10,"description":"tens"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	found := s.Check(map[string]any{"n": 25}, "")
	if len(found) != 1 || found[0].Message != "25 is not a multiple of 10" || found[0].Hint != "tens" {
		t.Errorf("%+v", found)
	}
}
