package run

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/store"
)

// disconnect cuts a worker off from the server: neither hears the other any more, and the worker
// bears its load until it stops by itself.
func (v *virtualServer) disconnect(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	w := v.workers[id]
	w.silent, w.cutAt = true, time.Now()
}

// drainAfterCutoff is how long after the deadline of a worker that is cut off the target may still be
// busy with what it had begun.
const drainAfterCutoff = 5 * time.Second

// offered is the load that all run workers bear now, those that are cut off among them.
func (v *virtualServer) offered() (workers, connections int, rate float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, w := range v.workers {
		if w.status == engine.WorkerRunning &&
			(w.cutAt.IsZero() || time.Since(w.cutAt) < protocol.ContactTimeout+drainAfterCutoff) {
			workers++
			connections += w.connections
			rate += w.rate
		}
	}
	return workers, connections, rate
}

// elastic is a closed loop of eight connections on four run workers.
func elastic(mode engine.ScalingMode, most int) engine.Scenario {
	sc := overRate(mode, most)
	sc.Workload.LoadMode, sc.Workload.TargetQPS, sc.Workload.ConcurrentConnections = engine.LoadConcurrency, nil, 8
	return sc
}

// TestTheLoadOfALostWorkerIsGivenAwayOnceItMustHaveStopped, and at no moment before it: what is
// offered never exceeds the target. Then others bear it, as far as the run's mode allows.
func TestTheLoadOfALostWorkerIsGivenAwayOnceItMustHaveStopped(t *testing.T) {
	rated := func(mode engine.ScalingMode, most int) engine.Scenario {
		sc := overRate(mode, most)
		sc.Workload.ConcurrentConnections = 8
		return sc
	}
	eight := 8
	staged := elastic(engine.ScalingAuto, 0)
	staged.Workload.Stages = []engine.Stage{{DurationSeconds: 3600, Connections: &eight, Ramp: engine.RampStep}}
	sixty, hundred := 60.0, 100.0
	ramp := rated(engine.ScalingAuto, 0)
	ramp.Workload.Stages = []engine.Stage{{DurationSeconds: 1, TargetQPS: &sixty, Ramp: engine.RampStep},
		{DurationSeconds: 100, TargetQPS: &hundred, Ramp: engine.RampLinear}}
	for name, tc := range map[string]struct {
		sc                   engine.Scenario
		workers, connections int
		rate                 float64
	}{
		"AUTO, connections":                 {elastic(engine.ScalingAuto, 0), 4, 8, 0},
		"BOUNDED, and one may join":         {elastic(engine.ScalingBounded, 4), 4, 8, 0},
		"AUTO, a rate":                      {rated(engine.ScalingAuto, 0), 4, 8, 100},
		"AUTO, stages of a rate":            {ramp, 4, 8, 100},
		"AUTO, stages of connections":       {staged, 4, 8, 0},
		"AUTO, one after the other is lost": {elastic(engine.ScalingAuto, 0), 4, 8, 0},
		"BOUNDED, a rate, and one may join": {rated(engine.ScalingBounded, 4), 4, 8, 100},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, v *virtualServer) {
				v.start(tc.sc)
				v.wait(10 * time.Second)
				stored, err := v.store.Run(t.Context(), "run-1")
				if err != nil {
					t.Fatal(err)
				}
				watch := func(d time.Duration) {
					t.Helper()
					for end := time.Now().Add(d); time.Now().Before(end); v.wait(50 * time.Millisecond) {
						_, connections, rate := v.offered()
						// A change of the rate is announced up to a second before it is complete.
						most := tc.sc.Workload.RateAt(time.Since(stored.WarmupEndTime.Time) + time.Second)
						if tc.rate == 0 && connections > 8 || tc.rate > 0 && rate > most+1e-6 {
							t.Fatalf("%d connections and %v/s are offered\n%s", connections, rate, v.store.text())
						}
					}
				}
				if n, connections, rate := v.offered(); n != 4 || connections != 8 || tc.rate > 0 && rate < 60 {
					t.Fatalf("%d workers bear %d connections and %v/s", n, connections, rate)
				}
				v.disconnect("worker-1")
				if strings.Contains(name, "after the other") {
					watch(30 * time.Second)
					v.disconnect("worker-3")
				}
				watch(110 * time.Second)
				if n, connections, rate := v.offered(); n < tc.workers || connections < tc.connections ||
					rate < tc.rate-1e-6 {
					t.Errorf("%d workers bear %d connections and %v/s in the end\n%s", n, connections, rate, v.store.text())
				}
				for _, e := range v.store.stored() {
					if d := e.Data; d.Reason == engine.TargetInitial && d.WorkerID == "worker-4" && d.TargetQPS != nil &&
						*d.TargetQPS != 0 {
						t.Errorf("a worker that joins is told a rate before it is shared anew: %v", *d.TargetQPS)
					}
				}
				if p := v.live(); p.Status != engine.StatusRunning {
					t.Errorf("%s", p.Status)
				}
				if _, err := v.svc.Stop(t.Context(), "run-1", "tester"); err != nil {
					t.Fatal(err)
				}
				if sum := v.figures(); sum.Validity != engine.VerdictDegraded {
					t.Errorf("a lost worker left the run %s", sum.Validity)
				}
			})
		})
	}
}

// TestWhoWasToLeaveAndIsLostMayStillBearItsLoad: one that is cut off does not hear that it is not needed any more, and
// others have its part of the next stage once it must have stopped, not when it is given up.
func TestWhoWasToLeaveAndIsLostMayStillBearItsLoad(t *testing.T) {
	two, eight := 2, 8
	sc := elastic(engine.ScalingAuto, 0)
	sc.Workload.Stages = []engine.Stage{{DurationSeconds: 20, Connections: &eight, Ramp: engine.RampStep},
		{DurationSeconds: 40, Connections: &two, Ramp: engine.RampStep},
		{DurationSeconds: 3600, Connections: &eight, Ramp: engine.RampStep}}
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.start(sc)
		v.wait(7 * time.Second)
		v.disconnect("worker-3")
		for end := time.Now().Add(90 * time.Second); time.Now().Before(end); v.wait(50 * time.Millisecond) {
			if _, connections, _ := v.offered(); connections > 8 {
				t.Fatalf("%d connections are offered\n%s", connections, v.store.text())
			}
		}
		if n, connections, _ := v.offered(); n != 4 || connections != 8 || !strings.Contains(v.store.text(),
			"worker-3 is not needed any more") {
			t.Errorf("%d workers bear %d connections in the end\n%s", n, connections, v.store.text())
		}
	})
}

// TestAWorkerThatWasGivenUpAndComesBackIsStopped: others have its load, or are about to.
func TestAWorkerThatWasGivenUpAndComesBackIsStopped(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.start(elastic(engine.ScalingAuto, 0))
		v.wait(5 * time.Second)
		v.silence("worker-1", true) // and yet it has contact: what it says is lost on its way
		v.wait(DeadAfter + 3*time.Second)
		v.silence("worker-1", false)
		for range 600 { // its load is given away within them
			v.wait(50 * time.Millisecond)
			if _, connections, _ := v.offered(); connections > 8 {
				t.Fatalf("%d connections are offered", connections)
			}
		}
		if n, connections, _ := v.offered(); n != 4 || connections != 8 {
			t.Errorf("%d workers bear %d connections", n, connections)
		}
		v.mu.Lock()
		if w := v.workers["worker-1"]; !w.status.Ended() {
			t.Errorf("it is %s", w.status)
		}
		v.mu.Unlock()
	})
}

// TestARunWorkerThatNobodyKnowsIsStopped: the server that let it join has lost the run since.
func TestARunWorkerThatNobodyKnowsIsStopped(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.start(elastic(engine.ScalingAuto, 0))
		v.mu.Lock()
		a := v.workers["worker-1"].a
		a.WorkerID, a.ResultID, a.WorkerGroupID = "worker-9", "another", 9
		w, err := record.NewWriter(record.WriterOptions{Dir: filepath.Join(v.dir, a.WorkerID), RunID: a.RunID,
			ResultID: a.ResultID, WorkerID: a.WorkerID, Statements: a.Plan.Statements})
		if err != nil {
			t.Fatal(err)
		}
		v.workers[a.WorkerID] = &virtualWorker{a: a, status: engine.WorkerRunning, phase: engine.PhaseMeasurement,
			connections: 2, writer: w}
		v.mu.Unlock()
		v.wait(3 * time.Second)
		v.mu.Lock()
		defer v.mu.Unlock()
		if s := v.workers[a.WorkerID].status; !s.Ended() {
			t.Errorf("it is %s", s)
		}
	})
}

// TestARateThatFallsIsFollowedWhileAWorkerJoins, which may take a minute.
func TestARateThatFallsIsFollowedWhileAWorkerJoins(t *testing.T) {
	sc := overRate(engine.ScalingAuto, 0)
	sc.Workload.ConcurrentConnections = 8
	hundred, ten := 100.0, 10.0
	sc.Workload.Stages = []engine.Stage{{DurationSeconds: 90, TargetQPS: &hundred, Ramp: engine.RampStep},
		{DurationSeconds: 3600, TargetQPS: &ten, Ramp: engine.RampStep}}
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.mu.Lock()
		v.slowWorker = "worker-4"
		v.mu.Unlock()
		v.start(sc)
		v.wait(15 * time.Second)
		v.disconnect("worker-1")
		v.wait(85 * time.Second) // worker-4 joins in its place 70 s after that, and is STARTING for long
		v.mu.Lock()
		slow := v.workers["worker-4"]
		v.mu.Unlock()
		if slow == nil || slow.status != engine.WorkerStarting {
			t.Fatalf("nobody joins: %+v", slow)
		}
		if n, _, rate := v.offered(); n == 0 || rate > ten+1e-6 {
			t.Errorf("%d workers are told %v/s", n, rate)
		}
		v.mu.Lock()
		slow.status = engine.WorkerReady
		v.report(slow.report())
		v.mu.Unlock()
		v.wait(10 * time.Second)
		if n, _, rate := v.offered(); n != 4 || rate < ten-1e-6 || rate > ten+1e-6 {
			t.Errorf("%d workers are told %v/s in the end", n, rate)
		}
	})
}

// TestAServerWithoutItsLeaseReplacesNobody: another server may own the run, and replace them. In an
// elastic run its own node stops then, as those of others do.
func TestAServerWithoutItsLeaseReplacesNobody(t *testing.T) {
	for _, shared := range []bool{false, true} {
		inVirtualTime(t, func(t *testing.T, v *virtualServer) {
			v.start(elastic(engine.ScalingAuto, 0))
			v.wait(5 * time.Second)
			v.store.away(true)
			v.disconnect("worker-1")
			v.wait(3 * time.Minute)
			if n, connections, _ := v.offered(); n != 3 || connections != 6 {
				t.Errorf("%d workers bear %d connections without the store", n, connections)
			}
			if owned := len(v.svc.runs.OwnedRuns(false)) > 0; owned == shared {
				t.Errorf("a shared store: %t; its own node hears that the run is owned: %t", shared, owned)
			}
			v.store.away(false)
			v.wait(30 * time.Second)
			if n, connections, _ := v.offered(); n != 4 || connections != 8 {
				t.Errorf("%d workers bear %d connections when the store is back\n%s", n, connections, v.store.text())
			}
		}, func(o *Options) { o.Shared = shared })
	}
}

// TestAFixedRunNeedsItsLeaseToo: another server may have ended it, and its own node would load the target for nobody.
// A store that no other server has ends no run.
func TestAFixedRunNeedsItsLeaseToo(t *testing.T) {
	for _, shared := range []bool{false, true} {
		inVirtualTime(t, func(t *testing.T, v *virtualServer) {
			fixed := elastic(engine.ScalingFixed, 0)
			fixed.Scaling.WorkerCount = 4
			v.start(fixed)
			v.wait(5 * time.Second)
			if len(v.svc.runs.OwnedRuns(false)) != 1 {
				t.Fatal("it is not owned at first")
			}
			v.store.away(true)
			v.wait(store.LeaseDuration + 5*time.Second)
			if owned := len(v.svc.runs.OwnedRuns(false)) > 0; owned == shared {
				t.Errorf("a shared store: %t; its own node hears that the run is owned: %t", shared, owned)
			}
			v.store.away(false)
			v.wait(10 * time.Second)
			if len(v.svc.runs.OwnedRuns(false)) != 1 {
				t.Error("it is not owned when the store is back")
			}
		}, func(o *Options) { o.Shared = shared })
	}
}

// TestAWorkerThatItsNodeTookAlongIsReplacedAtOnce: it has ended, and nothing is wrong with the
// load. A FIXED run ends, and so does one whose load failed.
func TestAWorkerThatItsNodeTookAlongIsReplacedAtOnce(t *testing.T) {
	fixed := elastic(engine.ScalingFixed, 0)
	fixed.Scaling.WorkerCount = 4
	for name, tc := range map[string]struct {
		sc  engine.Scenario
		err engine.Code
		on  bool
	}{
		"AUTO, its node ended":        {elastic(engine.ScalingAuto, 0), engine.CodeUnavailable, true},
		"AUTO, its load failed":       {elastic(engine.ScalingAuto, 0), engine.CodeTarget, false},
		"FIXED, it stopped by itself": {fixed, engine.CodeUnavailable, false},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, v *virtualServer) {
				v.start(tc.sc)
				v.mu.Lock()
				w := v.workers["worker-1"]
				w.status = engine.WorkerFailed
				r := w.report()
				r.Err, r.Totals = &engine.Error{Code: tc.err, Message: "worker-1 has ended."}, &engine.Totals{}
				v.report(r)
				v.mu.Unlock()
				v.wait(5 * time.Second)
				if n, connections, _ := v.offered(); tc.on && (n != 4 || connections != 8) || !tc.on && n != 0 {
					t.Errorf("%d workers bear %d connections\n%s", n, connections, v.store.text())
				}
				if _, err := v.svc.Stop(t.Context(), "run-1", "tester"); (err == nil) != tc.on {
					t.Errorf("stopping it: %v", err)
				}
				want := engine.StatusFailed
				if tc.on {
					want = engine.StatusCancelled
				}
				if sum := v.figures(); sum.Status != want || sum.Validity != engine.VerdictDegraded {
					t.Errorf("%s, %s, want %s", sum.Status, sum.Validity, want)
				}
			})
		})
	}
}

// TestTheOnlyRunWorkerOfAnElasticRunIsReplaced when its node leaves: the run goes on, and ends as FAILED with what the run
// worker said where nobody takes its place.
func TestTheOnlyRunWorkerOfAnElasticRunIsReplaced(t *testing.T) {
	for _, room := range []bool{true, false} {
		inVirtualTime(t, func(t *testing.T, v *virtualServer) {
			sc := elastic(engine.ScalingAuto, 0)
			sc.Workload.ConcurrentConnections = 2
			v.start(sc)
			v.mu.Lock()
			v.rejects = !room
			w := v.workers["worker-0"]
			w.status = engine.WorkerFailed
			r := w.report()
			r.Err, r.Totals = &engine.Error{
				Code:    engine.CodeUnavailable,
				Message: "worker-0 has left with its node.",
			}, &engine.Totals{}
			v.report(r)
			v.mu.Unlock()
			v.wait(5 * time.Second)
			n, connections, _ := v.offered()
			if room {
				if n != 1 || connections != 2 || v.live().Status != engine.StatusRunning {
					t.Errorf("%d workers bear %d connections\n%s", n, connections, v.store.text())
				}
				return
			}
			run, err := v.store.Run(t.Context(), "run-1")
			if err != nil || run.Status != engine.StatusFailed {
				t.Errorf("%s, %v\n%s", run.Status, err, v.store.text())
			}
		})
	}
}

// TestARunThatLosesANodeInItsLastMinuteIsCompleted, when others have borne its load to the end. A FIXED run needs all.
func TestARunThatLosesANodeInItsLastMinuteIsCompleted(t *testing.T) {
	fixed := elastic(engine.ScalingFixed, 0)
	fixed.Scaling.WorkerCount = 4
	for name, tc := range map[string]struct {
		sc   engine.Scenario
		cut  int  // how many are cut off
		back bool // one is heard again, and says that it has stopped by itself
		want engine.Status
	}{
		"AUTO":                    {elastic(engine.ScalingAuto, 0), 1, false, engine.StatusCompleted},
		"BOUNDED":                 {elastic(engine.ScalingBounded, 4), 3, false, engine.StatusCompleted},
		"AUTO, it stopped itself": {elastic(engine.ScalingAuto, 0), 1, true, engine.StatusCompleted},
		"AUTO, all are lost":      {elastic(engine.ScalingAuto, 0), 4, false, engine.StatusFailed},
		"FIXED":                   {fixed, 1, false, engine.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, v *virtualServer) {
				tc.sc.Workload.DurationSeconds = 100
				v.start(tc.sc)
				v.wait(80 * time.Second)
				for i := range tc.cut {
					v.disconnect(fmt.Sprint("worker-", i))
				}
				v.wait(15 * time.Second)
				for _, w := range v.live().Workers {
					cut := !w.SilentSince.IsZero()
					if by := w.LoadEndsBy; cut == by.IsZero() || cut && (by.Sub(v.live().Timestamp.Time) < 3*time.Second ||
						by.Sub(v.live().Timestamp.Time) > 8*time.Second) {
						t.Errorf("%s is cut: %t, and its load ends by %v; it is %v", w.WorkerID, cut, by, v.live().Timestamp)
					}
				}
				if text := v.store.text(); !strings.Contains(text, "cannot be reached; its load ends by ") {
					t.Errorf("nobody says that it cannot be reached\n%s", text)
				}
				if tc.back {
					v.wait(10 * time.Second)
					v.mu.Lock()
					w := v.workers["worker-0"]
					w.status = engine.WorkerFailed
					r := w.report()
					r.Err, r.Totals = &engine.Error{Code: engine.CodeUnavailable, Message: "stopped by itself"}, &engine.Totals{}
					v.report(r)
					v.mu.Unlock()
				}
				v.wait(2 * time.Minute)
				sum := v.figures()
				if sum.Status != tc.want || sum.Validity != engine.VerdictDegraded {
					t.Errorf("%s, %s\n%s", sum.Status, sum.Validity, v.store.text())
				}
			})
		})
	}
}
