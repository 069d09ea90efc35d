package aggregate_test

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/aggregate"
)

func TestAPointBelongsToThePhaseOfItsSnapshots(t *testing.T) {
	a := aggregate.New()
	workers := []aggregate.Worker{{WorkerID: "worker-0"}, {WorkerID: "worker-1"}}
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
	if s = a.Tick(engine.PhaseMeasurement, workers); !s.Reported() ||
		s.PhaseOf(engine.PhaseMeasurement) != engine.PhaseWarmup {
		t.Errorf("a second of warm-up is one of %s", s.PhaseOf(engine.PhaseMeasurement))
	}
	snapshot("worker-0", 2, engine.PhaseWarmup)
	snapshot("worker-1", 2, engine.PhaseMeasurement)
	if s = a.Tick(engine.PhaseMeasurement, workers); s.PhaseOf(engine.PhaseMeasurement) != engine.PhaseMeasurement {
		t.Error("a second with measurement in it is one of warm-up")
	}
	if s = a.Tick(engine.PhaseCooldown, workers); !s.Reported() ||
		s.PhaseOf(engine.PhaseCooldown) != engine.PhaseCooldown {
		t.Error("a second without a new snapshot has lost its phase")
	}
}
