package coordinator

import (
	"errors"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// StatementError is what is wrong with a statement as users of the API see it: the field sql, with line and column.
// Other errors stay what they are.
func StatementError(err error) error {
	var e *sql.Error
	if !errors.As(err, &e) {
		return err
	}
	code := engine.CodeInvalid
	switch e.Kind {
	case sql.DoesNotExist:
		code = engine.CodeNotFound
	case sql.AlreadyExists, sql.NameLocked, sql.InsufficientCapacity,
		sql.ReferencedPhysicalSourceExists, sql.ReferencedQueryExists, sql.ReferencedSinkExists,
		sql.ReferencedSourceExists:
		code = engine.CodeConflict
	case sql.ProtectedSource:
		code = engine.CodeForbidden
	case sql.NetworkError:
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
