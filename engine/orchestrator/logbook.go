package orchestrator

import (
	"encoding/json"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
)

// details are what a line is about, for programs.
type details map[string]any

// note writes a line of the orchestrator into the run's log.
func (l *live) note(level engine.LogLevel, w *runWorker, format string, args ...any) {
	l.noteWith(nil, level, w, format, args...)
}

// noteWith writes a line with what it is about; when it was, in the run, is among it.
func (l *live) noteWith(about details, level engine.LogLevel, w *runWorker, format string, args ...any) {
	now := l.clock.Now()
	e := engine.LogEntry{RunID: l.runID, TestID: l.runID, Level: level, Message: fmt.Sprintf(format, args...),
		Timestamp: engine.At(now)}
	if about == nil {
		about = details{}
	}
	if l.life.Phase() != engine.PhaseNone {
		about["phase"] = l.life.Phase()
	}
	if !l.run.StartTime.IsZero() {
		about["elapsed_seconds"] = float64(now.Sub(l.run.StartTime.Time).Milliseconds()) / 1000
	}
	if w != nil {
		e.WorkerID, e.TestID = w.id, w.testID
		about["node_id"], about["worker_status"] = w.state.NodeID, w.state.Status
	}
	// Names, numbers and times always marshal; a line without details is still a line.
	e.Details, _ = json.Marshal(about)
	l.logbook.Add(e)
}
