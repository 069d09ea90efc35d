package worker

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// TestDroppedLinesAreCountedByRun: a full outbox drops the oldest lines, and says how many of which run.
func TestDroppedLinesAreCountedByRun(t *testing.T) {
	o := newOutbox()
	line := func(run string) { o.Put(protocol.Log{LogEntry: engine.LogEntry{RunID: run}}) }
	for range 3 {
		line("a")
	}
	for range protocol.MaxWaiting {
		line("b")
	}
	for range protocol.MaxWaiting + 10 {
		o.Put(protocol.Snapshot{}) // are bounded for themselves
	}
	o.dropLines("c", 5)
	if a, b, c := o.linesDropped("a"), o.linesDropped("b"), o.linesDropped("c"); a != 3 || b != 0 || c != 5 {
		t.Errorf("%d, %d and %d lines were dropped", a, b, c)
	}
}

// TestWhatIsHandedOnSaysNothingOfAClock: that of the server for which it was made is not that of who hears it.
func TestWhatIsHandedOnSaysNothingOfAClock(t *testing.T) {
	for name, ends := range map[string]bool{"its server has ended": true, "its server is there": false} {
		o, now := newOutbox(), time.Now()
		former := o.open("former")
		o.acceptsEpoch(former, "r", 1, now)
		o.Put(protocol.WorkerState{RunID: "r", WorkerID: "worker-0", LineAhead: time.Hour, LineError: time.Millisecond,
			ClockError: time.Second})
		if ends {
			o.close(former)
		}
		heir := o.open("heir")
		o.acceptsEpoch(heir, "r", 2, now)
		m, ok := heir.out.Take()
		w, state := m.(protocol.WorkerState)
		if !ok || !state || w.LineAhead != 0 || w.LineError != 0 || w.ClockError != time.Second {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
