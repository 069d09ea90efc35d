package run_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
)

// lateStore answers Run only when its gate, if there is one, is open.
type lateStore struct {
	enginerun.ControlStore
	gate atomic.Pointer[chan struct{}]
}

func (s *lateStore) Run(ctx context.Context, runID string) (engine.Run, error) {
	if gate := s.gate.Load(); gate != nil {
		<-*gate
	}
	return s.ControlStore.Run(ctx, runID)
}

func TestADetailNeverShowsAFinishedRunWithoutItsFigures(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	late := &lateStore{}
	f.wrap = func(s enginerun.ControlStore) enginerun.ControlStore {
		late.ControlStore = s
		return late
	}
	f.start()
	run := f.run(func(sc *engine.Scenario) { sc.Workload.DurationSeconds, sc.Workload.WarmupSeconds = 0.5, 0 })
	f.until(run.RunID, phase(engine.PhaseMeasurement))
	gate := make(chan struct{})
	late.gate.Store(&gate)
	seen := make(chan engine.RunDetail, 1)
	go func() {
		d, err := f.svc.Detail(context.Background(), run.RunID)
		if err != nil {
			t.Error(err)
		}
		seen <- d
	}()
	updates, cancel, err := f.svc.Subscribe(run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	for range updates { // closed when nothing is left to do
	}
	close(gate)
	if d := <-seen; d.Status.Terminal() && d.Phase == engine.PhaseNone && d.Summary == nil {
		t.Fatalf("the run is %s, nothing is left to do, and there are no figures", d.Status)
	}
}
