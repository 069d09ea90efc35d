// This part tells which of the names in a template stand for nothing on this server, and what was likely meant.

package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/schema"
	"github.com/loadstone-db/loadstone/engine/plan/template"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/store"
)

// KnownNames is what names can stand for. A list that is nil is not known, and no name is judged by it.
type KnownNames struct {
	Plugins     []plugin.Entry
	Connections []store.Connection
}

// maxUnknownNames is how many unknown names are reported: a matrix has no more.
const maxUnknownNames = 20

// Unknown lists the references that stand for nothing, each with its line and with the name that is nearest to it. It
// is never nil.
func (h KnownNames) Unknown(refs []template.Reference) []engine.FieldError {
	found := []engine.FieldError{}
	for _, r := range refs {
		if len(found) == maxUnknownNames {
			break
		}
		if message, hint := h.check(r); message != "" {
			found = append(found, engine.FieldError{Field: r.Field, Line: r.Line, Message: message, Hint: hint})
		}
	}
	return found
}

func (h KnownNames) check(r template.Reference) (message, hint string) {
	if r.Kind == template.RefersToConnection {
		if h.Connections == nil || slices.ContainsFunc(h.Connections,
			func(c store.Connection) bool { return c.Name == r.Name }) {
			return "", ""
		}
		known := make([]string, len(h.Connections))
		for i, c := range h.Connections {
			known[i] = c.Name
		}
		return fmt.Sprintf("there is no connection %q", clip(r.Name)), suggest(r.Name, known, "saved")
	}
	if h.Plugins == nil {
		return "", ""
	}
	var known []string
	for _, p := range h.Plugins {
		if p.Kind != r.Kind {
			continue
		}
		if r.Name == p.Name || r.Name == p.Name+"@"+p.Version || r.Name == p.SHA256 {
			return "", "" // one that is disabled is refused in words of its own
		}
		if !slices.Contains(known, p.Name) {
			known = append(known, p.Name)
		}
	}
	what := map[string]string{template.RefersToWorkload: "workload plugin", template.RefersToAdapter: "table type"}[r.Kind]
	name, _, versioned := strings.Cut(r.Name, "@")
	if versioned && slices.Contains(known, name) {
		return fmt.Sprintf("the %s %s has no version %q", what, name, clip(strings.TrimPrefix(r.Name, name+"@"))),
			"without a version the highest one is taken"
	}
	return fmt.Sprintf("there is no %s %q", what, clip(r.Name)), suggest(name, known, "installed")
}

// suggest names what was likely meant, else what there is.
func suggest(name string, known []string, verb string) string {
	if near := schema.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return "none is " + verb
	}
	slices.SortFunc(known, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
	const shown = 8
	if len(known) > shown {
		return fmt.Sprintf("%s are %s and %d more", verb, strings.Join(known[:shown], ", "), len(known)-shown)
	}
	return verb + ": " + strings.Join(known, ", ")
}

func clip(name string) string {
	const longest = 60
	if r := []rune(name); len(r) > longest {
		return string(r[:longest]) + "…"
	}
	return name
}
