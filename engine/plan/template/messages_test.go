package template

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestWhateverAFieldHoldsNoTypeOfThisProgramIsNamed puts values that do not
// belong there into each field of a template.
func TestWhateverAFieldHoldsNoTypeOfThisProgramIsNamed(t *testing.T) {
	s, err := Parse([]byte(`
name: x
target: {connection: {driver: postgres, dsn: "postgres://u@h/d"}, table_name: t, adapter: postgres, prepare: {rows: 10}}
workload: {plugin: mix, params: {}, load_mode: QPS, target_qps: 5, stages: [{duration_seconds: 5, target_qps: 5}]}
find_max: {enabled: false, slo: {p95_ms: 5}}
guardrails: {max_cpu_percent: 95}
tags: {a: b}
thresholds: ["p95_ms < 50"]
`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	values := []string{`99999999999999999999`, `-99999999999999999999`, `1e300`, `1.5`, `-1`, `"x"`, `""`, `[]`, `[5]`,
		`{}`, `{"x": 5}`, `true`}
	tried := 0
	var walk func(v any, put func(any) []byte)
	walk = func(v any, put func(any) []byte) {
		for _, value := range values {
			tried++
			_, err := Parse(put(json.RawMessage(value)))
			if err == nil {
				continue
			}
			for _, internal := range []string{"json:", "Go struct", "Go value", "unmarshal", "engine.", "yaml:", "!!"} {
				if strings.Contains(err.Error(), internal) {
					t.Fatalf("%s: %q is in %v", put(json.RawMessage(value)), internal, err)
				}
			}
			if !engine.HasCode(err, engine.CodeInvalid) {
				t.Fatalf("%s: %v", put(json.RawMessage(value)), err)
			}
		}
		switch v := v.(type) {
		case map[string]any:
			for key, child := range v {
				walk(child, func(c any) []byte {
					old := v[key]
					v[key] = c
					defer func() { v[key] = old }()
					return put(v)
				})
			}
		case []any:
			for i, child := range v {
				walk(child, func(c any) []byte {
					old := v[i]
					v[i] = c
					defer func() { v[i] = old }()
					return put(v)
				})
			}
		}
	}
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	walk(root, func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
	if tried < 500 {
		t.Errorf("only %d values were tried", tried)
	}
}
