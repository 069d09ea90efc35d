package run_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
)

// told are the SET_WORKER_TARGET events of a run that were given for a reason.
func told(d engine.RunDetail, reason string) (out []engine.EventData) {
	for _, e := range d.Events {
		if e.Type == engine.EventSetWorkerTarget && e.Data.Reason == reason {
			out = append(out, e.Data)
		}
	}
	return out
}

// TestEveryRunWorkerIsToldItsRate: a FIXED run over the rate with stages tells each
// run worker its own targets at the start and with every stage, and shows those in force.
func TestEveryRunWorkerIsToldItsRate(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	first, more := 30.0, 60.0
	run := f.run(func(sc *engine.Scenario) {
		sc.Workload.Params = json.RawMessage(`{"weights": {"POINT_LOOKUP": 100}}`)
		sc.Workload.LoadMode, sc.Workload.Arrival, sc.Workload.TargetQPS = engine.LoadQPS, engine.ArrivalConstant, &first
		sc.Workload.DurationSeconds, sc.Workload.MaxInFlight = 4, 1000
		sc.Workload.Stages = []engine.Stage{{DurationSeconds: 1, TargetQPS: &more, Ramp: engine.RampLinear},
			{DurationSeconds: 3, TargetQPS: &more, Ramp: engine.RampStep}}
		sc.Scaling.WorkerCount = 3
	})
	inForce := func(run engine.Run, rate float64) bool {
		for _, id := range []string{"worker-0", "worker-1", "worker-2"} {
			if q := run.WorkerTargets[id].TargetQPS; q == nil || *q != rate || run.WorkerTargets[id].TargetConnections == 0 {
				return false
			}
		}
		return len(run.WorkerTargets) == 3 && run.WorkersExpected == 3
	}
	if d := f.detail(run.RunID); !inForce(d.Run, 10) {
		t.Errorf("in force at the start: %+v", d.WorkerTargets)
	}
	f.until(run.RunID, func(p *engine.LiveState) bool {
		return p.Timing.PhaseElapsedSeconds != nil && phase(engine.PhaseMeasurement)(p) && *p.Timing.PhaseElapsedSeconds > 2
	})
	if d := f.detail(run.RunID); d.Status != engine.StatusRunning || !inForce(d.Run, 20) {
		t.Errorf("in force in the second stage of a run that is %s: %+v", d.Status, d.WorkerTargets)
	}
	sum := f.wait(run.RunID)
	// What the events say changes nothing of what the run workers do by themselves: 45 on the ramp, 180 after it, and
	// the warm-up's.
	if n := sum.Accounting.Scheduled - sum.Accounting.Warmup; sum.Status != engine.StatusCompleted ||
		!sum.Accounting.Balanced || n < 222 || n > 228 {
		t.Errorf("%s, %d due in the measurement, %+v", sum.Status, n, sum.Accounting)
	}
	d := f.settled(run.RunID)
	stored, err := f.store.Run(t.Context(), run.RunID)
	if err != nil || !inForce(stored, 20) {
		t.Errorf("stored: %+v, %v", stored.WorkerTargets, err)
	}
	for _, want := range []struct {
		reason    string
		n         int
		rate      float64
		lastRamps float64
	}{{engine.TargetInitial, 3, 10, 0}, {engine.TargetStage, 6, 20, 0}} {
		got := told(d, want.reason)
		if len(got) != want.n {
			t.Errorf("%d events %q, want %d", len(got), want.reason, want.n)
			continue
		}
		for i, e := range got {
			if e.Scope != engine.ScopeWorker || e.WorkerID == "" || e.WorkerGroupID == nil || *e.WorkerGroupID != i%3 ||
				e.TargetConnections == nil || e.TargetQPS == nil || *e.TargetQPS != want.rate || e.EffectiveAt == nil {
				t.Errorf("%s %d is %+v", want.reason, i, e)
			}
			if want.reason == engine.TargetStage {
				// The first begins with the measurement, once the run workers are told of it.
				begin := got[0].EffectiveAt.Time
				if begin.Before(d.WarmupEndTime.Time) || begin.After(d.MeasurementEndTime.Time) {
					t.Errorf("the stages begin at %v, the measurement at %v", begin, d.WarmupEndTime)
				}
				ramp, at := 1.0, begin
				if i >= 3 {
					ramp, at = 0, at.Add(1e9)
				}
				if e.RampSeconds != ramp || e.EffectiveAt.Sub(at).Abs() > 1e6 {
					t.Errorf("the stage of event %d takes effect at %v over %v s, the measurement began at %v", i, e.EffectiveAt,
						e.RampSeconds, d.WarmupEndTime)
				}
			}
		}
	}
}

// TestTheDrainOfTheTemplateBoundsAStop: what waits for a lock is cancelled when the drain is over, and the run ends.
func TestTheDrainOfTheTemplateBoundsAStop(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	drain := 0.5
	run := f.run(func(sc *engine.Scenario) {
		sc.Workload.DurationSeconds, sc.Workload.WarmupSeconds = 300, 0
		sc.Workload.Stop = &engine.Stop{DrainSeconds: &drain}
	})
	f.until(run.RunID, func(p *engine.LiveState) bool { return p.Ops.Total > 0 })
	conn, err := pgx.Connect(t.Context(), f.target)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE orders IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	for waiting := 0; waiting == 0; time.Sleep(5 * time.Millisecond) { // a stop before that finds nothing to cancel
		if err := tx.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	if _, err := f.svc.Stop(t.Context(), run.RunID, "tester"); err != nil {
		t.Fatal(err)
	}
	sum := f.wait(run.RunID)
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("the run ended %v after STOP", took)
	}
	if sum.Status != engine.StatusCancelled || !sum.Accounting.Balanced ||
		sum.Errors.ByClass[engine.ErrClassCancelled] == 0 {
		t.Errorf("%s, %+v, %+v", sum.Status, sum.Accounting, sum.Errors)
	}
	for _, e := range f.detail(run.RunID).Events {
		if e.Type == engine.EventStop && e.Data.DrainTimeoutSeconds != drain {
			t.Errorf("%+v", e.Data)
		}
	}
}
