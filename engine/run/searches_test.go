package run

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// slots is a target that serves so many operations at once, each for that long.
func slots(n int, each time.Duration) func(connections int) (perSecond float64, took time.Duration) {
	return func(connections int) (float64, time.Duration) {
		busy := min(connections, n)
		perSecond := float64(busy) / each.Seconds()
		return perSecond, time.Duration(float64(connections) / perSecond * float64(time.Second))
	}
}

// aSearchForTheKnee climbs by four connections on two run workers. Throughput decides.
func aSearchForTheKnee() engine.Scenario {
	most, p95 := 60, 2000.0
	return engine.Scenario{Name: "virtual", Thresholds: []string{"max_connections >= 8", "max_qps > 150"},
		Workload: engine.Workload{Plugin: "mix", LoadMode: engine.LoadFindMax, ConcurrentConnections: 2, Repeat: 1},
		Scaling:  engine.Scaling{Mode: engine.ScalingFixed, WorkerCount: 2, PerWorkerCapacity: 40},
		FindMax: engine.FindMax{Enabled: true, Unit: engine.FindMaxConnections, StartConcurrency: 2, ConcurrencyIncrement: 4,
			MaxConcurrency: &most, StepDurationSeconds: 20, MaxDurationSeconds: 3600, QPSStabilityPct: 5,
			LatencyStabilityPct: 60, MaxErrorRatePct: 1, SLO: &engine.SLO{P95Ms: &p95}}}
}

// TestASearchFindsTheKnee: a target that serves 8 at once for 50 ms each gives 160/s from 8 connections on; more bring
// latency only. Its time is virtual: how quick the machine is has no part in the answer.
func TestASearchFindsTheKnee(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.closed = slots(8, 50*time.Millisecond)
		v.start(aSearchForTheKnee())
		for len(v.live().FindMax.Steps) < 2 {
			v.wait(time.Second)
		}
		live := v.live()
		if s := live.FindMax; s.Unit != engine.FindMaxConnections || s.CurrentStep < 2 || s.UpperBound != 60 ||
			s.BaselineP95Ms == nil || s.Result != nil || live.Timing.ExpectedSecondsTotal != 0 {
			t.Errorf("live state %+v", s)
		}
		sum := v.figures()
		r := sum.FindMax
		if sum.Status != engine.StatusCompleted || r == nil || r.MaxConnections == nil || *r.MaxConnections != 8 {
			t.Fatalf("%s, the knee is at 8: %+v\n%s", sum.Status, r, v.store.text())
		}
		if !sum.Accounting.Balanced || !sum.Passed {
			t.Errorf("passed %v, accounting %+v, thresholds %+v", sum.Passed, sum.Accounting, sum.Thresholds)
		}
		checkHistory(t, v, r)
	})
}

// checkHistory: the steps follow one another without a break, each told by one event, and all of them are stored.
func checkHistory(t *testing.T, v *virtualServer, r *engine.FindMaxResult) {
	t.Helper()
	if len(r.History) != r.Steps || r.Steps < 3 {
		t.Errorf("%d steps, %d in the history", r.Steps, len(r.History))
	}
	for i, step := range r.History {
		if step.StepDurationSeconds < 18 || step.TotalQueries == 0 || step.P95LatencyMs == nil || step.StepNumber != i+1 {
			t.Errorf("step %+v", step)
		}
		if i > 0 {
			// The step before ended with the decision; only its event stood before this one.
			if gap := step.StepStartTime.Sub(r.History[i-1].StepEndTime.Time); gap < 0 || gap > time.Second {
				t.Errorf("step %d began %v after the decision", step.StepNumber, gap)
			}
		}
	}
	state, err := v.store.FindMax(t.Context(), "run-1")
	if err != nil || state == nil || len(state.Steps) != r.Steps || state.Result == nil ||
		state.Status != engine.StageDone {
		t.Errorf("stored state %+v, %v", state, err)
	}
	steps := 0
	for _, e := range v.store.stored() {
		if e.Type == engine.EventSetWorkerTarget && e.Data.WorkerID == "worker-0" &&
			e.Data.Reason == engine.TargetStepAdvance {
			steps++
		}
	}
	if steps != r.Steps {
		t.Errorf("%d events for %d steps", steps, r.Steps)
	}
}
