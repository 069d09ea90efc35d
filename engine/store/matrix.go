package store

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Matrices keeps what runs of one workload on several targets have in common.
// The runs themselves are kept by Runs, and name their matrix.
type Matrices interface {
	CreateMatrix(ctx context.Context, m engine.MatrixRun) error
	Matrix(ctx context.Context, matrixID string) (engine.MatrixRun, error)
	// ListMatrices returns the newest first, at most limit.
	ListMatrices(ctx context.Context, limit int) ([]engine.MatrixRun, error)
	// LiveMatrices are those in RUNNING or CANCELLING.
	LiveMatrices(ctx context.Context) ([]engine.MatrixRun, error)
	// MatrixRuns returns the matrix's runs by their index.
	MatrixRuns(ctx context.Context, matrixID string) ([]RunRow, error)
	// MoveMatrix changes the status when it is one of from, else ErrConflict. A
	// time that is not zero becomes the start, or with a terminal status the end.
	MoveMatrix(ctx context.Context, matrixID string, from []engine.Status, to engine.Status, at time.Time) error
	// DeleteMatrix removes the row, not its runs; ErrConflict while it is live.
	DeleteMatrix(ctx context.Context, matrixID string) error
}
