package recovery

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/enrichment"
	"github.com/loadstone-db/loadstone/engine/run/finalize"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/store/fake"
	"github.com/loadstone-db/loadstone/storage/results"
)

// idleProcess is a process that carries no run.
type idleProcess struct {
	mu    sync.Mutex
	shown []bool // whether it was the last, for each state
}

func (*idleProcess) Has(string) bool          { return false }
func (*idleProcess) ActiveRunIDs() []string   { return nil }
func (*idleProcess) Closed() bool             { return false }
func (*idleProcess) Resume(ResumedRun) string { return "nobody does here" }

func (*idleProcess) Now() time.Time { return time.Now() }

func (*idleProcess) BroadcastAndWait(context.Context, protocol.RunState) {}

func (*idleProcess) RestoreTarget(engine.Run, *engine.Plan) string { return "" }

func (a *idleProcess) Publish(_ string, _ *engine.LiveState, last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shown = append(a.shown, last)
}

// TestARunOfAnEarlierProcessIsEnded: with its reason, its interval, figures without a
// record, and under an epoch that the process before cannot write with.
func TestARunOfAnEarlierProcessIsEnded(t *testing.T) {
	t.Run("before its load", func(t *testing.T) {
		run, result := endedAfter(t, nil, 0)
		if run.CancellationReason == nil || *run.CancellationReason != "The server restarted while the run was RUNNING, "+
			"before its load began; it was last heard of at "+run.EndTime.Format(engine.TimeLayout) {
			t.Errorf("%+v", run)
		}
		if v := result.Validity; v.Verdict != engine.VerdictNone || len(v.Causes) != 0 {
			t.Errorf("nothing is missing of what was not begun: %+v", v)
		}
	})
	t.Run("in its warm-up, and the server was away for three hours", func(t *testing.T) {
		warmup := engine.PhaseWarmup
		run, result := endedAfter(t, &store.Transition{RunID: "r", Phase: &warmup, StartTime: time.Now(),
			WarmupStartTime: time.Now(), From: []engine.Status{engine.StatusRunning}}, 3*time.Hour)
		if run.CancellationReason == nil || !strings.HasPrefix(*run.CancellationReason,
			"The server restarted while the run was RUNNING, last heard of at "+run.EndTime.Format(engine.TimeLayout)+
				"; its executions from ") {
			t.Errorf("%+v", run)
		}
		// Nothing was heard of it since; its load may have gone on for as long as it may without its server.
		if took := run.EndTime.Sub(run.StartTime.Time); took > time.Minute {
			t.Errorf("it is said to have taken %v", took)
		}
		if most := run.EndTime.Add(protocol.ReassignAfter).Format(engine.TimeLayout); !strings.Contains(
			*run.CancellationReason, "to "+most+" are not recorded") {
			t.Errorf("%s, want up to %s", *run.CancellationReason, most)
		}
		if v := result.Validity; len(v.Causes) == 0 {
			t.Errorf("%+v", v)
		}
	})
}

// endedAfter is what becomes of a run that a process left, which had come to what began tells, when another one opens
// the store so much later.
func endedAfter(t *testing.T, began *store.Transition, away time.Duration) (engine.Run, engine.RunResult) {
	ctx, cancel := context.WithCancel(t.Context())
	var routines sync.WaitGroup
	defer routines.Wait()
	defer cancel()
	s := fake.New()
	folder, err := results.Open(filepath.Join(t.TempDir(), "results"))
	if err != nil {
		t.Fatal(err)
	}
	run := engine.Run{RunID: "r", ResultID: "r", RunName: "left", Status: engine.StatusPrepared,
		Phase: engine.PhasePreparing, WorkersExpected: 1, Scenario: engine.Scenario{Name: "left"}}
	if err := s.CreateRun(ctx, run); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Transition(ctx, store.Transition{RunID: "r", From: []engine.Status{engine.StatusPrepared},
		To: engine.StatusRunning, Owner: "a"}); err != nil {
		t.Fatal(err)
	}
	before, err := s.Claim(ctx, store.Claim{RunID: "r", Owner: "a", Reclaim: true})
	if err != nil {
		t.Fatal(err)
	}
	if began != nil {
		began.Epoch = before
		if _, err := s.Transition(ctx, *began); err != nil {
			t.Fatal(err)
		}
	}
	rules := []engine.RuleState{{Name: "reads", Status: engine.RuleRunning, In: 7},
		{Name: "stops", Status: engine.RuleTriggered, Row: "p99 7"}, {Name: "over", Status: engine.RuleEnded}}
	if err := s.SaveTick(ctx, store.Tick{RunID: "r", Epoch: before, Rules: rules}); err != nil {
		t.Fatal(err)
	}
	enrichments := enrichment.New(enrichment.Options{Store: s, Results: folder, Log: zerolog.Nop(), Lifetime: ctx,
		Routines: &routines})
	live := &idleProcess{}
	r := New(Options{Store: s, Version: "test", Owner: "a", Log: zerolog.Nop(), Lifetime: ctx, Routines: &routines,
		Clock: func() time.Time { return time.Now().Add(away) },
		Finalizer: finalize.New(finalize.Options{Store: s, Results: folder, Log: zerolog.Nop(),
			Enrichments: enrichments}), Enrichments: enrichments, Runs: live, Nodes: live})
	if err := r.Open(ctx); err != nil {
		t.Fatal(err)
	}
	routines.Wait() // nothing is left to do
	got, err := s.Run(ctx, "r")
	if err != nil || got.Status != engine.StatusFailed || got.Phase != engine.PhaseNone ||
		got.StopReason != engine.StopWorkerFailure {
		t.Errorf("%+v, %v", got, err)
	}
	// A rule whose process is gone is over.
	rules[0].Status, rules[0].Failure = engine.RuleFailed, "what carried the run was gone before the rule had ended"
	if !slices.Equal(got.Rules, rules) {
		t.Errorf("its rules are %+v", got.Rules)
	}
	rows, err := s.Results(ctx, "r")
	if err != nil || len(rows) != 1 || rows[0].Figures == nil || rows[0].Validity == nil {
		t.Fatalf("%d rows of results, %v", len(rows), err)
	}
	if err := s.SaveTick(ctx, store.Tick{RunID: "r", Epoch: before}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the process before writes: %v", err)
	}
	if n := len(live.shown); n == 0 || !live.shown[n-1] {
		t.Errorf("shown %v", live.shown)
	}
	if r.IsHandling("r") {
		t.Error("it is still in hand")
	}
	return got, rows[0]
}

// TestARunThatNobodyCarriesLosesItsLease: its start was committed after the server had given it up and had found it
// PREPARED still. The lease was renewed with those of the owner's other runs, so that the run never ended.
func TestARunThatNobodyCarriesLosesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var routines sync.WaitGroup
		defer routines.Wait()
		defer cancel()
		s := fake.New()
		folder, err := results.Open(filepath.Join(t.TempDir(), "results"))
		if err != nil {
			t.Fatal(err)
		}
		enrichments := enrichment.New(enrichment.Options{Store: s, Results: folder, Log: zerolog.Nop(), Lifetime: ctx,
			Routines: &routines})
		live := &idleProcess{}
		r := New(Options{Store: s, Version: "test", Owner: "a", Log: zerolog.Nop(), Lifetime: ctx, Routines: &routines,
			Finalizer: finalize.New(finalize.Options{Store: s, Results: folder, Log: zerolog.Nop(),
				Enrichments: enrichments}), Enrichments: enrichments, Runs: live, Nodes: live})
		routines.Go(func() { r.WatchLeases().Run(ctx) })
		for _, err := range []error{
			s.CreateRun(ctx, engine.Run{RunID: "r", ResultID: "r", Status: engine.StatusPrepared,
				Phase: engine.PhasePreparing, WorkersExpected: 1}),
			func() error { r.EndUnowned("r", time.Now()); return nil }(), // nothing is there to be ended yet
			func() error {
				_, err := s.Transition(ctx, store.Transition{RunID: "r", From: []engine.Status{engine.StatusPrepared},
					To: engine.StatusRunning, Owner: "a"})
				return err
			}(),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(store.LeaseDuration + 20*time.Second)
		synctest.Wait()
		if run, err := s.Run(ctx, "r"); err != nil || !run.Status.Terminal() || run.Phase != engine.PhaseNone {
			t.Errorf("the run is %s, %s: %v", run.Status, run.Phase, err)
		}
	})
}

// flakyStore cannot read runs a few times.
type flakyStore struct {
	*fake.Store
	mu   sync.Mutex
	fail int
}

func (f *flakyStore) Run(ctx context.Context, id string) (engine.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail--; f.fail >= 0 || id == "broken" {
		return engine.Run{}, store.ErrUnavailable
	}
	return f.Store.Run(ctx, id)
}

// TestWhatCouldNotBeFinishedIsTriedAgain: a run that was claimed has its lease renewed with the
// others of its owner, so that nobody else would ever end it.
func TestWhatCouldNotBeFinishedIsTriedAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var routines sync.WaitGroup
	defer routines.Wait()
	defer cancel()
	s := &flakyStore{Store: fake.New()}
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
	r := New(Options{Store: s, Version: "test", Owner: "a", Log: zerolog.Nop(), Lifetime: ctx, Routines: &routines,
		Finalizer: finalize.New(finalize.Options{Store: s, Results: folder, Log: zerolog.Nop(),
			Enrichments: enrichments}), Enrichments: enrichments, Runs: live, Nodes: live})
	s.fail = 1
	run, _ := s.Store.Run(ctx, "r")
	if err := r.finish(ctx, run, "It is gone", true); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("the first time: %v", err)
	}
	r.unfinished["broken"] = "It is gone" // and can never be read
	if _, err := (runLeases{r}).Expired(ctx); err != nil {
		t.Fatal(err)
	}
	routines.Wait()
	delete(r.unfinished, "broken")
	if run, err = s.Run(ctx, "r"); err != nil || run.Status != engine.StatusFailed || run.Phase != engine.PhaseNone {
		t.Errorf("it is %s, %s: %v", run.Status, run.Phase, err)
	}
	if len(r.unfinished) > 0 {
		t.Errorf("%v is left", r.unfinished)
	}
}

// TestWhenALostRunWasLastHeardOf: by its last second, by what is recorded behind that, or by its row.
func TestWhenALostRunWasLastHeardOf(t *testing.T) {
	start := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	loaded := engine.Run{StartTime: engine.At(start), WarmupStartTime: engine.At(at(5))}
	part := func(s int) engine.Artifact { return engine.Artifact{MaxTime: engine.At(at(s))} }
	for name, c := range map[string]struct {
		run        engine.Run
		last, told int
		parts      []engine.Artifact
		want       int
	}{
		"its last second":                 {loaded, 20, 21, []engine.Artifact{part(10), {}}, 20},
		"a node recorded more":            {loaded, 20, 21, []engine.Artifact{part(10), part(28), part(15)}, 28},
		"its preparation":                 {engine.Run{StartTime: engine.At(start)}, 0, 40, nil, 40},
		"the store's clock is ahead":      {engine.Run{StartTime: engine.At(start)}, 0, 4000, nil, 60},
		"the store's clock is behind":     {engine.Run{StartTime: engine.At(start)}, 0, -4000, nil, 0},
		"before it had a time of its own": {engine.Run{}, 3, 40, nil, 40},
	} {
		if got := lastSeen(c.run, at(c.last), at(c.told), at(60), c.parts); !got.Equal(at(c.want)) {
			t.Errorf("%s: %v, want %v", name, got, at(c.want))
		}
	}
}
