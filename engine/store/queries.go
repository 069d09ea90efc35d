package store

import (
	"context"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/query"
)

// Queries keeps the queries over results that users save.
type Queries interface {
	// SavedQueries lists all, by name.
	SavedQueries(ctx context.Context) ([]query.Saved, error)
	// SaveQuery saves a query; UpdatedBy says who. Version is that which was edited, 0 for a new one; another
	// is ErrConflict, and the error says who was faster. Was renames the query of that name; a name that is taken is
	// ErrConflict, too.
	SaveQuery(ctx context.Context, q query.Saved) (query.Saved, error)
	DeleteSavedQuery(ctx context.Context, name string) error
}

// ChangedMeanwhile is the ErrConflict about a thing that somebody else has saved since it was read.
func ChangedMeanwhile(what, name, by string, at engine.Time, current int64) error {
	if by == "" {
		by = "somebody else"
	}
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict,
		Message: fmt.Sprintf("The %s %q was changed by %s at %s, after you had opened it.", what, name, by,
			at.UTC().Format(time.DateTime)+" UTC"),
		Hint:   "Load it again and repeat your change.",
		Fields: []engine.FieldError{{Field: "version", Message: fmt.Sprintf("is no longer current: that is %d", current)}}}
}

// changedSince is the ErrConflict about what is no longer as it was seen, for what is compared and has no version.
func changedSince(message, was string) error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict, Message: message,
		Hint:   "Load it again and repeat your change.",
		Fields: []engine.FieldError{{Field: "was", Message: was}}}
}

// Before is the name under which a query that is saved is known.
func Before(q query.Saved) string {
	if q.Was != "" && q.Version != 0 {
		return q.Was
	}
	return q.Name
}

// CheckQuery refuses what no saved query can be.
func CheckQuery(q query.Saved) error {
	switch n := len([]rune(q.Name)); {
	case n == 0 || n > 100 || CleanText(q.Name) != q.Name:
		return engine.InvalidField("name", "cannot be used", "choose 1 to 100 characters without control characters")
	case q.SQL == "":
		return engine.InvalidField("sql", "is empty", "write a SELECT")
	}
	return nil
}
