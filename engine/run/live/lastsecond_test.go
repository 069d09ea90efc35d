package live

import (
	"math"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestTheLastMomentIsNoRate: after STOP a run worker tells what was in flight, in a snapshot that covers a moment. That
// was the last point of the curve: 800/s of a load that did 220/s.
func TestTheLastMomentIsNoRate(t *testing.T) {
	a := New()
	tick := func(n int64, seconds float64, ended int64, status engine.WorkerStatus) *Second {
		a.Add(&engine.WorkerSnapshot{WorkerID: "worker-0", NodeID: "a", Tick: n, Phase: engine.PhaseMeasurement,
			TickSeconds: seconds, TickStarted: ended, Started: 220*min(n, 3) + ended, TickErrors: ended / 4,
			TickByKind: map[engine.Kind]engine.KindCounts{engine.KindPointLookup: {Count: ended}}, TickLatency: recorded(1e6)})
		return a.Tick(engine.PhaseMeasurement, []Worker{{WorkerID: "worker-0", NodeID: "a", Status: status}})
	}
	for i := range int64(3) {
		tick(i+1, 1, 220, engine.WorkerRunning)
	}
	last := tick(4, 0.01, 8, engine.WorkerCompleted)
	p := last.Payload
	for name, rate := range map[string]float64{"the run": p.Ops.CurrentPerSec, "its run worker": *p.Workers[0].Metrics.QPS,
		"its kind": p.OpsByKind[engine.KindPointLookup].PerSec, "its errors, times four": 4 * p.Errors.PerSec} {
		if math.Abs(rate-220) > 10 {
			t.Errorf("%s: %.1f/s of 220", name, rate)
		}
	}
	if !last.IsPoint() || len(last.Snapshots) != 1 {
		t.Errorf("what ended is told once, and is told: %d snapshots", len(last.Snapshots))
	}
	// A partial second that is long enough is what it is.
	if p := tick(5, 0.5, 55, engine.WorkerCompleted).Payload; p.Ops.CurrentPerSec != 110 {
		t.Errorf("half a second: %.1f/s", p.Ops.CurrentPerSec)
	}
}
