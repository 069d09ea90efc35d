package runlog

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestTheLogTellsLostConnections: the first at once, and all of a row together when it is over.
func TestTheLogTellsLostConnections(t *testing.T) {
	var l ConnectionLosses
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	see := func(s int, phase engine.Phase, failed int64, open int) bool {
		return l.Observe(&engine.WorkerSnapshot{Timestamp: engine.At(at(s)), Phase: phase, ActiveConnections: open,
			ByClass: map[engine.ErrorClass]int64{engine.ErrClassConnection: failed, engine.ErrClassTimeout: 99}})
	}
	if see(0, engine.PhaseWarmup, 0, 8) || !see(1, engine.PhaseWarmup, 2, 6) || see(2, engine.PhaseWarmup, 2, 7) {
		t.Error("a row begins with its first loss")
	}
	// The counter begins anew with the phase.
	if see(3, engine.PhaseMeasurement, 0, 8) || see(4, engine.PhaseMeasurement, 3, 5) {
		t.Error("a row that goes on begins again")
	}
	if _, ok := l.TakeEnded(at(8), false); ok {
		t.Error("a row is over after 4 s without a loss")
	}
	see(9, engine.PhaseMeasurement, 3, 8)
	row, ok := l.TakeEnded(at(9), false)
	if !ok || row.Lost != 5 || row.Reopened != 5 || !row.First.Equal(at(1)) || !row.Last.Equal(at(4)) {
		t.Errorf("%v %+v", ok, row)
	}
	if _, ok := l.TakeEnded(at(20), true); ok {
		t.Error("a row is told twice")
	}
	if !see(21, engine.PhaseMeasurement, 4, 7) {
		t.Error("a second row begins")
	}
	if row, ok := l.TakeEnded(at(21), true); !ok || row.Lost != 1 {
		t.Errorf("at the end of the run: %v %+v", ok, row)
	}
}
