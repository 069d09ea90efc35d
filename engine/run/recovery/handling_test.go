package recovery

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/enrichment"
	"github.com/loadstone-db/loadstone/engine/run/finalize"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/store/fake"
	"github.com/loadstone-db/loadstone/storage/results"
)

// hookedStore calls a function before a run is read, and one before its last step.
type hookedStore struct {
	*fake.Store
	read, last func()
}

func (b *hookedStore) Run(ctx context.Context, id string) (engine.Run, error) {
	if do := b.read; do != nil {
		b.read = nil
		do()
	}
	return b.Store.Run(ctx, id)
}

func (b *hookedStore) Transition(ctx context.Context, t store.Transition) ([]engine.Event, error) {
	if do := b.last; do != nil && t.Phase != nil && *t.Phase == engine.PhaseNone {
		b.last = nil
		do()
	}
	return b.Store.Transition(ctx, t)
}

// leftRunning is a service with a run that an earlier process of its owner has left RUNNING.
func leftRunning(t *testing.T, s *hookedStore) (r *Service, run engine.Run, wait func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var routines sync.WaitGroup
	t.Cleanup(func() { cancel(); routines.Wait() })
	s.Store = fake.New()
	if err := s.CreateRun(ctx, engine.Run{RunID: "r", ResultID: "r", Status: engine.StatusPrepared,
		Phase: engine.PhasePreparing, WorkersExpected: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Transition(ctx, store.Transition{RunID: "r", From: []engine.Status{engine.StatusPrepared},
		To: engine.StatusRunning, Owner: "a"}); err != nil {
		t.Fatal(err)
	}
	folder, err := results.Open(filepath.Join(t.TempDir(), "results"))
	if err != nil {
		t.Fatal(err)
	}
	enrichments := enrichment.New(enrichment.Options{Store: s, Results: folder, Log: zerolog.Nop(), Lifetime: ctx,
		Routines: &routines})
	live := &idleProcess{}
	r = New(Options{Store: s, Version: "test", Owner: "a", Log: zerolog.Nop(), Lifetime: ctx, Routines: &routines,
		Finalizer: finalize.New(finalize.Options{Store: s, Results: folder, Log: zerolog.Nop(),
			Enrichments: enrichments}), Enrichments: enrichments, Runs: live, Nodes: live})
	run, err = s.Store.Run(ctx, "r")
	if err != nil {
		t.Fatal(err)
	}
	return r, run, routines.Wait
}

// TestARunIsFinishedByOneAtATime: whoever could not start it and the look at the leases meet; the
// second claim would fence the first, and when its answer is lost, nobody goes on.
func TestARunIsFinishedByOneAtATime(t *testing.T) {
	s := &hookedStore{}
	r, run, wait := leftRunning(t, s)
	s.read = func() {
		if err := r.finish(t.Context(), run, "It could not be started", true); !errors.Is(err, errAlreadyHandled) {
			t.Errorf("a second one: %v", err)
		}
	}
	if err := r.finish(t.Context(), run, "It is gone", true); err != nil {
		t.Fatal(err)
	}
	wait()
	got, err := s.Run(t.Context(), "r")
	if err != nil || got.Phase != engine.PhaseNone || got.OwnerEpoch != run.OwnerEpoch+1 {
		t.Errorf("it is %s, %s in epoch %d after %d: %v", got.Status, got.Phase, got.OwnerEpoch, run.OwnerEpoch, err)
	}
	if r.IsHandling("r") || len(r.unfinished) > 0 {
		t.Errorf("it is in hand (%t), or left: %v", r.IsHandling("r"), r.unfinished)
	}
}

// TestARunThatALateClaimHasFencedIsFinished: a claim whose answer was lost may be committed after the
// next one. The lease goes on to be renewed as one of this owner's, so that nobody else comes.
func TestARunThatALateClaimHasFencedIsFinished(t *testing.T) {
	s := &hookedStore{}
	r, run, wait := leftRunning(t, s)
	s.last = func() {
		if _, err := s.Claim(t.Context(), store.Claim{RunID: "r", Owner: "a", Reclaim: true}); err != nil {
			t.Error(err)
		}
	}
	if err := r.finish(t.Context(), run, "It is gone", true); err != nil {
		t.Fatal(err)
	}
	wait()
	if got, _ := s.Run(t.Context(), "r"); got.Phase != engine.PhaseProcessing {
		t.Fatalf("it is in %q: the claim came too late to be missed", got.Phase)
	}
	if _, err := (runLeases{r}).Expired(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait()
	got, err := s.Run(t.Context(), "r")
	if err != nil || got.Status != engine.StatusFailed || got.Phase != engine.PhaseNone {
		t.Errorf("it is %s, %q: %v", got.Status, got.Phase, err)
	}
	if len(r.unfinished) > 0 {
		t.Errorf("%v is left", r.unfinished)
	}
}
