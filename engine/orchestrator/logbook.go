package orchestrator

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/keeper"
	"github.com/loadstone-db/loadstone/engine/runlog"
)

// note writes a line of the orchestrator into the run's log.
func (l *live) note(level engine.LogLevel, w *runWorker, format string, args ...any) {
	l.noteWith(nil, level, w, format, args...)
}

// noteWith writes a line with what it is about; when it was, in the run, is among it.
func (l *live) noteWith(about runlog.Details, level engine.LogLevel, w *runWorker, format string, args ...any) {
	now := l.clock.Now()
	e := engine.LogEntry{RunID: l.runID, TestID: l.runID, Level: level, Message: fmt.Sprintf(format, args...),
		Timestamp: engine.At(now)}
	if about == nil {
		about = runlog.Details{}
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

// noteSaid writes what plugins logged into the run's log.
func (l *live) noteSaid() {
	for _, line := range l.said.Take() {
		about := runlog.Details{"plugin": line.Plugin}
		if line.Dropped > 0 {
			about["dropped"] = line.Dropped
			l.leftOut += int64(line.Dropped)
			l.logbook.Lost("plugins", l.leftOut)
		}
		l.noteWith(about, line.Level, nil, "The plugin %s says: %s", line.Plugin, line.Text)
	}
}

// seeLosses tells the log of lost connections: the first at once, then all of a row together.
func (l *live) seeLosses(w *runWorker, s *engine.WorkerSnapshot) {
	if w.losses.See(s) {
		l.noteWith(runlog.Details{"first": s.Timestamp, "open_connections": s.ActiveConnections,
			"target_connections": s.TargetConnections}, engine.LogWarning, w,
			"%s has lost a connection to the target", w.id)
	}
}

// endLosses tells the rows of losses that are over; all of them when the run is.
func (l *live) endLosses(now time.Time, end bool) {
	for _, w := range l.workers {
		row, ok := w.losses.Over(now, end || w.state.Status.Ended())
		if !ok {
			continue
		}
		open := w.losses.Open()
		l.noteWith(runlog.Details{"lost": row.Lost, "reopened": row.Reopened, "first": engine.At(row.First),
			"last": engine.At(row.Last), "open_connections": open, "target_connections": w.connections},
			engine.LogWarning, w, "%s lost its connection in %d operation(s) from %s to %s; %d of %d connections are open", w.id,
			row.Lost,
			row.First.UTC().Format(engine.TimeLayout), row.Last.UTC().Format(engine.TimeLayout), open, w.connections)
	}
}

// storeOutage tells the log that the store went away, or is back.
func (l *live) storeOutage(o keeper.Outage) {
	at := l.clock.Place(o.At)
	if o.Away {
		l.awaySince = at
		l.noteWith(runlog.Details{"from": engine.At(at), "error": o.Err.Error()}, engine.LogWarning, nil,
			"The control store is away; the run goes on and is written when it is back")
		return
	}
	gone := 0.0
	if !l.awaySince.IsZero() {
		gone = at.Sub(l.awaySince).Seconds()
	}
	l.noteWith(runlog.Details{"from": engine.At(l.awaySince), "to": engine.At(at), "away_seconds": gone,
		"waiting_writes": o.Waiting}, engine.LogInfo, nil,
		"The control store is back after %.1f s; %d write(s) waited for it", gone, o.Waiting)
	l.awaySince = time.Time{}
}
