package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
)

// knee is a driver whose tables are those of a real database, and whose load
// goes to a queueing model with a known limit.
type knee struct {
	target.Driver
	model string
}

type kneeDatabase struct {
	target.Database
	load target.Database
}

func (k knee) Open(cfg target.Config) (target.Database, error) {
	real, err := k.Driver.Open(cfg)
	if err != nil {
		return nil, err
	}
	cfg.DSN = secret.New(k.model)
	load, err := k.Driver.Open(cfg)
	return kneeDatabase{real, load}, errors.Join(err)
}

func (d kneeDatabase) Connect(ctx context.Context, s []engine.Statement) (target.Conn, error) {
	// The model answers every statement with one number.
	s = slices.Clone(s)
	for i := range s {
		s[i].Columns = nil
	}
	return d.load.Connect(ctx, s)
}

func (d kneeDatabase) Classify(err error) engine.ExecutionError { return d.load.Classify(err) }

func (d kneeDatabase) Close() error { return errors.Join(d.Database.Close(), d.load.Close()) }

// model starts a target that serves so many executions at once, each for that long.
func (f *fixture) model(servers int, latency time.Duration) *nullpg.Server {
	f.t.Helper()
	s, err := nullpg.Listen(f.t.Context(), "127.0.0.1:0", nullpg.Options{Latency: latency, Servers: servers})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = s.Close() })
	f.driver = knee{postgres.NewDriver(), s.DSN()}
	return s
}

// searching makes a scenario a search with steps of a second.
func searching(sc *engine.Scenario) {
	sc.Workload.LoadMode = engine.LoadFindMax
	sc.Workload.Params = json.RawMessage(`{"weights": {"POINT_LOOKUP": 100}}`)
	sc.Workload.ConcurrentConnections = 2
	sc.Workload.WarmupSeconds = 0.3
	sc.Scaling = engine.Scaling{Mode: engine.ScalingFixed, WorkerCount: 2, PerWorkerCapacity: 40}
	// Throughput decides: a busy machine adds to the latency, and not to that.
	most, p95 := 60, 2000.0
	sc.FindMax = engine.FindMax{Enabled: true, Unit: engine.FindMaxConnections, StartConcurrency: 2,
		ConcurrencyIncrement: 4, MaxConcurrency: &most,
		StepDurationSeconds: 1, MaxDurationSeconds: 120, QPSStabilityPct: 5, LatencyStabilityPct: 60, MaxErrorRatePct: 1,
		SLO: &engine.SLO{P95Ms: &p95}}
}

// withoutAnswer reports that a search has none because the generator was late, which a busy machine makes of it.
func withoutAnswer(t *testing.T, r *engine.FindMaxResult) bool {
	t.Helper()
	none := r != nil && !r.Found && strings.HasPrefix(r.Reason, "The generator was late")
	if none {
		t.Log(r.Reason)
	}
	return none
}

// TestASearchOverTheRate: the same target drains 160/s.
func TestASearchOverTheRate(t *testing.T) {
	if testing.Short() {
		t.Skip("make check-ci: it takes many seconds")
	}
	t.Parallel()
	f := newFixture(t)
	// A thousand operations, which a step needs, are a few seconds then.
	f.model(8, 10*time.Millisecond)
	f.start()
	start, more := 200.0, 250.0
	run := f.run(func(sc *engine.Scenario) {
		searching(sc)
		sc.Workload.ConcurrentConnections = 32
		sc.Workload.MaxInFlight = 10_000
		sc.Workload.Arrival = engine.ArrivalConstant
		sc.FindMax.Unit, sc.FindMax.MaxConcurrency = engine.FindMaxRate, nil
		sc.FindMax.StartRate, sc.FindMax.RateIncrement = &start, &more
	})
	sum := f.wait(run.RunID)
	r := sum.FindMax
	if withoutAnswer(t, r) {
		return
	}
	if sum.Status != engine.StatusCompleted || r == nil || r.MaxQPSTarget == nil {
		t.Fatalf("%s, %+v\n%s", sum.Status, r, f.logs(run.RunID))
	}
	if q := *r.MaxQPSTarget; q < 300 || q > 950 {
		t.Errorf("found %.0f/s, the target drains 800/s\n%s", q, f.logs(run.RunID))
	}
	if !sum.Accounting.Balanced {
		t.Errorf("accounting %+v", sum.Accounting)
	}
}

// TestASearchThatIsStopped answers with what is known by then.
func TestASearchThatIsStopped(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	run := f.run(searching)
	f.until(run.RunID, func(p *engine.LiveState) bool { return p.FindMax != nil && p.FindMax.CurrentStep >= 3 })
	if _, err := f.svc.Stop(t.Context(), run.RunID, "tester"); err != nil {
		t.Fatal(err)
	}
	sum := f.wait(run.RunID)
	if r := sum.FindMax; sum.Status != engine.StatusCancelled || r == nil || r.Confirmed ||
		r.Reason == "" || !sum.Accounting.Balanced {
		t.Errorf("%s %+v\n%s", sum.Status, r, f.logs(run.RunID))
	}
}

// TestASearchWhoseTargetDies fails as every run does, with what is known by then.
func TestASearchWhoseTargetDies(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.model(8, 50*time.Millisecond)
	f.start()
	run := f.run(searching)
	f.until(run.RunID, func(p *engine.LiveState) bool { return p.FindMax != nil && p.FindMax.CurrentStep >= 2 })
	_ = s.Close()
	sum := f.wait(run.RunID)
	if r := sum.FindMax; sum.Status != engine.StatusFailed || r == nil || r.Confirmed {
		t.Errorf("%s %+v\n%s", sum.Status, r, f.logs(run.RunID))
	}
}

// TestASearchWithWorkersThatComeAndGo: at 4 connections each, the climb needs
// more run workers and the way back fewer; no record is lost or repeated.
func TestASearchWithWorkersThatComeAndGo(t *testing.T) {
	if testing.Short() {
		t.Skip("make check-ci: it takes many seconds")
	}
	t.Parallel()
	f := newFixture(t)
	f.model(8, 10*time.Millisecond) // a step takes 1 000 operations
	f.start()
	run := f.run(func(sc *engine.Scenario) {
		searching(sc)
		sc.Scaling = engine.Scaling{Mode: engine.ScalingAuto, WorkerCount: 1, PerWorkerCapacity: 4}
	})
	sum := f.wait(run.RunID)
	r := sum.FindMax
	if withoutAnswer(t, r) {
		return
	}
	if sum.Status != engine.StatusCompleted || r == nil || !r.Found || *r.MaxConnections < 4 {
		t.Fatalf("%s, %+v\n%s", sum.Status, r, f.logs(run.RunID))
	}
	if !sum.Accounting.Balanced {
		t.Errorf("accounting %+v", sum.Accounting)
	}
	d := f.settled(run.RunID)
	if len(d.Workers) < 3 {
		t.Errorf("%d run workers\n%s", len(d.Workers), f.logs(run.RunID))
	}
	var recorded int64
	for _, w := range d.Workers {
		if w.Figures == nil || !w.Figures.Accounting.Balanced || w.FailureReason != "" {
			t.Errorf("%s: %+v, %s", w.WorkerID, w.Figures, w.FailureReason)
			continue
		}
		recorded += w.Figures.Accounting.Recorded
	}
	if recorded != sum.Accounting.Recorded {
		t.Errorf("the run workers recorded %d, the run %d", recorded, sum.Accounting.Recorded)
	}
	retired := 0
	for _, e := range d.Events {
		if e.Type == engine.EventStop && e.Data.Scope == engine.ScopeWorker {
			retired++
		}
	}
	if retired == 0 {
		t.Errorf("nobody retired\n%s", f.logs(run.RunID))
	}
}

// TestAutomaticScaling places as many run workers as the connections need.
func TestAutomaticScaling(t *testing.T) {
	f := newFixture(t).start()
	run := f.run(func(sc *engine.Scenario) {
		sc.Workload.ConcurrentConnections = 5
		sc.Scaling = engine.Scaling{Mode: engine.ScalingBounded, WorkerCount: 1, PerWorkerCapacity: 2, MinWorkers: 1,
			MaxWorkers: 4}
	})
	sum := f.wait(run.RunID)
	if d := f.settled(run.RunID); sum.Status != engine.StatusCompleted || len(d.Workers) != 3 || !sum.Accounting.Balanced {
		t.Errorf("%s with %d run workers, %+v", sum.Status, len(d.Workers), sum.Accounting)
	}
}
