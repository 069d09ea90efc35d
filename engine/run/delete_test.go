package run_test

import (
	"context"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/store"
)

// lateEnd takes its time for the end of a run whose figures are there.
type lateEnd struct{ enginerun.ControlStore }

func (s lateEnd) Transition(ctx context.Context, t store.Transition) ([]engine.Event, error) {
	if run, err := s.Run(ctx, t.RunID); err == nil && run.Status.Terminal() {
		time.Sleep(400 * time.Millisecond)
	}
	return s.ControlStore.Transition(ctx, t)
}

// TestARunWhoseFiguresAreThereIsDeleted: whoever sees them may delete it, though its end is being stored.
func TestARunWhoseFiguresAreThereIsDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.wrap = func(s enginerun.ControlStore) enginerun.ControlStore { return lateEnd{s} }
	f.start()
	run := f.run(func(sc *engine.Scenario) { sc.Workload.DurationSeconds, sc.Workload.WarmupSeconds = 0.5, 0 })
	for d := f.detail(run.RunID); d.Summary == nil; d = f.detail(run.RunID) {
		time.Sleep(5 * time.Millisecond)
	}
	if err := f.svc.Delete(t.Context(), run.RunID, "tester"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.svc.Detail(t.Context(), run.RunID); !engine.HasCode(err, engine.CodeNotFound) {
		t.Errorf("a deleted run gave %v", err)
	}
}
