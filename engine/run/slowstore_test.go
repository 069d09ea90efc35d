package run_test

import (
	"context"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/store"
)

// slowStore takes its time for the beginning of a phase, less than the deadline of its events.
type slowStore struct{ enginerun.ControlStore }

func (s slowStore) Transition(ctx context.Context, t store.Transition) ([]engine.Event, error) {
	for _, e := range t.Events {
		if e.Type == engine.EventSetPhase {
			time.Sleep(450 * time.Millisecond)
		}
	}
	return s.ControlStore.Transition(ctx, t)
}

func TestASlowStoreDoesNotShortenTheMeasurement(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.wrap = func(s enginerun.ControlStore) enginerun.ControlStore { return slowStore{s} }
	f.start()
	run := f.run(func(sc *engine.Scenario) { sc.Workload.DurationSeconds, sc.Workload.WarmupSeconds = 1, 0 })
	if sum := f.wait(run.RunID); sum.DurationSeconds < 0.8 {
		t.Fatalf("measured for %.2f s of 1 s", sum.DurationSeconds)
	}
}
