package store

import (
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// BuiltinConnectionError is ErrConflict: a connection belongs to the server.
func BuiltinConnectionError(name string) error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict,
		Message: fmt.Sprintf("The connection %q is built in and cannot be changed.", name),
		Hint:    "Save another connection under a name of its own."}
}

// ConnectionInUseError is ErrInUse: so many templates and runs name a connection, which cannot be deleted or renamed.
func ConnectionInUseError(name, done string, templates, runs int) error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrInUse,
		Message: fmt.Sprintf("The connection %q cannot be %s: %s and %s that have not ended use it.", name, done,
			engine.Count(templates, "template"), engine.Count(runs, "run")),
		Hint: "Point them at another connection, or delete them, first."}
}

// TemplateScheduledError is ErrInUse: schedules start runs of a template, which cannot be deleted. There is one at
// least.
func TemplateScheduledError(name string, schedules []string) error {
	named := "the schedule " + schedules[0] + " starts runs of it"
	if n := len(schedules); n > 1 {
		named = fmt.Sprintf("%d schedules start runs of it, among them %s", n, schedules[0])
	}
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrInUse,
		Message: fmt.Sprintf("The template %q cannot be deleted: %s.", name, named),
		Hint:    "Delete the schedules first, on the page Schedules or with loadstone schedules delete NAME."}
}

// maxListedSinks is how many sinks an error names.
const maxListedSinks = 10

// SinkConnectionError is ErrInUse: sinks of continuous queries write to a connection, which cannot be deleted. There is
// one at least.
func SinkConnectionError(name string, sinks []string) error {
	writes := "the sink " + sinks[0] + " writes"
	if last := len(sinks) - 1; len(sinks) > maxListedSinks {
		writes = fmt.Sprintf("%d sinks write", len(sinks))
	} else if last > 0 {
		writes = "the sinks " + strings.Join(sinks[:last], ", ") + " and " + sinks[last] + " write"
	}
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrInUse,
		Message: fmt.Sprintf("The connection %q cannot be deleted: %s to it.", name, writes),
		Hint:    "DROP the queries into it and then the sink itself, on the page Streams or with loadstone sql."}
}
