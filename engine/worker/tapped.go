package worker

import (
	"sync/atomic"

	"github.com/loadstone-db/loadstone/engine"
	resultsexecutions "github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/worker/load/record"
)

// tapped is a recorder that tells what it has recorded to who is told of executions.
type tapped struct {
	record.Sink
	tap atomic.Pointer[resultsexecutions.Tap] // nil until there is load
}

// Write implements record.Sink. What could not be recorded is not told.
func (t *tapped) Write(recs []engine.Execution) error {
	err := t.Sink.Write(recs)
	if to := t.tap.Load(); to != nil && err == nil {
		(*to).Write(recs)
	}
	return err //nolint:wrapcheck // it is the recorder
}

// sink is what the load records to.
func (w *runWorker) sink(r *resources) record.Sink {
	if w.node.opts.Executions == nil {
		return r.writer
	}
	r.tapped = &tapped{Sink: r.writer}
	return r.tapped
}

// tell begins to tell the executions of a load that is open.
func (w *runWorker) tell(r *resources) {
	if r.tapped == nil {
		return
	}
	of := resultsexecutions.Of{RunID: w.a.RunID, WorkerID: w.a.WorkerID, NodeID: w.node.opts.NodeID, Statements: w.a.Plan.Statements,
		Error: r.load.Error, CatchUp: func() bool { return false }, Now: w.line.Load().Now}
	if l, is := r.load.(interface{ CatchUp() bool }); is {
		of.CatchUp = l.CatchUp
	}
	to := w.node.opts.Executions.Open(of)
	r.tapped.tap.Store(&to)
}

// closeTap says that no execution follows.
func (r *resources) closeTap() {
	if r.tapped == nil {
		return
	}
	if to := r.tapped.tap.Swap(nil); to != nil {
		(*to).Close()
	}
}
