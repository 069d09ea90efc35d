package record

import (
	"context"
	"io"

	"github.com/loadstone-db/loadstone/engine"
)

// Results keeps the Parquet parts of runs, and reads figures from them.
// storage/results serves it on a folder and on S3-compatible storage.
type Results interface {
	// Put stores what from gives as a.Name of the run, after checking its size and SHA-256:
	// all of it and durable, or nothing. The source stays as it was. Repeating it is harmless,
	// also when the source is gone.
	Put(ctx context.Context, a engine.Artifact, from Source) error
	// Open opens a stored part for download.
	Open(ctx context.Context, runID, name string) (io.ReadSeekCloser, int64, error)
	// FiguresIn reads every execution of the run and computes the exact figures.
	// workerID "" covers all. Counters of Accounting that only the engine knows
	// (Scheduled, Dropped, Started, Succeeded, Failed) are left to the caller;
	// Recorded and Warmup are counted. Rates are taken over the window.
	FiguresIn(ctx context.Context, runID, workerID string, w engine.Window) (*engine.Figures, error)
	// FiguresByWorker is FiguresIn of the whole run and of each of its named run workers,
	// in their order, in one reading. Where the run stood still is told of the whole only.
	FiguresByWorker(ctx context.Context, runID string, workerIDs []string, w engine.Window) (run *engine.Figures,
		workers []*engine.Figures, err error)
	// SecondsIn reads every execution of the run and returns the window second by
	// second, the last of which may be shorter; of more than an hour, neighbours are
	// merged to at most 3600 elements. Empty for a run without a measurement.
	SecondsIn(ctx context.Context, runID string, w engine.Window) ([]engine.MeasuredSecond, error)
	// QueryRows calls fn with the executions of one row group after the other, for
	// the join with a history. Its slices are valid until fn returns.
	QueryRows(ctx context.Context, runID string, fn func(*QueryRows) error) error
	// Enriched calls fn for each stored row of enrichment; the row is valid until
	// fn returns. last is the number of the newest part, 0 without one.
	Enriched(ctx context.Context, runID string, fn func(*engine.EnrichedExecution) error) (last int, err error)
	// Delete removes what is kept of the run.
	Delete(ctx context.Context, runID string) error
}

// QueryRows are executions (statements of transactions too) by the name that the
// database gave them, zero where it gave none.
type QueryRows struct {
	IDs    []engine.QueryID
	Kinds  []engine.Kind
	Warmup []bool
	// ServiceMs is the latency without the generator's lag and the wait for a connection.
	ServiceMs []float64
}
