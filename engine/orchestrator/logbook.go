package orchestrator

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/keeper"
	"github.com/loadstone-db/loadstone/engine/lifecycle"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/runlog"
)

// journal writes the log of the run. What was said is in logbook until it is stored.
type journal struct {
	runID string
	begun time.Time
	clock *engine.Clock
	life  *lifecycle.Machine

	logbook runlog.Book
	// leftOut counts lines of plugins beyond their limit.
	leftOut int64
	// awaySince is when the control store went away, zero while it is there.
	awaySince time.Time
}

// note writes a line of the orchestrator into the run's log.
func (j *journal) note(level engine.LogLevel, w *runWorker, format string, args ...any) {
	j.noteWith(nil, level, w, format, args...)
}

// noteWith writes a line with what it is about; when it was, in the run, is among it.
func (j *journal) noteWith(about runlog.Details, level engine.LogLevel, w *runWorker, format string, args ...any) {
	now := j.clock.Now()
	e := engine.LogEntry{RunID: j.runID, ResultID: j.runID, Level: level, Message: fmt.Sprintf(format, args...),
		Timestamp: engine.At(now)}
	if about == nil {
		about = runlog.Details{}
	}
	if j.life.Phase() != engine.PhaseNone {
		about["phase"] = j.life.Phase()
	}
	if !j.begun.IsZero() {
		about["elapsed_seconds"] = float64(now.Sub(j.begun).Milliseconds()) / 1000
	}
	if w != nil {
		e.WorkerID, e.ResultID = w.id, w.resultID
		about["node_id"], about["worker_status"] = w.state.NodeID, w.state.Status
	}
	// Names, numbers and times always marshal; a line without details is still a line.
	e.Details, _ = json.Marshal(about)
	j.logbook.Add(e)
}

// noteSaid writes what plugins logged into the run's log.
func (j *journal) noteSaid(lines []plugin.LogLine) {
	for _, line := range lines {
		about := runlog.Details{"plugin": line.Plugin}
		if line.Dropped > 0 {
			about["dropped"] = line.Dropped
			j.leftOut += int64(line.Dropped)
			j.logbook.Lost("plugins", j.leftOut)
		}
		j.noteWith(about, line.Level, nil, "The plugin %s says: %s", line.Plugin, line.Text)
	}
}

// seeLosses tells the log of lost connections: the first at once, then all of a row together.
func (j *journal) seeLosses(w *runWorker, s *engine.WorkerSnapshot) {
	if w.losses.See(s) {
		j.noteWith(runlog.Details{"first": s.Timestamp, "open_connections": s.ActiveConnections,
			"target_connections": s.TargetConnections}, engine.LogWarning, w,
			"%s has lost a connection to the target", w.id)
	}
}

// endLosses tells the rows of losses that are over; all of them when the run is.
func (j *journal) endLosses(workers []*runWorker, now time.Time, end bool) {
	for _, w := range workers {
		row, ok := w.losses.Over(now, end || w.state.Status.Ended())
		if !ok {
			continue
		}
		open := w.losses.Open()
		j.noteWith(runlog.Details{"lost": row.Lost, "reopened": row.Reopened, "first": engine.At(row.First),
			"last": engine.At(row.Last), "open_connections": open, "target_connections": w.connections},
			engine.LogWarning, w, "%s lost its connection in %d operation(s) from %s to %s; %d of %d connections are open", w.id,
			row.Lost,
			row.First.UTC().Format(engine.TimeLayout), row.Last.UTC().Format(engine.TimeLayout), open, w.connections)
	}
}

// storeOutage tells the log that the store went away, or is back.
func (j *journal) storeOutage(o keeper.Outage) {
	at := j.clock.Place(o.At)
	if o.Away {
		j.awaySince = at
		j.noteWith(runlog.Details{"from": engine.At(at), "error": o.Err.Error()}, engine.LogWarning, nil,
			"The control store is away; the run goes on and is written when it is back")
		return
	}
	gone := 0.0
	if !j.awaySince.IsZero() {
		gone = at.Sub(j.awaySince).Seconds()
	}
	j.noteWith(runlog.Details{"from": engine.At(j.awaySince), "to": engine.At(at), "away_seconds": gone,
		"waiting_writes": o.Waiting}, engine.LogInfo, nil,
		"The control store is back after %.1f s; %d write(s) waited for it", gone, o.Waiting)
	j.awaySince = time.Time{}
}
