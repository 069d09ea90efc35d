package query

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Queries keeps the queries over results that users save.
type Queries interface {
	// SavedQueries lists all, by name.
	SavedQueries(ctx context.Context) ([]SavedQuery, error)
	// SaveQuery saves a query; UpdatedBy says who. Version is that which was edited, 0 for a new one; another
	// is ErrConflict, and the error says who was faster. Was renames the query of that name; a name that is taken is
	// ErrConflict, too.
	SaveQuery(ctx context.Context, q SavedQuery) (SavedQuery, error)
	DeleteSavedQuery(ctx context.Context, name string) error
}

// StoredName is the name under which a query that is saved is known.
func StoredName(q SavedQuery) string {
	if q.PreviousName != "" && q.Version != 0 {
		return q.PreviousName
	}
	return q.Name
}

// CheckQuery refuses what no saved query can be.
func CheckQuery(q SavedQuery) error {
	switch n := len([]rune(q.Name)); {
	case n == 0 || n > 100 || store.CleanText(q.Name) != q.Name:
		return engine.InvalidField("name", "cannot be used", "choose 1 to 100 characters without control characters")
	case q.SQL == "":
		return engine.InvalidField("sql", "is empty", "write a SELECT")
	}
	if q.Version != 0 && StoredName(q) == q.Name {
		return nil
	}
	return engine.CheckName("name", q.Name)
}

// Login is one of a program that reads the results database.
type Login struct {
	Name string
	// OwnerID is the user who made it, or gave it its password last; empty of one that was made before logins had owners.
	OwnerID string
	// Suspended: it is not let in, since its owner has no right to it any more.
	Suspended bool
}
