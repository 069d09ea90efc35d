package run_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/store/fake"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker"
	"github.com/loadstone-db/loadstone/engine/worker/load"
	"github.com/loadstone-db/loadstone/storage/results"
)

// timedLoad issues nothing, and notes when it would have.
type timedLoad struct {
	quietLoad
	mu                    sync.Mutex
	begun, measured, over time.Time
}

func (l *timedLoad) Start(p engine.Phase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun = time.Now(); p == engine.PhaseMeasurement {
		l.measured = l.begun
	}
}

func (l *timedLoad) SetPhase(p engine.Phase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p == engine.PhaseMeasurement {
		l.measured = time.Now()
	}
}

func (l *timedLoad) Stop() {
	l.mu.Lock()
	if l.over.IsZero() {
		l.over = time.Now()
	}
	l.mu.Unlock()
	l.quietLoad.Stop()
}

// succession is a run of 20 s on a node of another process, whose server is killed and succeeded.
type succession struct {
	load *timedLoad
	d    engine.RunDetail
	// ahead is that of the clock of the server that the run begins on.
	ahead time.Duration
}

// taken is when something was in the run's time.
func (s succession) taken(at time.Time) time.Time { return at.Add(s.ahead) }

// succeed carries a run on one server, whose clock is ahead, until it has been measured for a while, kills
// that one, and waits for the end of the run on another one.
func succeed(t *testing.T, ahead, behind, storeTakes, warmup, after time.Duration,
	second ...func(*enginerun.Options)) succession {
	t.Helper()
	folder, err := results.Open(filepath.Join(t.TempDir(), "results"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := &timedLoad{quietLoad: quietLoad{done: make(chan struct{})}}
	node := worker.NewNode(
		worker.Options{NodeID: "elsewhere", Sample: sampleMachine(), Plugins: quietHost{}, SpoolDir: t.TempDir(), Reserve: -1,
			Capacity: 10, Drivers: map[string]target.Driver{"postgres": quietDriver{}}, Log: zerolog.Nop(),
			Clock: func() time.Time { return time.Now().Add(-3 * time.Minute) },
			OpenLoad: func(context.Context, load.Config, int, func(int, int)) (worker.Load, error) {
				return l, nil
			}},
	)
	var serving sync.WaitGroup
	kept := lazyStore{fake.New(), storeTakes}
	server := func(owner string, ahead time.Duration, with ...func(*enginerun.Options)) *enginerun.Service {
		n := &farAway{name: owner, way: 2 * time.Millisecond, link: protocol.NewMemory()}
		serving.Go(func() { _ = node.Listen(ctx, n) })
		opts := enginerun.Options{Store: kept, Results: folder, Plugins: quietHost{}, Owner: owner,
			Drivers: map[string]target.Driver{"postgres": quietDriver{}}, Nodes: []protocol.Dialer{n.link}, Log: zerolog.Nop(),
			Version: "test", TempDir: t.TempDir(), Clock: func() time.Time { return time.Now().Add(ahead) },
			Plan: func(context.Context, prepare.Deps, engine.Scenario,
				func(engine.PrepareProgress)) (*prepare.Prepared, error) {
				time.Sleep(5 * time.Second) // the clocks have been compared by then
				return &prepare.Prepared{Plan: &engine.Plan{Driver: "postgres", KeySlots: 64}}, nil
			}}
		for _, change := range with {
			change(&opts)
		}
		svc := enginerun.New(opts)
		if err := svc.Open(ctx); err != nil {
			t.Fatal(err)
		}
		return svc
	}
	first, heir := server("a", ahead), server("b", behind, second...)
	defer func() {
		closing, done := context.WithTimeout(context.Background(), 10*time.Minute)
		defer done()
		if err := heir.Close(closing); err != nil {
			t.Error(err)
		}
		cancel()
		serving.Wait()
	}()
	sc := engine.Scenario{Name: "inherited", Workload: engine.Workload{Plugin: "mix", LoadMode: engine.LoadConcurrency,
		ConcurrentConnections: 1, WarmupSeconds: warmup.Seconds(), DurationSeconds: 60, Repeat: 1},
		Scaling: engine.Scaling{Mode: engine.ScalingFixed, WorkerCount: 1, PerWorkerCapacity: 1, MinWorkers: 1}}
	run := engine.Run{RunID: "run-1", ResultID: "run-1", RunName: "inherited", Scenario: sc, Status: engine.StatusPrepared,
		Phase: engine.PhasePreparing, WorkersExpected: 1}
	if err := kept.CreateRun(ctx, run); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Start(ctx, run.RunID, "tester"); err != nil {
		t.Fatal(err)
	}
	for begun := false; !begun; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		begun = !l.begun.IsZero()
		l.mu.Unlock()
	}
	time.Sleep(after)
	first.Kill()
	s := succession{load: l, ahead: ahead}
	for !s.d.Status.Terminal() || s.d.Phase != engine.PhaseNone {
		time.Sleep(time.Second)
		if s.d, err = heir.Detail(ctx, run.RunID); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestATakenOverRunIsMeasuredOverItsLoad: the measurement of a run that another server goes on with is
// that of its load to the millisecond, however long the store took to say that it began, whichever of
// the servers' clocks is ahead, and also when the node heard of it from the second one only.
func TestATakenOverRunIsMeasuredOverItsLoad(t *testing.T) {
	for name, c := range map[string]struct{ ahead, behind, store, warmup, after time.Duration }{
		"in the measurement":            {after: 2 * time.Second},
		"with a slow store":             {store: 400 * time.Millisecond, after: 2 * time.Second},
		"with a store that is too slow": {store: 3 * time.Second, after: 8 * time.Second},
		"in the warm-up":                {warmup: 40 * time.Second, store: 300 * time.Millisecond, after: 5 * time.Second},
		"before the measurement was told": {warmup: 8 * time.Second, store: 300 * time.Millisecond,
			after: 8200 * time.Millisecond},
		"the second clock ahead":  {behind: 10 * time.Minute, after: 2 * time.Second},
		"the second clock behind": {ahead: 10 * time.Minute, after: 2 * time.Second},
		"a second apart":          {ahead: 300 * time.Millisecond, behind: -700 * time.Millisecond, after: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := succeed(t, c.ahead, c.behind, c.store, c.warmup, c.after)
				const off = 20 * time.Millisecond // the node has no better idea of the clocks
				near := func(what string, got, want time.Time) {
					t.Helper()
					if d := got.Sub(want); d.Abs() > off {
						t.Errorf("%s is %v from when it was", what, d)
					}
				}
				sum := s.d.Summary
				if s.d.Status != engine.StatusCompleted || s.d.Owner != "b" || sum == nil || sum.DurationSeconds != 60 {
					t.Fatalf("%s of %s, %+v", s.d.Status, s.d.Owner, sum)
				}
				if took := s.load.over.Sub(s.load.measured); (took - time.Minute).Abs() > off {
					t.Errorf("the load was measured for %v", took)
				}
				near("the begin", sum.MeasuredFrom.Time, s.taken(s.load.measured))
				near("the end", sum.MeasuredTo.Time, s.taken(s.load.over))
				near("what is stored as the end", s.d.MeasurementEndTime.Time, s.taken(s.load.over))
				notes := strings.Join(sum.ValidityDetail.Notes, " ")
				if says := strings.Contains(notes, "the run's time, by which the run went on"); says != (c.ahead != c.behind) {
					t.Error(notes)
				}
				for _, cause := range sum.ValidityDetail.Causes {
					if cause.Cause == "snapshot_gap" && (cause.To.Sub(cause.From.Time) < 10*time.Second ||
						cause.To.Sub(cause.From.Time) > 40*time.Second) {
						t.Errorf("nobody carried it from %v to %v", cause.From, cause.To)
					}
				}
			})
		})
	}
}

// planless is a store in which no plan is found.
type planless struct{ lazyStore }

func (p planless) Results(ctx context.Context, runID string) ([]engine.RunResult, error) {
	rows, err := p.lazyStore.Results(ctx, runID)
	for i := range rows {
		rows[i].Plan = nil
	}
	return rows, err
}

// TestARunThatIsEndedIsMeasuredFromItsLoad: nobody can go on with it, and yet its window begins when its load
// entered the measurement, and its end is one of the run's time.
func TestARunThatIsEndedIsMeasuredFromItsLoad(t *testing.T) {
	for name, c := range map[string]struct{ ahead, behind, store time.Duration }{
		"with a slow store": {store: 400 * time.Millisecond}, "the second clock ahead": {behind: 10 * time.Minute},
		"the second clock behind": {ahead: 10 * time.Minute, store: 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := succeed(t, c.ahead, c.behind, c.store, 0, 8*time.Second, func(o *enginerun.Options) {
					o.Store = planless{o.Store.(lazyStore)}
				})
				sum := s.d.Summary
				if s.d.Status != engine.StatusFailed || s.d.Owner != "b" || sum == nil {
					t.Fatalf("%s of %s, %+v", s.d.Status, s.d.Owner, sum)
				}
				if d := sum.MeasuredFrom.Sub(s.taken(s.load.measured)); d.Abs() > 20*time.Millisecond {
					t.Errorf("the window begins %v from when the load entered it", d)
				}
				if d := s.d.EndTime.Sub(s.taken(s.load.over)); d.Abs() > 10*time.Second {
					t.Errorf("the run ends %v after its load, by its own time", d)
				}
			})
		})
	}
}
