package run_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/store"
)

// countedOpens counts how often a connection is unsealed.
type countedOpens struct {
	enginerun.ControlStore
	n atomic.Int64
	// failing is how many of the next fail.
	failing atomic.Int64
}

func (c *countedOpens) OpenDSN(ctx context.Context, ref engine.ConnectionRef) (string, secret.Secret, error) {
	c.n.Add(1)
	if c.failing.Add(-1) >= 0 {
		return "", secret.Secret{}, store.ErrUnavailable
	}
	return c.ControlStore.OpenDSN(ctx, ref)
}

func TestAConnectionIsUnsealedOnceAtCreateAndOnceAtStart(t *testing.T) {
	f := newFixture(t)
	counted := &countedOpens{}
	f.wrap = func(s enginerun.ControlStore) enginerun.ControlStore { counted.ControlStore = s; return counted }
	f.start()
	run, err := f.svc.Create(
		t.Context(),
		f.scenario(func(sc *engine.Scenario) { sc.Workload.DurationSeconds = 0.5 }),
		engine.Actor{Name: "ada"},
	)
	if err != nil {
		t.Fatal(err)
	}
	if n := counted.n.Swap(0); n != 1 {
		t.Errorf("creating unsealed it %d times", n)
	}
	if _, err := f.svc.Start(t.Context(), run.RunID, "ada"); err != nil {
		t.Fatal(err)
	}
	f.wait(run.RunID)
	if n := counted.n.Load(); n != 1 {
		t.Errorf("starting and running unsealed it %d times", n)
	}
}

// TestAStartOutlivesAConnectionThatCouldNotBeReadOnce: the store was away in that moment. The preparation asks it again.
func TestAStartOutlivesAConnectionThatCouldNotBeReadOnce(t *testing.T) {
	f := newFixture(t)
	counted := &countedOpens{}
	f.wrap = func(s enginerun.ControlStore) enginerun.ControlStore { counted.ControlStore = s; return counted }
	f.start()
	run, err := f.svc.Create(
		t.Context(),
		f.scenario(func(sc *engine.Scenario) { sc.Workload.DurationSeconds = 0.5 }),
		engine.Actor{Name: "ada"},
	)
	if err != nil {
		t.Fatal(err)
	}
	counted.failing.Store(1)
	if _, err := f.svc.Start(t.Context(), run.RunID, "ada"); err != nil {
		t.Fatal(err)
	}
	if r := f.wait(run.RunID); r.Status != engine.StatusCompleted {
		t.Errorf("the run ended as %s: %+v", r.Status, r)
	}
}
