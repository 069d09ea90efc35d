// This part writes the log of a live run: what each line is about, when it was in the run,
// and what is told once instead of a hundred times.

package runlog

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/writer"
)

// Writer writes the log of one run. What was said is in Logbook until it is stored.
type Writer struct {
	RunID     string
	StartedAt time.Time
	Clock     *clock.Clock
	Life      *lifecycle.Machine

	Buffer Buffer
	// droppedLines counts lines of plugins beyond their limit.
	droppedLines int64
	// awaySince is when the control store went away, zero while it is there.
	awaySince time.Time
}

// Worker is the run worker that a line is about.
type Worker struct {
	ID, ResultID, NodeID string
	Status               engine.WorkerStatus
	Connections          int
	// Losses are the connections that it has lost.
	Losses *ConnectionLosses
}

// Write writes a line with what it is about; when it was, in the run, is among it.
func (j *Writer) Write(about Details, level engine.LogLevel, w *Worker, format string, args ...any) {
	now := j.Clock.Now()
	e := engine.LogEntry{RunID: j.RunID, ResultID: j.RunID, Level: level, Message: fmt.Sprintf(format, args...),
		Timestamp: engine.At(now)}
	if about == nil {
		about = Details{}
	}
	if j.Life.Phase() != engine.PhaseNone {
		about["phase"] = j.Life.Phase()
	}
	if !j.StartedAt.IsZero() {
		about["elapsed_seconds"] = float64(now.Sub(j.StartedAt).Milliseconds()) / 1000
	}
	if w != nil {
		e.WorkerID, e.ResultID = w.ID, w.ResultID
		about["node_id"], about["worker_status"] = w.NodeID, w.Status
	}
	// Names, numbers and times always marshal; a line without details is still a line.
	e.Details, _ = json.Marshal(about)
	j.Buffer.Add(e)
}

// WritePluginLines writes what plugins logged into the run's log.
func (j *Writer) WritePluginLines(lines []plugin.LogLine) {
	for _, line := range lines {
		about := Details{"plugin": line.Plugin}
		if line.Dropped > 0 {
			about["dropped"] = line.Dropped
			j.droppedLines += int64(line.Dropped)
			j.Buffer.RecordDropped("plugins", j.droppedLines)
		}
		j.Write(about, line.Level, nil, "The plugin %s says: %s", line.Plugin, line.Text)
	}
}

// ObserveLosses tells the log of lost connections: the first at once, then all of a row together.
func (j *Writer) ObserveLosses(w *Worker, s *engine.WorkerSnapshot) {
	if w.Losses.Observe(s) {
		j.Write(Details{"first": s.Timestamp, "open_connections": s.ActiveConnections,
			"target_connections": s.TargetConnections}, engine.LogWarning, w,
			"%s has lost a connection to the target", w.ID)
	}
}

// EndLosses tells a row of losses that is over; any when the run is.
func (j *Writer) EndLosses(w *Worker, now time.Time, end bool) {
	row, ok := w.Losses.TakeEnded(now, end || w.Status.Ended())
	if !ok {
		return
	}
	open := w.Losses.OpenConnections()
	j.Write(Details{"lost": row.Lost, "reopened": row.Reopened, "first": engine.At(row.First),
		"last": engine.At(row.Last), "open_connections": open, "target_connections": w.Connections},
		engine.LogWarning, w, "%s lost its connection in %s from %s to %s; %d of %d connections are open", w.ID,
		engine.Count(row.Lost, "operation"),
		row.First.UTC().Format(engine.TimeLayout), row.Last.UTC().Format(engine.TimeLayout), open, w.Connections)
}

// WriteStoreOutage tells the log that the store went away, or is back.
func (j *Writer) WriteStoreOutage(o writer.Outage) {
	at := j.Clock.At(o.At)
	if o.Away {
		j.awaySince = at
		j.Write(Details{"from": engine.At(at), "error": o.Err.Error()}, engine.LogWarning, nil,
			"The control store is away; the run goes on and is written when it is back")
		return
	}
	gone := 0.0
	if !j.awaySince.IsZero() {
		gone = at.Sub(j.awaySince).Seconds()
	}
	j.Write(Details{"from": engine.At(j.awaySince), "to": engine.At(at), "away_seconds": gone,
		"waiting_writes": o.Waiting}, engine.LogInfo, nil,
		"The control store is back after %.1f s; %s waited for it", gone, engine.Count(o.Waiting, "write"))
	j.awaySince = time.Time{}
}
