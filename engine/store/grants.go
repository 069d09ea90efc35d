package store

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
)

// StartGrant says who started a run or a matrix, and what was confirmed of it then. What begins later, because it has
// waited or because it is the next of a matrix, is judged by it once more.
type StartGrant struct {
	// RunID or MatrixID is what it is about, the other is empty.
	RunID    string
	MatrixID string
	UserID   string
	UserName string
	// Confirmed are the ids of the production connections that were confirmed.
	Confirmed []string
	GrantedAt engine.Time
}

// GrantChange is a grant with the one whose place it took, nil for none.
type GrantChange struct {
	StartGrant
	Previous *StartGrant
}

// Grants keeps who started what.
type Grants interface {
	// SaveStartGrant saves a grant in place of the one before, which it returns too; ErrNotFound without its run or
	// matrix, with which it goes, ErrConflict where that is not PREPARED any more.
	SaveStartGrant(ctx context.Context, g StartGrant) (GrantChange, error)
	// ResolveStart says what became of the start that a grant was for. After one that was begun the grant stands, whoever
	// has tried meanwhile; after another one the grant before is back, unless somebody else's is there by now.
	ResolveStart(ctx context.Context, g GrantChange, begun bool) error
	// StartGrant returns the grant of a run, or else of its matrix; ErrNotFound for what was started by no user.
	StartGrant(ctx context.Context, runID, matrixID string) (StartGrant, error)
}
