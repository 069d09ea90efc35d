package store

import (
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
