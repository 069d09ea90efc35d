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

var update = flag.Bool("update", false, "write docs/reference/template.md")

const reference = "../../../docs/reference/template.md"

// TestReference keeps the page that lists every field true to the schema.
// After a change of the schema: go test ./engine/plan/template -update
func TestReference(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(`# Template

A template is a YAML or JSON document. Made from its schema (` + "`go test ./engine/plan/template -update`" + `), ` +
		`which a server serves at ` + "`/api/templates/schema`" + ` for editors. Unknown fields are errors that suggest the ` +
		`nearest name. ` + "`--set workload.duration_seconds=60`" + ` overrides a field.

` + "```yaml" + `
name: order lookups
target: {connection: playground, table_name: orders, prepare: {rows: 100000}}
workload:
  plugin: mix
  params: {keys: zipfian}
  concurrent_connections: 32
  duration_seconds: 60
thresholds: [p95_ms < 20]
` + "```" + `

` + "`name`, `target.connection` and `workload.plugin`" + ` are required; ` + "`target.table_name`" +
		` when the workload uses a table; ` + "`workload.target_qps`" + ` in an open loop, unless its stages have rates. ` +
		`Parameters of plugins: [Parameters of plugins](plugin-parameters.md).

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
		t.Error("docs/reference/template.md does not say what the schema says: go test ./engine/plan/template -update")
	}
}

// setByServer is the description of fields that no user writes.
const setByServer = "set by the server"

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
		items, _ := p["items"].(map[string]any)
		if prefix == "" && (p["properties"] != nil || items["properties"] != nil) {
			fmt.Fprintf(b, "\n## %s\n\n", name)
		}
		if p["description"] == setByServer {
			continue
		}
		kind := " (" + facts(p) + ")"
		if kind == " (text)" {
			kind = ""
		}
		fmt.Fprintf(b, "- `%s`%s: %s\n", path, kind, text(p["description"]))
		rows(b, path, p)
		switch {
		case items == nil:
		case path == "matrix.targets":
			b.WriteString("- `matrix.targets[].label`: " + text(member(items, "label")["description"]) + "\n" +
				"- `matrix.targets[]…`: the fields of [target](#target).\n")
		default:
			rows(b, path+"[]", items)
		}
	}
}

func member(node map[string]any, name string) map[string]any {
	props, _ := node["properties"].(map[string]any)
	p, _ := props[name].(map[string]any)
	return p
}

// facts are the type, the range and the default of a field.
func facts(p map[string]any) string {
	facts := types(p)
	if a := allowed(p); a != "" {
		facts = strings.TrimPrefix(strings.TrimPrefix(facts+" ", "text ")+a, " ")
	}
	if d := plain(p["default"]); d != "" {
		facts += ", default " + d
	}
	return facts
}

// TestTargetsOfAMatrixAreTargets: the page says of them that they have the fields of a target, and a label.
func TestTargetsOfAMatrixAreTargets(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	items, _ := member(member(root, "matrix"), "targets")["items"].(map[string]any)
	var one, many strings.Builder
	rows(&one, "x", member(root, "target"))
	props, _ := items["properties"].(map[string]any)
	delete(props, "label")
	rows(&many, "x", items)
	if one.String() != many.String() || one.Len() < 500 {
		t.Errorf("a target of a matrix has\n%s and a target\n%s", many.String(), one.String())
	}
}

func types(p map[string]any) string {
	names := map[string]string{"object": "group", "array": "list", "string": "text", "integer": "integer",
		"number": "number", "boolean": "boolean", "null": ""}
	switch v := p["type"].(type) {
	case string:
		return names[v]
	case []any:
		var all []string
		for _, e := range v {
			if name := names[e.(string)]; name != "" {
				all = append(all, name)
			}
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
	if strings.HasPrefix(low, "≥ ") && high != "" {
		return strings.TrimPrefix(low, "≥ ") + "–" + strings.TrimPrefix(high, "≤ ")
	}
	return strings.TrimSuffix(strings.TrimPrefix(low+", "+high, ", "), ", ")
}

func text(v any) string {
	s, _ := v.(string)
	return strings.ReplaceAll(s, "|", "\\|")
}
