package orchestrator

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/journal"
	"github.com/loadstone-db/loadstone/engine/runlog"
)

// note writes a line of the orchestrator into the run's log.
func (l *live) note(level engine.LogLevel, w *runWorker, format string, args ...any) {
	l.noteWith(nil, level, w, format, args...)
}

// noteWith writes a line with what it is about.
func (l *live) noteWith(about runlog.Details, level engine.LogLevel, w *runWorker, format string, args ...any) {
	l.Write(about, level, w.told(), format, args...)
}

// endLosses tells the rows of lost connections that are over; all of them when the run is.
func (l *live) endLosses(now time.Time, end bool) {
	for _, w := range l.workers {
		l.EndLosses(w.told(), now, end)
	}
}

// told is a run worker as the log tells of it.
func (w *runWorker) told() *journal.Worker {
	if w == nil {
		return nil
	}
	return &journal.Worker{ID: w.id, ResultID: w.resultID, NodeID: w.state.NodeID, Status: w.state.Status,
		Connections: w.connections, Losses: &w.losses}
}
