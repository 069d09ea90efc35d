package template

import "github.com/loadstone-db/loadstone/engine"

// unsupported names what the schema of a template knows and this version
// cannot do yet, so that a document from a later version fails with a reason
// and not with a surprise.
func unsupported(root map[string]any) []engine.FieldError {
	var fields []engine.FieldError
	later := func(value any, field, hint string) {
		if value != nil {
			fields = append(fields, engine.FieldError{Field: field, Message: "is not supported by this version", Hint: hint})
		}
	}
	later(root["matrix"], "matrix", "name one target")
	return fields
}
