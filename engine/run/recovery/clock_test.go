package recovery

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// TestTheBestComparisonOfTheClocksCounts: of what several run workers say of the clocks the most exact one
// does, and of when they began the first.
func TestTheBestComparisonOfTheClocksCounts(t *testing.T) {
	at := time.Unix(1_790_000_000, 0)
	l := NewTimeline([]string{"worker-0", "worker-1"}, 2, true)
	l.Observe(protocol.WorkerState{WorkerID: "worker-7", LineAhead: time.Hour, LineError: 1, MeasuresSince: at})
	l.Observe(protocol.WorkerState{WorkerID: "worker-0", LineAhead: 2 * time.Second, LineError: 30 * time.Millisecond,
		BeganAt: at, MeasuresSince: at.Add(50 * time.Millisecond)})
	// The clocks are not compared yet, or it has not heard of the measurement: it will say more.
	l.Observe(protocol.WorkerState{WorkerID: "worker-1", MeasuresSince: at})
	l.Observe(
		protocol.WorkerState{WorkerID: "worker-1", LineAhead: 1990 * time.Millisecond, LineError: 2 * time.Millisecond},
	)
	if len(l.waitingFor) != 1 || !l.Measured().Equal(at.Add(50*time.Millisecond)) {
		t.Errorf("waits for %v, measured since %v", l.waitingFor, l.Measured())
	}
	l.Observe(
		protocol.WorkerState{WorkerID: "worker-1", LineAhead: 1900 * time.Millisecond, LineError: 40 * time.Millisecond,
			BeganAt: at.Add(time.Millisecond), MeasuresSince: at.Add(3 * time.Second)},
	)
	now := time.Unix(1_800_000_000, 0)
	got := l.Offset(now, now.Add(time.Minute), now)
	if len(l.waitingFor) != 0 || got != time.Minute+1990*time.Millisecond || !l.Began().Equal(at) {
		t.Errorf("waits for %v, ahead by %v, began %v", l.waitingFor, got, l.Began())
	}
	const want = "The clock of the server that went on with the run is 2 s behind the run's time, by which the run went " +
		"on, to within 2 ms. worker-1 was told of the measurement 2.95 s after the first run worker, when the run was " +
		"taken over: what it executed before counts as warm-up."
	if got := l.Note(2 * time.Second); got != want {
		t.Error(got)
	}
	if got := l.Note(-time.Second); !strings.Contains(got, "1 s ahead of the run's time") {
		t.Error(got)
	}
}

// TestWhatNobodyKnowsOfTheTimeIsSaid: without a comparison the run's time is at least what was stored last.
func TestWhatNobodyKnowsOfTheTimeIsSaid(t *testing.T) {
	l, now := NewTimeline([]string{"worker-0"}, 1, false), time.Unix(1_790_000_000, 0)
	for seen, want := range map[time.Duration]time.Duration{-time.Minute: 0, time.Minute: time.Minute} {
		if got := l.Offset(now, now.Add(time.Hour), now.Add(seen)); got != want {
			t.Errorf("seen %v ago: ahead by %v", -seen, got)
		}
	}
	if got := l.Note(0); !strings.HasPrefix(got, "No node has said") {
		t.Error(got)
	}
	l.Observe(protocol.WorkerState{WorkerID: "worker-0", Status: engine.WorkerRunning, LineError: time.Millisecond})
	if got := l.Note(0); len(l.waitingFor) != 0 || got != "" {
		t.Errorf("%v, %s", l.waitingFor, got)
	}
}

// TestWhoHasJoinedTellsNothingOfTheBeginning: a run whose first run workers are gone began when it is stored to have.
func TestWhoHasJoinedTellsNothingOfTheBeginning(t *testing.T) {
	at := time.Unix(1_790_000_000, 0)
	l := NewTimeline([]string{"worker-1", "worker-2", "worker-3"}, 2, true)
	l.Observe(protocol.WorkerState{WorkerID: "worker-2", WorkerGroupID: 2, Status: engine.WorkerRunning,
		LineAhead: time.Second, LineError: time.Millisecond,
		BeganAt: at.Add(time.Minute), MeasuresSince: at.Add(time.Minute)})
	l.Observe(protocol.WorkerState{WorkerID: "worker-3", WorkerGroupID: 3, Status: engine.WorkerReady,
		LineError: 2 * time.Millisecond})
	if len(l.waitingFor) != 1 || !l.Began().IsZero() || !l.Measured().IsZero() || l.Offset(at, at, at) != time.Second ||
		strings.Contains(l.Note(0), "worker-2") {
		t.Errorf("waits for %v, began %v, measured since %v, %v ahead: %s", l.waitingFor, l.Began(), l.Measured(),
			l.Offset(at, at, at), l.Note(0))
	}
	l.Observe(protocol.WorkerState{WorkerID: "worker-1", WorkerGroupID: 1, Status: engine.WorkerRunning,
		LineError: time.Millisecond, BeganAt: at, MeasuresSince: at.Add(time.Second)})
	if len(l.waitingFor) != 0 || !l.Began().Equal(at) || !l.Measured().Equal(at.Add(time.Second)) {
		t.Errorf("waits for %v, began %v, measured since %v", l.waitingFor, l.Began(), l.Measured())
	}
}
