package store

import (
	"context"
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

// Matrices keeps what runs of one workload on several targets have in common.
// The runs themselves are kept by Runs, and name their matrix.
type Matrices interface {
	Leases
	CreateMatrix(ctx context.Context, m engine.MatrixRun) error
	Matrix(ctx context.Context, matrixID string) (engine.MatrixRun, error)
	// ListMatrices returns the newest first, at most limit.
	ListMatrices(ctx context.Context, limit int) ([]engine.MatrixRun, error)
	// LiveMatrices are those in RUNNING or CANCELLING.
	LiveMatrices(ctx context.Context) ([]engine.MatrixRun, error)
	// MatrixRuns returns the matrix's runs by their index.
	MatrixRuns(ctx context.Context, matrixID string) ([]RunRow, error)
	TransitionMatrix(ctx context.Context, move MatrixTransition) error
	// ClaimMatrix takes a matrix that is not over when its lease has expired, when
	// nobody ever held it, or with reclaim when it is the owner's already; ErrLeaseHeld
	// when another owner's lease goes on, ErrConflict when it is over.
	ClaimMatrix(ctx context.Context, matrixID, owner string, reclaim bool) error
	// RenewMatrices prolongs an owner's leases and returns those of the named
	// matrices that it still holds, as they stand.
	RenewMatrices(ctx context.Context, owner string, matrixIDs []string) ([]engine.MatrixRun, error)
	// ExpiredMatrices are the LiveMatrices whose lease has expired.
	ExpiredMatrices(ctx context.Context) ([]engine.MatrixRun, error)
	// DeleteMatrix removes the row, not its runs; ErrConflict while it is live.
	DeleteMatrix(ctx context.Context, matrixID string) error
}
