package template

import (
	"fmt"
	"strings"
)

// The kinds of references.
const (
	RefersToWorkload   = "workload"
	RefersToAdapter    = "adapter"
	RefersToConnection = "connection"
)

// Reference is a name in a template that stands for something outside of it.
type Reference struct {
	// Field is its path, "target.connection"; Line is that of the text, 0 when unknown.
	Field string
	Line  int
	// Kind is one of the RefersTo constants.
	Kind string
	Name string
}

// References lists the plugins and the saved connections that a template names, in the order of its lines, also of one
// that cannot be used for other reasons. A text that is no document has none.
func References(source []byte) []Reference {
	doc, err := read(source)
	if err != nil {
		return nil
	}
	translate(doc.root)
	var list []Reference
	add := func(group map[string]any, path, key, kind string) {
		name, ok := group[key].(string)
		if !ok || strings.TrimSpace(name) == "" {
			return // missing, of another type, or spelled out: the schema judges it
		}
		field := path + "." + key
		list = append(list, Reference{Field: field, Line: doc.lineOf(field), Kind: kind, Name: name})
	}
	if workload, ok := doc.root["workload"].(map[string]any); ok {
		add(workload, "workload", "plugin", RefersToWorkload)
	}
	target := func(group map[string]any, path string) {
		add(group, path, "connection", RefersToConnection)
		add(group, path, "adapter", RefersToAdapter)
	}
	if group, ok := doc.root["target"].(map[string]any); ok {
		target(group, "target")
	}
	matrix, _ := doc.root["matrix"].(map[string]any)
	targets, _ := matrix["targets"].([]any)
	for i, t := range targets {
		if group, ok := t.(map[string]any); ok {
			target(group, fmt.Sprintf("matrix.targets[%d]", i))
		}
	}
	sortByLine(list, func(r Reference) int { return r.Line })
	return list
}
