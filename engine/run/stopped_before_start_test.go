package run_test

import (
	"context"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/store"
)

// overtaken is a store in which each run has been found, and is being ended, before its server claims it.
type overtaken struct{ enginerun.ControlStore }

func (s overtaken) Claim(ctx context.Context, c store.Claim) (int64, error) {
	run, err := s.Run(ctx, c.RunID)
	if err != nil {
		return 0, err
	}
	if run.Status == engine.StatusRunning {
		epoch, err := s.ControlStore.Claim(ctx, c)
		if err != nil {
			return 0, err
		}
		if _, err := s.Transition(ctx, store.Transition{RunID: c.RunID, Epoch: epoch,
			From: []engine.Status{engine.StatusRunning}, To: engine.StatusStopping}); err != nil {
			return 0, err
		}
	}
	return s.ControlStore.Claim(ctx, c)
}

// TestARunThatWasEndedMeanwhileIsNotBegun: load for a run that is over would be nobody's to stop.
func TestARunThatWasEndedMeanwhileIsNotBegun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.wrap = func(s enginerun.ControlStore) enginerun.ControlStore { return overtaken{s} }
	f.start()
	run, err := f.svc.Create(t.Context(), f.scenario(nil), engine.Actor{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.svc.Start(t.Context(), run.RunID, "test")
	if !engine.HasCode(err, engine.CodeConflict) {
		t.Errorf("%v, not a conflict", err)
	}
	if d := f.detail(run.RunID); d.Status != engine.StatusStopping || len(d.Workers) > 0 {
		t.Errorf("%s, with %d run workers", d.Status, len(d.Workers))
	}
}
