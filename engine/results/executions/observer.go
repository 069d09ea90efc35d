// This part is how run workers tell their executions while they go on: behind the recorder, in whole blocks, as the
// record of the run has them. Who is told has them beside the record, and never instead of it.

package executions

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Stream says whose executions are told.
type Stream struct {
	RunID, WorkerID, NodeID string
	// Statements is the frozen list that executions index.
	Statements []engine.Statement
	// Error resolves ids of the run worker's error dictionary.
	Error func(id uint32) engine.ExecutionError
	// Flush has everything told that was recorded before the call, and reports whether that was done: it waits for a
	// fraction of a second at most, and may be called from any goroutine.
	Flush func() bool
	// Now is the present moment on the time line of the executions.
	Now func() time.Time
}

// Observers are told of run workers. They are safe for concurrent use.
type Observers interface {
	// Open begins with a run worker, before its first execution.
	Open(of Stream) Observer
}

// Observer is told the executions of one run worker.
type Observer interface {
	// Write takes executions, and the statements of transactions. It waits for nobody, and where nobody reads them it
	// costs nothing. One goroutine at a time calls it; recs are valid during the call only.
	Write(recs []engine.Execution)
	// Close says that there will be no more.
	Close()
}
