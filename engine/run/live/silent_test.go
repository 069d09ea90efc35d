package live

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestASecondOfWhichNothingIsHeardIsNoPoint: the node of the last run worker was killed, and its last second was drawn
// again and again, as a flat line, until it counted as dead a minute later.
func TestASecondOfWhichNothingIsHeardIsNoPoint(t *testing.T) {
	a := New()
	workers := []Worker{{WorkerID: "worker-0", NodeID: "a", Status: engine.WorkerRunning},
		{WorkerID: "worker-1", NodeID: "b", Status: engine.WorkerRunning}}
	report := func(worker string, tick int64) {
		a.Add(&engine.WorkerSnapshot{WorkerID: worker, NodeID: worker, Tick: tick, Phase: engine.PhaseMeasurement,
			TickSeconds: 1, TickStarted: 100, Started: 100 * tick, TickLatency: recorded(1e6, 2e6)})
	}
	tells := func(want bool, when string) {
		t.Helper()
		if s := a.Tick(engine.PhaseMeasurement, workers); s.IsPoint() != want {
			t.Errorf("%s: %+v", when, s.Payload.Ops)
		}
	}
	report("worker-0", 1)
	report("worker-1", 1)
	tells(true, "both report")
	workers[1].Silent = true
	report("worker-0", 2)
	tells(true, "one reports")
	tells(true, "one is late, and may report yet")
	workers[0].Status = engine.WorkerCompleted
	tells(false, "one has ended, and nothing is heard of the other")
	report("worker-1", 2)
	tells(true, "its report comes late")
}
