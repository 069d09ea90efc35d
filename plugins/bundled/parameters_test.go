package bundled_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/bundled"
)

var update = flag.Bool("update", false, "write docs/reference/plugin-parameters.md")

// TestTheParametersAreListed keeps the page of parameters true to the schemas of the bundled plugins.
// After a change of one: go test ./plugins/bundled -run TestTheParametersAreListed -update
func TestTheParametersAreListed(t *testing.T) {
	t.Parallel()
	const path = "../../docs/reference/plugin-parameters.md"
	infos, err := bundled.Infos()
	if err != nil {
		t.Fatal(err)
	}
	var all []plugin.Info
	for _, info := range infos {
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b plugin.Info) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	b.WriteString(`# Parameters of plugins

Made from the schemas of the bundled plugins (` +
		"`go test ./plugins/bundled -run TestTheParametersAreListed -update`" + `). ` +
		"`loadstone plugin inspect`" + ` shows those of any plugin. What the workloads do: [Workloads](workloads.md).

` + "```sh\nloadstone run examples/first-run.yaml --set workload.params.keys=uniform\n```\n")
	for _, kind := range []struct{ kind, title, field string }{
		{"workload", "Workloads", "workload.params"}, {"adapter", "Table types", "target.params"},
	} {
		fmt.Fprintf(&b, "\n## %s: `%s`\n", kind.title, kind.field)
		told := map[string]string{}
		for _, info := range all {
			if info.Manifest.Kind != kind.kind {
				continue
			}
			fmt.Fprintf(&b, "\n### %s\n\n", info.Name)
			here := map[string]string{}
			for _, p := range parametersOf(t, info.Manifest.Parameters) {
				name := p.name[strings.LastIndex(p.name, ".")+1:]
				text, key := p.text, name+p.text
				switch first, of := here[key], told[key]; {
				case len(text) > 60 && first != "":
					text = "as `" + first + "`."
				case len(text) > 60 && of != "":
					text = "as in `" + of + "`."
				}
				here[key], told[key] = cmp.Or(here[key], p.name), cmp.Or(told[key], info.Name)
				fmt.Fprintf(&b, "- `%s`: %s\n", p.name, strings.TrimSpace(text))
			}
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || string(have) != b.String() {
		t.Errorf("%s is stale: go test ./plugins/bundled -run TestTheParametersAreListed -update (%v)", path, err)
	}
}

type parameter struct{ name, text string }

type schema struct {
	Type        any               `json:"type"` // a word, or several
	Description string            `json:"description"`
	Enum        []any             `json:"enum"`
	Default     json.RawMessage   `json:"default"`
	Minimum     *float64          `json:"minimum"`
	Above       *float64          `json:"exclusiveMinimum"`
	Maximum     *float64          `json:"maximum"`
	MinItems    *int              `json:"minItems"`
	MaxItems    *int              `json:"maxItems"`
	Properties  map[string]schema `json:"properties"`
	Items       *schema           `json:"items"`
}

// parametersOf are the properties of a schema, nested ones with a dot, in the order of their names.
func parametersOf(t *testing.T, text []byte) []parameter {
	t.Helper()
	var top schema
	if len(text) > 0 {
		if err := json.Unmarshal(text, &top); err != nil {
			t.Fatal(err)
		}
	}
	return top.list("", map[string]string{})
}

// list are the properties of s. Lists of equal items are written out once: seen has where.
func (s schema) list(prefix string, seen map[string]string) (found []parameter) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		at := prefix + name
		items, _ := json.Marshal(p.Items)
		if first := seen[string(items)]; first != "" && len(p.Items.Properties) > 0 {
			found = append(found, parameter{at, "items as in `" + first + "`."})
			continue
		}
		found = append(found, parameter{at, p.line()})
		found = append(found, p.list(at+".", seen)...)
		if p.Items != nil {
			seen[string(items)] = at
			found = append(found, p.Items.list(at+"[].", seen)...)
		}
	}
	return found
}

func anyOf(v any) []any {
	list, _ := v.([]any)
	return list
}

// line is the type of a parameter with its bounds and default, and what it means.
func (s schema) line() string {
	var types []string
	for _, word := range append([]any{s.Type}, anyOf(s.Type)...) {
		if word, is := word.(string); is {
			types = append(types, cmp.Or(map[string]string{"array": "list", "string": "text",
				"boolean": "boolean", "object": "group"}[word], word))
		}
	}
	line := strings.Join(types, " or ")
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		line = strings.Join(values, ", ")
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	switch {
	case s.Above != nil:
		line += " above " + number(*s.Above)
		if s.Maximum != nil {
			line += " up to " + number(*s.Maximum)
		}
	case s.Minimum != nil && s.Maximum != nil:
		line += " " + number(*s.Minimum) + "–" + number(*s.Maximum)
	case s.Minimum != nil:
		line += " from " + number(*s.Minimum)
	case s.MaxItems != nil && s.MinItems != nil:
		line += fmt.Sprintf(" of %d–%d", *s.MinItems, *s.MaxItems)
	}
	if len(s.Default) > 0 {
		line += ", default `" + strings.Trim(string(s.Default), `"`) + "`"
	}
	return strings.TrimPrefix(line+". "+s.Description, ". ")
}
