package run

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// fiveWorkers is a run of five run workers with two connections each.
func fiveWorkers(mode engine.ScalingMode) engine.Scenario {
	return engine.Scenario{Name: "virtual",
		Workload: engine.Workload{Plugin: "mix", LoadMode: engine.LoadConcurrency, ConcurrentConnections: 10,
			DurationSeconds: 3600, Repeat: 1},
		Scaling: engine.Scaling{Mode: mode, WorkerCount: 5, PerWorkerCapacity: 2, MinWorkers: 1, MaxWorkers: 5}}
}

// keepStep is the health of the run workers, and what counts live.
func judged(p *engine.LiveState) (health []engine.Health, connections int) {
	for _, w := range p.Workers {
		health = append(health, w.Health)
	}
	return health, p.Connections.Active
}

const (
	good  = engine.HealthHealthy
	stale = engine.HealthStale
	dead  = engine.HealthDead
)

// TestTheJudgeOfWorkersInVirtualTime: 30 s of silence are STALE and still count, 60 s are DEAD and
// do not; an elastic run goes on, degraded, and its history has what the worker had done.
func TestTheJudgeOfWorkersInVirtualTime(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.start(fiveWorkers(engine.ScalingAuto))
		expect := func(at time.Duration, three engine.Health, connections int) {
			t.Helper()
			health, open := judged(v.live())
			if want := []engine.Health{good, good, good, three, good}; !slices.Equal(health, want) || open != connections {
				t.Errorf("after %v of silence: %v with %d connections, want %v with %d", at, health, open, want, connections)
			}
		}
		expect(0, good, 10)
		v.silence("worker-3", true)
		v.wait(28 * time.Second)
		expect(28*time.Second, good, 10)
		v.wait(4 * time.Second)
		expect(32*time.Second, stale, 10)
		if qps := v.live().Ops.CurrentPerSec; qps != 50 {
			t.Errorf("a stale run worker counts live; the rate is %v", qps)
		}
		v.wait(26 * time.Second)
		expect(58*time.Second, stale, 10)
		if p := v.live(); p.Validity.Verdict != engine.VerdictDegraded {
			// The gap in its snapshots is one from its third second on.
			t.Errorf("%+v", p.Validity)
		}
		v.wait(4 * time.Second)
		expect(62*time.Second, dead, 8)
		p := v.live()
		if p.Ops.CurrentPerSec != 40 || p.Status != engine.StatusRunning {
			t.Errorf("%s at %v/s after one of five died", p.Status, p.Ops.CurrentPerSec)
		}
		lost := slices.IndexFunc(p.Validity.Causes, func(c engine.ValidityCause) bool { return c.Cause == "lost_worker" })
		if lost < 0 {
			t.Fatalf("%+v", p.Validity)
		}
		if v.store.beats()["worker-3"].Status != engine.WorkerDead ||
			v.store.beats()["worker-2"].Status == engine.WorkerDead {
			t.Errorf("stored: %+v", v.store.beats())
		}
		// Its process ends, and gives its part and its counts: they belong to the history.
		v.mu.Lock()
		w := v.workers["worker-3"]
		ran := w.started
		v.leave(w)
		v.mu.Unlock()
		v.wait(2 * time.Second)
		expect(64*time.Second, dead, 8)
		if _, err := v.svc.Stop(t.Context(), "run-1", "tester"); err != nil {
			t.Fatal(err)
		}
		sum := v.figures()
		var all int64
		for _, w := range v.workers {
			all += w.started
		}
		if sum.Status != engine.StatusCancelled || sum.Operations != all || ran == 0 || !sum.Accounting.Balanced ||
			sum.Validity != engine.VerdictDegraded {
			t.Errorf("%s, %d operations of %d (%d of them by the dead one), %+v", sum.Status, sum.Operations, all, ran,
				sum.Accounting)
		}
		rows, _ := v.store.Results(t.Context(), "run-1")
		for _, r := range rows {
			if r.WorkerID == "worker-3" &&
				(r.Status != engine.StatusFailed || r.FailureReason == "" || r.Figures == nil || r.Figures.Operations != ran) {
				t.Errorf("the row of the dead run worker: %+v", r)
			}
		}
	})
}

// TestAFixedRunThatLosesWorkersSaysHowMany, through the same judge.
func TestAFixedRunThatLosesWorkersSaysHowMany(t *testing.T) {
	for lost := 1; lost <= 3; lost++ {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, v *virtualServer) {
				v.start(fiveWorkers(engine.ScalingFixed))
				for i := range lost {
					v.silence(scaling.WorkerID(i), true)
				}
				v.wait(55 * time.Second)
				if p := v.live(); p.Status != engine.StatusRunning {
					t.Fatalf("%s after 55 s of silence", p.Status)
				}
				v.wait(10 * time.Second)
				sum := v.figures()
				want := fmt.Sprintf("Worker failure: %d worker(s) stopped responding", lost)
				if sum.Status != engine.StatusFailed || sum.CancellationReason == nil || *sum.CancellationReason != want {
					t.Errorf("%s, %v, want %q\n%s", sum.Status, sum.CancellationReason, want, v.store.text())
				}
				// Nobody waits for the dead: the others left at once.
				if run, _ := v.store.Run(t.Context(), "run-1"); run.EndTime.Sub(run.StartTime.Time) > 70*time.Second {
					t.Errorf("the run took %v", run.EndTime.Sub(run.StartTime.Time))
				}
			})
		})
	}
}

// TestAWorkerThatIsHeardAgainInTimeIsHealthy.
func TestAWorkerThatIsHeardAgainInTimeIsHealthy(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.start(fiveWorkers(engine.ScalingFixed))
		v.silence("worker-0", true)
		v.wait(50 * time.Second)
		if health, _ := judged(v.live()); health[0] != stale {
			t.Errorf("%v after 50 s", health)
		}
		v.silence("worker-0", false)
		v.wait(70 * time.Second)
		if health, open := judged(v.live()); health[0] != good || open != 10 || v.live().Status != engine.StatusRunning {
			t.Errorf("%v with %d connections in a run that is %s", health, open, v.live().Status)
		}
	})
}

// TestAWorkerThatDoesNotLeaveIsGivenUp 10 s after its drain, in virtual time.
func TestAWorkerThatDoesNotLeaveIsGivenUp(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.start(fiveWorkers(engine.ScalingFixed))
		v.mu.Lock()
		v.workers["worker-1"].ignoresStop = true
		v.mu.Unlock()
		begin := time.Now()
		if _, err := v.svc.Stop(t.Context(), "run-1", "tester"); err != nil {
			t.Fatal(err)
		}
		sum := v.figures()
		if took := time.Since(begin); took < 15*time.Second || took > 17*time.Second || sum.Status != engine.StatusCancelled {
			t.Errorf("%s %v after STOP", sum.Status, took)
		}
	})
}
