package run

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/findmax"
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
		if step.StepDurationSeconds < 18 || step.TotalQueries < findmax.MinOperations || step.P95LatencyMs == nil {
			t.Errorf("step %+v", step)
		}
		if i > 0 && step.StepNumber <= r.History[i-1].StepNumber {
			t.Errorf("step %d behind %d", step.StepNumber, r.History[i-1].StepNumber)
		}
		if i > 0 && step.StepNumber == r.History[i-1].StepNumber+1 { // else a step between them was not judged
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
	if skipped := strings.Count(v.store.text(), "is not judged: "); steps != r.Steps+skipped || skipped == 0 {
		t.Errorf("%d events for %d steps and %d that were not judged\n%s", steps, r.Steps, skipped, v.store.text())
	}
}

// TestARepeatedSearch: two searches in one run, on a target that holds whatever they try.
func TestARepeatedSearch(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.closed = slots(64, 20*time.Millisecond)
		sc := aSearchForTheKnee()
		most := 6
		sc.Thresholds, sc.Workload.Repeat, sc.FindMax.MaxConcurrency = nil, 2, &most
		v.start(sc)
		for len(v.live().FindMax.Repetitions) < 1 {
			v.wait(time.Second)
		}
		if s := v.live().FindMax; s.Repetition != 2 || s.Repeat != 2 || s.Repetitions[0].Level == nil {
			t.Errorf("live state %+v", s)
		}
		r := v.figures().FindMax
		if r == nil || r.Spread == nil || r.Spread.Finished != 2 || r.Spread.Found != 2 || len(r.Repetitions) != 2 {
			t.Fatalf("%+v\n%s", r, v.store.text())
		}
		state, err := v.store.FindMax(t.Context(), "run-1")
		if err != nil || len(state.Steps) != r.Steps || state.Steps[0].Repetition != 1 ||
			state.Steps[r.Steps-1].Repetition != 2 {
			t.Errorf("stored %+v, %v", state, err)
		}
		if second := r.Repetitions[0].Steps; r.History[second].Repetition != 2 ||
			r.History[second].TotalTargetConnections != 2 {
			t.Errorf("the second search begins with %+v", r.History[second])
		}
	})
}

// TestASearchWithoutAnAnswer: an objective that no level meets.
func TestASearchWithoutAnAnswer(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.closed = slots(8, 20*time.Millisecond)
		sc, p99 := aSearchForTheKnee(), 0.001
		sc.Thresholds, sc.FindMax.SLO = nil, &engine.SLO{P99Ms: &p99}
		v.start(sc)
		sum := v.figures()
		if r := sum.FindMax; sum.Status != engine.StatusCompleted || r == nil || r.Found ||
			r.Limit != engine.OutcomeDegraded || r.Reason == "" {
			t.Errorf("%s %+v\n%s", sum.Status, r, v.store.text())
		}
	})
}

// TestAGeneratorThatIsLateIsNotTheTarget: a step in which the generator used all of its CPU is measured again, and
// where that goes on there is no answer.
func TestAGeneratorThatIsLateIsNotTheTarget(t *testing.T) {
	for name, forGood := range map[string]bool{"for a while": false, "for good": true} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, v *virtualServer) {
				v.closed = slots(8, 20*time.Millisecond)
				v.start(aSearchForTheKnee())
				for len(v.live().FindMax.Steps) < 2 {
					v.wait(time.Second)
				}
				v.mu.Lock()
				v.cpu = 97
				v.mu.Unlock()
				if !forGood {
					v.wait(45 * time.Second)
					v.mu.Lock()
					v.cpu = 0
					v.mu.Unlock()
				}
				r := v.figures().FindMax
				if forGood {
					if r == nil || r.Found || r.LateSteps != 5 || !strings.Contains(r.Reason, "used over 90 % of its CPU") {
						t.Errorf("%+v\n%s", r, v.store.text())
					}
				} else if r == nil || r.MaxConnections == nil || *r.MaxConnections != 8 || !r.Confirmed || r.LateSteps == 0 {
					t.Errorf("%+v\n%s", r, v.store.text())
				}
			})
		})
	}
}

// TestASearchOverTheRateTellsEachRunWorker: each step has one event for each run worker, with its part of the rate.
func TestASearchOverTheRateTellsEachRunWorker(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		sc := aSearchForTheKnee()
		start, more, most := 40.0, 40.0, 80.0
		sc.Workload.ConcurrentConnections, sc.Workload.MaxInFlight, sc.Workload.Arrival = 8, 1000, engine.ArrivalConstant
		sc.Thresholds, sc.FindMax.Unit, sc.FindMax.MaxConcurrency = nil, engine.FindMaxRate, nil
		sc.FindMax.StartRate, sc.FindMax.RateIncrement, sc.FindMax.MaxRate = &start, &more, &most
		v.start(sc)
		r := v.figures().FindMax
		if r == nil || r.MaxQPSTarget == nil || *r.MaxQPSTarget != 80 || !r.Confirmed {
			t.Fatalf("%+v\n%s", r, v.store.text())
		}
		level := map[int]float64{}
		for _, step := range r.History {
			level[step.StepNumber] = step.Level()
		}
		told := map[int]int{}
		for _, e := range v.store.stored() {
			d := e.Data
			if e.Type != engine.EventSetWorkerTarget || d.Reason != engine.TargetStepAdvance {
				continue
			}
			if want, judged := level[d.StepNumber]; d.StepID == "" || d.WorkerID == "" || d.TargetQPS == nil ||
				judged && *d.TargetQPS != want/2 || d.TargetConnections == nil || *d.TargetConnections != 4 {
				t.Errorf("%+v of the step at %v", d, want)
			}
			told[d.StepNumber]++
		}
		for number := range level {
			if told[number] != 2 {
				t.Errorf("%d events of step %d with 2 run workers", told[number], number)
			}
		}
	})
}
