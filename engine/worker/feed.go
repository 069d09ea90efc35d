package worker

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/worker/replay"
)

// Recordings opens the operations of recorded runs: share number share of of, in
// the statements of the plan.
type Recordings interface {
	Feed(ctx context.Context, runID string, plan *engine.Plan, share, of int) (plugin.Feed, error)
}

// feed opens this worker's share of the run's feed; nil when the run has none.
func (w *runWorker) feed(ctx context.Context) (plugin.Feed, error) {
	f := w.a.Workload.Feed
	share, of := w.a.WorkerGroupID, max(w.a.Workers, 1)
	switch {
	case f == nil:
		return nil, nil
	case f.CSV != "":
		return replay.NewCSV(f.CSV, w.a.Plan.Statements, share, of), nil
	case w.node.opts.Recordings == nil:
		return nil, &engine.Error{Code: engine.CodeUnsupported,
			Message: fmt.Sprintf("The node %s cannot read recorded runs.", w.node.opts.NodeID),
			Hint:    "replay a run on the server's own node"}
	}
	return w.node.opts.Recordings.Feed(ctx, f.Run, w.a.Plan, share, of)
}
