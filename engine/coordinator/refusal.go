package coordinator

import (
	"errors"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/statement"
)

// Refusal is what is wrong with a statement as users of the API see it: the field sql, with line and column. Other
// errors stay what they are.
func Refusal(err error) error {
	var e *statement.Error
	if !errors.As(err, &e) {
		return err
	}
	code := engine.CodeInvalid
	switch e.Kind {
	case statement.DoesNotExist:
		code = engine.CodeNotFound
	case statement.AlreadyExists, statement.NameLocked, statement.InsufficientCapacity,
		statement.ReferencedPhysicalSourceExists, statement.ReferencedQueryExists, statement.ReferencedSinkExists,
		statement.ReferencedSourceExists:
		code = engine.CodeConflict
	case statement.NetworkError:
		code = engine.CodeUnavailable
	}
	excerpt := ""
	if e.Excerpt != "" {
		excerpt = e.Excerpt + "\n" + e.Caret + "^"
	}
	return &engine.Error{Code: code, Message: string(e.Kind) + ": " + e.Message, Hint: e.Hint, Cause: err,
		Fields: []engine.FieldError{{Field: "sql", Message: e.Message, Hint: e.Hint, Line: e.Line, Column: e.Column,
			Excerpt: excerpt}}}
}
