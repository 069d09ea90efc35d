package template

import "github.com/loadstone-db/loadstone/engine"

// unsupported names what the schema of a template knows and this version
// cannot do yet, so that a document from a later version fails with a reason
// and not with a surprise.
func unsupported(root map[string]any, s engine.Scenario) []engine.FieldError {
	var fields []engine.FieldError
	add := func(field, message, hint string) {
		fields = append(fields, engine.FieldError{Field: field, Message: message, Hint: hint})
	}
	if s.Workload.Repeat > 1 {
		add("workload.repeat", "is not supported by this version", "start the run again instead")
	}
	later := func(value any, field, hint string) {
		if value != nil {
			add(field, "is not supported by this version", hint)
		}
	}
	later(root["matrix"], "matrix", "name one target")
	return fields
}
