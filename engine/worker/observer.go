package worker

import (
	"sync/atomic"

	"github.com/loadstone-db/loadstone/engine"
	resultsexecutions "github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/worker/load/record"
)

// observedSink is a recorder that tells what it has recorded to who is told of executions.
type observedSink struct {
	record.Sink
	tap atomic.Pointer[resultsexecutions.Observer] // nil until there is load
}

// Write implements record.Sink. What could not be recorded is not told.
func (t *observedSink) Write(recs []engine.Execution) error {
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
	r.observed = &observedSink{Sink: r.writer}
	return r.observed
}

// startObserver begins to tell the executions of a load that is open.
func (w *runWorker) startObserver(r *resources) {
	if r.observed == nil {
		return
	}
	of := resultsexecutions.Stream{
		RunID:      w.a.RunID,
		WorkerID:   w.a.WorkerID,
		NodeID:     w.node.opts.NodeID,
		Statements: w.a.Plan.Statements,
		Error:      r.load.Error,
		Flush:      func() bool { return false },
		Now:        w.line.Load().Now,
	}
	if l, is := r.load.(interface{ CatchUp() bool }); is {
		of.Flush = l.CatchUp
	}
	to := w.node.opts.Executions.Open(of)
	r.observed.tap.Store(&to)
}

// closeObserver says that no execution follows.
func (r *resources) closeObserver() {
	if r.observed == nil {
		return
	}
	if to := r.observed.tap.Swap(nil); to != nil {
		(*to).Close()
	}
}
