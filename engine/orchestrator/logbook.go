package orchestrator

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/crew"
	"github.com/loadstone-db/loadstone/engine/runlog"
)

// note writes a line of the orchestrator into the run's log.
func (l *live) note(level engine.LogLevel, w *crew.Worker, format string, args ...any) {
	l.noteWith(nil, level, w, format, args...)
}

// noteWith writes a line with what it is about.
func (l *live) noteWith(about runlog.Details, level engine.LogLevel, w *crew.Worker, format string, args ...any) {
	l.Write(about, level, w.Told(), format, args...)
}

// endLosses tells the rows of lost connections that are over; all of them when the run is.
func (l *live) endLosses(now time.Time, end bool) {
	for _, w := range l.Workers {
		l.EndLosses(w.Told(), now, end)
	}
}
