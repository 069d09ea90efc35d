package live_test

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/live"
)

func TestAPointBelongsToThePhaseOfItsSnapshots(t *testing.T) {
	a := live.New()
	workers := []live.Worker{{WorkerID: "worker-0"}, {WorkerID: "worker-1"}}
	snapshot := func(worker string, tick int64, phase engine.Phase) {
		a.Add(&engine.WorkerSnapshot{WorkerID: worker, Tick: tick, Phase: phase, TickSeconds: 1,
			Timestamp: engine.At(time.Now())})
	}
	s := a.Tick(engine.PhaseWarmup, workers)
	if s.Reported() {
		t.Error("a second before the first snapshot counts")
	}
	snapshot("worker-0", 1, engine.PhaseWarmup)
	snapshot("worker-1", 1, engine.PhaseWarmup)
	of := func(phase engine.Phase, measured time.Duration) engine.Phase {
		s = a.Tick(phase, workers)
		return s.PhaseOf(phase, measured)
	}
	if p := of(engine.PhaseMeasurement, time.Second/2); !s.Reported() || p != engine.PhaseWarmup {
		t.Errorf("a second of warm-up is one of %s", p)
	}
	snapshot("worker-0", 2, engine.PhaseWarmup)
	snapshot("worker-1", 2, engine.PhaseMeasurement)
	if p := of(engine.PhaseMeasurement, 1500*time.Millisecond); p != engine.PhaseWarmup {
		t.Errorf("a second with warm-up in it is one of %s", p)
	}
	snapshot("worker-0", 3, engine.PhaseMeasurement)
	snapshot("worker-1", 3, engine.PhaseMeasurement)
	if p := of(engine.PhaseMeasurement, 1500*time.Millisecond); p != engine.PhaseMeasurement {
		t.Errorf("a second of the measurement is one of %s", p)
	}
	snapshot("worker-0", 4, engine.PhaseWarmup)
	snapshot("worker-1", 4, engine.PhaseMeasurement)
	if p := of(engine.PhaseMeasurement, 5*time.Second); p != engine.PhaseMeasurement {
		t.Errorf("a run worker that tells of the warm-up late makes a second of the measurement one of %s", p)
	}
	if s = a.Tick(engine.PhaseCooldown, workers); !s.Reported() ||
		s.PhaseOf(engine.PhaseCooldown, 9*time.Second) != engine.PhaseCooldown {
		t.Error("a second without a new snapshot has lost its phase")
	}
}

// TestTheFirstSecondIsOfAllRunWorkers: run workers report at times of their own, and the first second of a run with two
// of them showed what the one did that had reported, which was half of the rate.
func TestTheFirstSecondIsOfAllRunWorkers(t *testing.T) {
	report := func(a *live.Aggregator, worker string, tick int64, seconds float64) {
		n := int64(1000 * seconds)
		a.Add(&engine.WorkerSnapshot{WorkerID: worker, Tick: tick, Phase: engine.PhaseWarmup, TickSeconds: seconds,
			TickStarted: n, Started: n, Timestamp: engine.At(time.Now())})
	}
	two := func(status engine.WorkerStatus) []live.Worker {
		return []live.Worker{{WorkerID: "worker-0", Status: status},
			{WorkerID: "worker-1", Status: engine.WorkerRunning}}
	}
	for _, c := range []struct {
		name    string
		workers []live.Worker
		// rates are those of the ticks, of which the first come with a report of worker-1 alone; 0 is no point.
		rates []float64
	}{
		{"both bear load", two(engine.WorkerRunning), []float64{0, 2000}},
		{"the other is about to", two(engine.WorkerReady), []float64{0, 2000}},
		{"the other is not heard of", two(engine.WorkerRunning), []float64{0, 0, 1000, 2000}},
		{"the other connects yet", two(engine.WorkerStarting), []float64{1000, 2000}},
		{"the other has failed", two(engine.WorkerFailed), []float64{1000}},
		{"it is alone", two("")[1:], []float64{1000, 1000}},
	} {
		a := live.New()
		for i, want := range c.rates {
			report(a, "worker-1", int64(i+1), 0.4+0.6*float64(min(i, 1)))
			if last := i == len(c.rates)-1; last && i > 0 {
				report(a, "worker-0", 1, 1)
			}
			s := a.Tick(engine.PhaseWarmup, c.workers)
			if got := s.Payload.Ops.CurrentPerSec; got != want || s.Reported() != (want > 0) {
				t.Errorf("%s: tick %d shows %.0f operations a second, want %.0f; reported: %t", c.name, i+1, got, want,
					s.Reported())
			}
		}
	}
}
