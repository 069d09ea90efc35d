package orchestrator

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/keeper"
)

// calm is how long no connection must be lost for a row of losses to be over.
const calm = 5 * time.Second

// losses follows the connections that a run worker loses and opens again, from its
// snapshots: it counts them, and knows the first and the last. It reads no clock.
type losses struct {
	phase  engine.Phase
	failed int64 // operations that lost their connection, in the phase so far
	open   int
	row    lossRow
}

// lossRow are losses that belong together.
type lossRow struct {
	lost, reopened int64
	first, last    time.Time
}

// see takes a snapshot. began: it is the first loss of a row.
func (l *losses) see(s *engine.WorkerSnapshot) (began bool) {
	failed := s.ByClass[engine.ErrClassConnection]
	if s.Phase != l.phase {
		l.phase, l.failed = s.Phase, 0 // counters begin anew with the phase
	}
	if n := failed - l.failed; n > 0 {
		began = l.row.lost == 0
		if began {
			l.row.first = s.Timestamp.Time
		}
		l.row.lost += n
		l.row.last = s.Timestamp.Time
	}
	l.failed = max(failed, l.failed)
	if l.row.lost > 0 && s.ActiveConnections > l.open {
		l.row.reopened += int64(s.ActiveConnections - l.open)
	}
	l.open = s.ActiveConnections
	return began
}

// over returns the row of losses that is over at a time, if there is one.
func (l *losses) over(now time.Time, end bool) (row lossRow, ok bool) {
	if l.row.lost == 0 || !end && now.Sub(l.row.last) < calm {
		return lossRow{}, false
	}
	// Connections that were lost and found again within a second were never seen missing.
	row, l.row = l.row, lossRow{}
	row.reopened = max(row.reopened, 0)
	return row, true
}

// seeLosses tells the log of lost connections: the first at once, then all of a row together.
func (l *live) seeLosses(w *runWorker, s *engine.WorkerSnapshot) {
	if w.losses.see(s) {
		l.noteWith(details{"first": s.Timestamp, "open_connections": s.ActiveConnections,
			"target_connections": s.TargetConnections}, engine.LogWarning, w,
			"%s has lost a connection to the target", w.id)
	}
}

// endLosses tells the rows of losses that are over; all of them when the run is.
func (l *live) endLosses(now time.Time, end bool) {
	for _, w := range l.workers {
		row, ok := w.losses.over(now, end || w.state.Status.Ended())
		if !ok {
			continue
		}
		open := w.losses.open
		l.noteWith(details{"lost": row.lost, "reopened": row.reopened, "first": engine.At(row.first),
			"last": engine.At(row.last), "open_connections": open, "target_connections": w.connections},
			engine.LogWarning, w, "%s lost its connection in %d operation(s) from %s to %s; %d of %d connections are open", w.id,
			row.lost,
			row.first.UTC().Format(engine.TimeLayout), row.last.UTC().Format(engine.TimeLayout), open, w.connections)
	}
}

// storeOutage tells the log that the store went away, or is back.
func (l *live) storeOutage(o keeper.Outage) {
	at := l.clock.Place(o.At)
	if o.Away {
		l.awaySince = at
		l.noteWith(details{"from": engine.At(at), "error": o.Err.Error()}, engine.LogWarning, nil,
			"The control store is away; the run goes on and is written when it is back")
		return
	}
	gone := 0.0
	if !l.awaySince.IsZero() {
		gone = at.Sub(l.awaySince).Seconds()
	}
	l.noteWith(details{"from": engine.At(l.awaySince), "to": engine.At(at), "away_seconds": gone,
		"waiting_writes": o.Waiting}, engine.LogInfo, nil,
		"The control store is back after %.1f s; %d write(s) waited for it", gone, o.Waiting)
	l.awaySince = time.Time{}
}
