package template

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/templates.md anew")

const reference = "../../../docs/templates.md"

// TestReference keeps the page that lists every field true to the schema.
// After a change of the schema: go test ./engine/plan/template -update
func TestReference(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(`# Templates

A template is a YAML or JSON document; both have the same shape. The JSON Schema is served at
` + "`/api/templates/schema`" +
		`, so editors can complete and check it. Unknown fields are errors that suggest the nearest name.
Any field can be overridden on the command line: ` + "`--set workload.duration_seconds=60`" + `.

The fields ` + "`target.connection`, `name` and `workload.plugin`" + ` are required, and ` + "`target.table_name`" + `
when the workload uses a table; ` + "`workload.target_qps` in an open loop (`load_mode: QPS`), unless its stages have rates" + `.
In place of ` + "`target`, `matrix`" +
		` names several targets, each with the fields of a target and a label: see [matrix](matrix.md).

This page is made from the schema (` + "`go test ./engine/plan/template -update`" + `).

| field | type | default | allowed | meaning |
| --- | --- | --- | --- | --- |
`)
	rows(&b, "", root)
	if *update {
		if err := os.WriteFile(reference, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != b.String() {
		t.Error("docs/templates.md does not say what the schema says: go test ./engine/plan/template -update")
	}
}

func rows(b *strings.Builder, prefix string, node map[string]any) {
	props, _ := node["properties"].(map[string]any)
	names := make([]string, 0, len(props))
	for name := range props {
		names = append(names, name)
	}
	order := []string{"name", "description", "target", "workload", "scaling", "find_max", "guardrails", "thresholds",
		"rules", "tags"}
	rank := func(name string) int {
		for i, o := range order {
			if prefix == "" && o == name {
				return i
			}
		}
		return len(order)
	}
	sort.Slice(names, func(i, j int) bool {
		if a, c := rank(names[i]), rank(names[j]); a != c {
			return a < c
		}
		return names[i] < names[j]
	})
	for _, name := range names {
		p := props[name].(map[string]any)
		path := name
		if prefix != "" {
			path = prefix + "." + name
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", path, types(p), plain(p["default"]), allowed(p),
			text(p["description"]))
		rows(b, path, p)
		if items, ok := p["items"].(map[string]any); ok {
			rows(b, path+"[]", items)
		}
	}
}

func types(p map[string]any) string {
	names := map[string]string{"object": "group", "array": "list", "string": "text", "integer": "whole number",
		"number": "number", "boolean": "true/false", "null": "empty"}
	switch v := p["type"].(type) {
	case string:
		return names[v]
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, names[e.(string)])
		}
		return strings.Join(all, " or ")
	}
	return ""
}

func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case map[string]any:
		return ""
	case float64:
		return fmt.Sprintf("`%.0f`", v)
	default:
		return fmt.Sprintf("`%v`", v)
	}
}

func allowed(p map[string]any) string {
	if list, ok := p["enum"].([]any); ok {
		var all []string
		for _, e := range list {
			all = append(all, fmt.Sprintf("`%v`", e))
		}
		return strings.Join(all, ", ")
	}
	low, high := "", ""
	if v, ok := p["minimum"].(float64); ok {
		low = fmt.Sprintf("≥ %.0f", v)
	}
	if v, ok := p["exclusiveMinimum"].(float64); ok {
		low = fmt.Sprintf("> %.0f", v)
	}
	if v, ok := p["maximum"].(float64); ok {
		high = fmt.Sprintf("≤ %.0f", v)
	}
	return strings.TrimSuffix(strings.TrimPrefix(low+", "+high, ", "), ", ")
}

func text(v any) string {
	s, _ := v.(string)
	return strings.ReplaceAll(s, "|", "\\|")
}
