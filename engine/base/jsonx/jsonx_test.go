package jsonx

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestNoErrorOfJSONNamesATypeOfThisProgram(t *testing.T) {
	type inner struct {
		Seed  int64          `json:"seed"`
		Small uint8          `json:"small"`
		Rate  float64        `json:"rate"`
		Names []string       `json:"names"`
		On    *bool          `json:"on"`
		At    time.Time      `json:"at"`
		Tags  map[string]int `json:"tags"`
	}
	var doc struct {
		Workload inner `json:"workload"`
	}
	for text, want := range map[string]string{
		`{"workload": {"seed": "x"}}`: "the field workload.seed is text, which should be a whole number",
		`{"workload": {"seed": 1.5}}`: "the field workload.seed is the number 1.5, which should be a " +
			"whole number of at most 9223372036854775807",
		`{"workload": {"seed": 99999999999999999999}}`: "is the number 99999999999999999999",
		`{"workload": {"small": 256}}`:                 "a whole number from 0 to 255",
		`{"workload": {"rate": 1e999}}`:                "the number 1e999, which should be a number",
		`{"workload": {"names": "x"}}`:                 "the field workload.names is text, which should be a list",
		`{"workload": {"names": [1]}}`:                 "which should be text",
		`{"workload": {"on": []}}`:                     "the field workload.on is a list, which should be true or false",
		`{"workload": {"tags": 5}}`:                    "the field workload.tags is a number, which should be a group of fields",
		`{"workload": []}`:                             "the field workload is a list, which should be a group of fields",
		`[]`:                                           "it is a list, which should be a group of fields",
		`{"workload"`:                                  "it is no JSON: it ends too early",
		`{"a": x}`:                                     "it is no JSON: invalid character 'x'",
		``:                                             "ends too early",
	} {
		err := Read([]byte(text), &doc)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
			continue
		}
		for _, internal := range []string{"json:", "Go ", "struct", "engine.", "inner"} {
			if strings.Contains(err.Error(), internal) {
				t.Errorf("%s: %q is in %q", text, internal, err)
			}
		}
	}
	err := json.Unmarshal([]byte(`{"workload": {"seed": "x"}}`), &doc)
	if got := ExplainIn("reading: "+err.Error(), err); strings.Contains(got, "json:") ||
		!strings.Contains(got, "workload.seed") {
		t.Errorf("within a text: %s", got)
	}
	if other := errors.New("other"); !errors.Is(Explain(other), other) || Explain(nil) != nil {
		t.Error("other errors do not stay")
	}
}
