package store

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// MatrixTransition is a conditional change of a matrix.
type MatrixTransition struct {
	MatrixID string
	// From lists the statuses the change is allowed from; another one is ErrConflict.
	From []engine.Status
	To   engine.Status
	// At becomes the start, or with a terminal status the end, unless it is zero.
	At time.Time
	// Owner takes the matrix for this owner, with a lease; empty leaves it.
	Owner string
	// Holder must be the matrix's owner, else ErrLeaseHeld; empty is not compared.
	Holder string
}
