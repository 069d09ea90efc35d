package run

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// overRate is a run at 100/s on one run worker of two connections, which serve 10/s each.
func overRate(mode engine.ScalingMode, most int) engine.Scenario {
	rate := 100.0
	return engine.Scenario{Name: "virtual",
		Workload: engine.Workload{Plugin: "mix", LoadMode: engine.LoadQPS, Arrival: engine.ArrivalConstant, TargetQPS: &rate,
			MaxInFlight:           1000,
			ConcurrentConnections: 2, DurationSeconds: 3600, Repeat: 1},
		Scaling: engine.Scaling{Mode: mode, WorkerCount: 1, PerWorkerCapacity: 2, MinWorkers: 1, MaxWorkers: most}}
}

// checkShares: the run workers have the rate and the connections between them, evenly, and the run says so.
func checkShares(t *testing.T, v *virtualServer, rate float64, workers int) {
	t.Helper()
	run := v.svc.runs.Get("run-1").Current()
	sum, least, most := 0.0, math.Inf(1), 0.0
	for id, w := range run.WorkerTargets {
		if w.TargetQPS == nil || w.TargetConnections < 1 || w.TargetConnections > 2 {
			t.Errorf("%s has %+v", id, w)
			continue
		}
		sum, least, most = sum+*w.TargetQPS, min(least, *w.TargetQPS), max(most, *w.TargetQPS)
		if has := v.workers[id]; has.rate != *w.TargetQPS || has.connections != w.TargetConnections {
			t.Errorf("%s was told %v/s and %d, in force are %+v", id, has.rate, has.connections, w)
		}
	}
	if len(run.WorkerTargets) != workers || run.WorkersExpected != workers || math.Abs(sum-rate) > 1e-6 ||
		most-least > 1e-6 {
		t.Errorf("%d run workers (%d expected) from %v/s to %v/s, %v/s in all; want %d and %v/s\n%s", len(run.WorkerTargets),
			run.WorkersExpected, least, most, sum, workers, rate, v.store.text())
	}
}

// TestARateThatIsMissedBringsRunWorkers, as many as it takes and no more.
func TestARateThatIsMissedBringsRunWorkers(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.served = func(connections int, _ float64) float64 { return 10 * float64(connections) }
		v.start(overRate(engine.ScalingAuto, 0))
		v.wait(2 * time.Minute)
		if p := v.live(); p.Ops.CurrentPerSec < 97 || p.Status != engine.StatusRunning {
			t.Errorf("%v/s of 100/s\n%s", p.Ops.CurrentPerSec, v.store.text())
		}
		n := len(v.workers)
		if n < 5 || n > 6 {
			t.Errorf("%d run workers; five serve the rate", n)
		}
		checkShares(t, v, 100, n)
		reasons := map[string]int{}
		for _, e := range v.store.stored() {
			if e.Type == engine.EventSetWorkerTarget {
				reasons[e.Data.Reason]++
			}
		}
		if reasons[engine.TargetInitial] != n || reasons[engine.TargetRedistribute] < n {
			t.Errorf("%v", reasons)
		}
		if v.svc.runs.Get("run-1").scale.growth.StopReason() != "" {
			t.Errorf("it says %q", v.svc.runs.Get("run-1").scale.growth.StopReason())
		}
		// The part of a run worker that dies goes to others, once it must have stopped.
		v.silence("worker-1", true)
		v.wait(protocol.ReassignAfter + 5*time.Second)
		sum := 0.0
		for id, w := range v.workers {
			if id != "worker-1" {
				sum += w.rate
			}
		}
		if math.Abs(sum-100) > 1e-6 {
			t.Errorf("%v/s are left of 100/s after a death", sum)
		}
	})
}

// TestWhyNoMoreRunWorkersAreAdded: each bound ends it with its own sentence, once, which the figures keep.
func TestWhyNoMoreRunWorkersAreAdded(t *testing.T) {
	ten := func(n int, _ float64) float64 { return 10 * float64(n) }
	cases := []struct {
		name    string
		mode    engine.ScalingMode
		most    int
		served  func(connections int, rate float64) float64
		workers int
		want    string
		// before changes what else bounds it.
		before func(v *virtualServer)
	}{
		{"the template's bound", engine.ScalingBounded, 3, ten, 3, "scaling.max_workers is 3", nil},
		{"the table's limit", engine.ScalingAuto, 0, func(n int, _ float64) float64 { return min(10*float64(n), 35) }, 4,
			"did not serve more than", nil},
		{"the generator's CPU", engine.ScalingAuto, 0, ten, 1, "the generator uses 95 % of its CPU",
			func(v *virtualServer) { v.cpu = 95 }},
		{"the key slots", engine.ScalingAuto, 0, ten, 3, "the 3 key slots of the run are used up", func(v *virtualServer) {
			v.planned(func(p *prepare.Prepared) { p.Plan.KeySlots = 3 })
		}},
		{"the target's max_connections", engine.ScalingAuto, 0, ten, 3,
			fmt.Sprintf("the target's max_connections of %d leave no more", scaling.SpareSessions+6), func(v *virtualServer) {
				v.planned(func(p *prepare.Prepared) { p.Server.MaxConnections = scaling.SpareSessions + 6 })
			}},
		{
			"the nodes' room",
			engine.ScalingAuto,
			0,
			ten,
			4,
			"the nodes have no room for more connections",
			func(v *virtualServer) {
				v.report(protocol.Hello{NodeID: "local", Session: "s", Capacity: 7}) // the fourth has one connection
				v.wait(time.Second)
			},
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, v *virtualServer) {
				v.served = tc.served
				if tc.before != nil {
					tc.before(v)
				}
				v.start(overRate(tc.mode, tc.most))
				v.wait(3 * time.Minute)
				if n := strings.Count(v.store.text(), "no run worker is added"); n != 1 ||
					!strings.Contains(v.store.text(), tc.want) {
					t.Errorf("it was said %d times\n%s", n, v.store.text())
				}
				if len(v.workers) < min(2, tc.workers) || len(v.workers) > tc.workers || tc.before != nil &&
					len(v.workers) != tc.workers {
					t.Errorf("%d run workers, want at most %d\n%s", len(v.workers), tc.workers, v.store.text())
				}
				checkShares(t, v, 100, len(v.workers))
				if _, err := v.svc.Stop(t.Context(), "run-1", "tester"); err != nil {
					t.Fatal(err)
				}
				sum := v.figures()
				found := false
				for _, n := range sum.ValidityDetail.Notes {
					found = found || strings.Contains(n, tc.want)
				}
				if !found || !sum.Accounting.Balanced {
					t.Errorf("notes %v, %+v", sum.ValidityDetail.Notes, sum.Accounting)
				}
			})
		})
	}
}

// planned changes what the preparation of the run gives.
func (v *virtualServer) planned(change func(p *prepare.Prepared)) {
	made := v.svc.opts.Plan
	v.svc.opts.Plan = func(ctx context.Context, d prepare.Deps, sc engine.Scenario,
		say func(engine.PrepareProgress)) (*prepare.Prepared, error) {
		p, err := made(ctx, d, sc, say)
		if err == nil {
			change(p)
		}
		return p, err
	}
}

// TestASearchOverTheRateGetsRunWorkers: a step that is missed for want of connections is measured again
// with more of them, and the answer is the table's and not that of the first run worker.
func TestASearchOverTheRateGetsRunWorkers(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.served = func(connections int, _ float64) float64 { return min(10*float64(connections), 150) }
		sc := overRate(engine.ScalingAuto, 0)
		start, more, most, slo := 10.0, 40.0, 400.0, 1000.0
		sc.Workload.LoadMode, sc.Workload.TargetQPS = engine.LoadFindMax, nil
		sc.FindMax = engine.FindMax{Enabled: true, Unit: engine.FindMaxRate, StartRate: &start, RateIncrement: &more,
			MaxRate: &most, StartConcurrency: 2, StepDurationSeconds: 10,
			MaxDurationSeconds: 3000, QPSStabilityPct: 5, LatencyStabilityPct: 50, MaxErrorRatePct: 1,
			SLO: &engine.SLO{P95Ms: &slo}}
		v.start(sc)
		r := v.figures().FindMax
		if r == nil || r.MaxQPSTarget == nil || *r.MaxQPSTarget < 120 || *r.MaxQPSTarget > 155 {
			t.Fatalf("%+v\n%s", r, v.store.text())
		}
		if len(v.workers) < 7 {
			t.Errorf("%d run workers serve 150/s at 20/s each", len(v.workers))
		}
		last := 0
		for i, step := range r.History {
			if step.StepNumber <= last {
				t.Errorf("step %d after %d", step.StepNumber, last)
			}
			last = step.StepNumber
			if step.StepNumber < i+1 {
				t.Errorf("judged step %d is number %d", i+1, step.StepNumber)
			}
		}
		if last == len(r.History) {
			t.Errorf("no step was measured again\n%s", v.store.text())
		}
	})
}

// TestStagesOfRatesAreFollowedByTheRun where run workers may join: a ramp in pieces, a step at its time.
func TestStagesOfRatesAreFollowedByTheRun(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		sc := overRate(engine.ScalingAuto, 0)
		hundred, two := 100.0, 200.0
		sc.Workload.DurationSeconds = 30
		sc.Workload.Stages = []engine.Stage{{DurationSeconds: 10, TargetQPS: &hundred, Ramp: engine.RampStep},
			{DurationSeconds: 10, TargetQPS: &two, Ramp: engine.RampLinear},
			{DurationSeconds: 10, TargetQPS: &hundred, Ramp: engine.RampStep}}
		run := v.start(sc)
		sum := v.figures()
		if sum.Status != engine.StatusCompleted {
			t.Fatalf("%s\n%s", sum.Status, v.store.text())
		}
		stored, _ := v.store.Run(t.Context(), run.RunID)
		ramps, last := 0, engine.EventData{}
		for _, e := range v.store.stored() {
			if e.Type != engine.EventSetWorkerTarget || e.Data.Reason != engine.TargetStage {
				continue
			}
			last = e.Data
			// Where a piece of a ramp leads is what the stages ask for then.
			at := e.Data.EffectiveAt.Sub(stored.WarmupEndTime.Time) + seconds64(e.Data.RampSeconds)
			if want := sc.Workload.RateAt(at - time.Millisecond*time.Duration(min(e.Data.RampSeconds, 1))); math.Abs(
				*e.Data.TargetQPS-want) > 0.2 {
				t.Errorf("%v into the measurement the rate is to be %v/s, the stages ask for %v/s", at, *e.Data.TargetQPS, want)
			}
			if e.Data.RampSeconds > 0 {
				ramps++
			}
		}
		if ramps < 9 || last.TargetQPS == nil || *last.TargetQPS != 100 || last.RampSeconds != 0 {
			t.Errorf("%d pieces of ramps, the last target is %+v", ramps, last)
		}
		if at := last.EffectiveAt.Sub(stored.WarmupEndTime.Time); at < 20*time.Second ||
			at > 20*time.Second+100*time.Millisecond {
			t.Errorf("the step down at 20 s was told at %v", at)
		}
	})
}
