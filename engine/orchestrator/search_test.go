package orchestrator

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/findmax"
)

func searchCore(warmup float64, f engine.FindMax) *core {
	c := newCore(engine.Workload{LoadMode: engine.LoadFindMax, WarmupSeconds: warmup}, []string{"worker-0"})
	c.search, c.duration = newSearching(f, 1), f.MaxDuration()
	return c
}

func searchFields() engine.FindMax {
	return engine.FindMax{Unit: engine.FindMaxConnections, StartConcurrency: 4, ConcurrencyIncrement: 4, StepDurationSeconds: 2, MaxDurationSeconds: 600,
		QPSStabilityPct: 5, LatencyStabilityPct: 20, MaxErrorRatePct: 1}
}

// TestEverySearchingRunEndsAndObeysTheContract: whatever the steps give and
// whenever the run is stopped, there is one step at a time, none after STOP,
// and an answer once the run stops.
func TestEverySearchingRunEndsAndObeysTheContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := searchFields()
		f.MaxDurationSeconds = float64(rapid.IntRange(3, 300).Draw(t, "longest"))
		c := searchCore(float64(rapid.IntRange(0, 2).Draw(t, "warmup")), f)
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		most := rapid.IntRange(4, 60).Draw(t, "most")
		under, judged, asked, stopped := 0, 0, 0, false
		apply := func(h any) {
			for _, a := range c.apply(now, h) {
				switch a := a.(type) {
				case actStep:
					if stopped || a.step.Number != under+1 || judged != under && under > 0 && a.step.Number != judged+2 {
						t.Fatalf("step %d after %d, %d judged, stopped %v", a.step.Number, under, judged, stopped)
					}
					if a.level < 1 || a.level > float64(most) || a.level != math.Trunc(a.level) || a.step.Settle != 400*time.Millisecond || a.step.Length != 2*time.Second {
						t.Fatalf("%+v", a)
					}
					under = a.step.Number
				case actJudged:
					if judged++; a.step.StepNumber != judged || a.step.StepStartTime.After(a.step.StepEndTime.Time) {
						t.Fatalf("judged %+v as number %d", a.step, judged)
					}
				case actMeasure:
					if asked++; a.number != under || c.stopping() {
						t.Fatalf("asked to measure %d in step %d", a.number, under)
					}
				case actChange:
					stopped = stopped || a.urgent
				}
			}
		}
		apply(hapBegun{})
		apply(hapPrepared{float64(most)})
		apply(hapWorker{id: "worker-0", status: engine.WorkerReady})
		for range 400 {
			now = now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 40).Draw(t, "what") {
			case 0:
				apply(hapStop{reason: engine.StopUserRequested})
			case 1:
				apply(hapMeasured{number: under + rapid.IntRange(-2, 2).Draw(t, "other")})
			case 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12:
				ms := rapid.Float64Range(1, 3).Draw(t, "p95")
				apply(hapMeasured{number: under, measured: 2 * time.Second, observed: findmax.Observation{Operations: rapid.Int64Range(0, 100).Draw(t, "operations"),
					QPS: rapid.Float64Range(0, 100).Draw(t, "qps"), P95: &ms, Missing: rapid.IntRange(0, 30).Draw(t, "missing") / 30}})
			default:
				apply(hapTick{})
			}
			if c.stopping() {
				break
			}
			if due := c.due(); due.IsZero() {
				t.Fatal("nothing is due in a run that goes on")
			}
		}
		// Time alone ends every run.
		for i := 0; !c.stopping(); i++ {
			if i > 1000 {
				t.Fatal("the run does not end")
			}
			now = c.due()
			apply(hapTick{})
		}
		r := c.search.find.Result()
		if r == nil || r.Reason == "" || r.Steps != judged || len(r.History) != judged {
			t.Fatalf("%d judged, answer %+v", judged, r)
		}
		apply(hapMeasured{number: under, measured: time.Second})
		apply(hapWorker{id: "worker-0", status: engine.WorkerCompleted})
		if !c.status.Terminal() {
			t.Fatalf("the run is %s", c.status)
		}
	})
}

// TestAStepThatNobodyReports is judged by what there is, and the search goes on.
func TestAStepThatNobodyReports(t *testing.T) {
	c := searchCore(0, searchFields())
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c.apply(now, hapBegun{})
	c.apply(now, hapPrepared{40})
	c.apply(now, hapWorker{id: "worker-0", status: engine.WorkerReady})
	due := c.due()
	if want := now.Add(2400*time.Millisecond + stepGrace); !due.Equal(want) {
		t.Fatalf("due at %v, want %v", due, want)
	}
	if acts := c.apply(due, hapTick{}); len(acts) != 1 || acts[0] != (actMeasure{1}) {
		t.Fatalf("%+v", acts)
	}
	if acts := c.apply(due, hapTick{}); len(acts) != 0 {
		t.Fatalf("asked twice: %+v", acts)
	}
	acts := c.apply(due, hapMeasured{number: 1})
	if len(acts) != 2 {
		t.Fatalf("%+v", acts)
	}
	if j, ok := acts[1].(actJudged); !ok || j.step.Outcome != engine.OutcomeDegraded || !strings.Contains(j.step.StopReason, "no operation ended") {
		t.Errorf("%+v", acts[1])
	}
}

// TestTheLongestSearch ends with what is known by then, COMPLETED.
func TestTheLongestSearch(t *testing.T) {
	f := searchFields()
	f.MaxDurationSeconds = 5
	c := searchCore(0, f)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c.apply(now, hapBegun{})
	c.apply(now, hapPrepared{40})
	c.apply(now, hapWorker{id: "worker-0", status: engine.WorkerReady})
	ms := 1.0
	c.apply(now.Add(2*time.Second), hapMeasured{number: 1, observed: findmax.Observation{Operations: 10, QPS: 5, P95: &ms}})
	c.apply(now.Add(5*time.Second), hapTick{})
	r := c.search.find.Result()
	if c.reason != engine.StopDurationElapsed || r == nil || !r.Found || r.Confirmed || *r.MaxConnections != 4 || !strings.Contains(r.Reason, "max_duration_seconds") {
		t.Errorf("%s, %+v", c.reason, r)
	}
}

// TestARecoveredSearch answers with the steps that were stored.
func TestARecoveredSearch(t *testing.T) {
	sc := engine.Scenario{Workload: engine.Workload{LoadMode: engine.LoadFindMax}, FindMax: searchFields()}
	whole := findmax.New(searchConfig(sc.FindMax, 40))
	ms := 1.0
	for _, qps := range []float64{100, 200, 300} {
		whole.Observe(findmax.Observation{Operations: 10, QPS: qps, P95: &ms})
	}
	whole.Observe(findmax.Observation{Operations: 10, QPS: 300, P95: &ms, Missing: 3})
	r := recoveredSearch(sc, &engine.FindMaxState{UpperBound: 40, Steps: whole.Steps()})
	if !r.Found || *r.MaxConnections != 12 || r.Confirmed || r.Steps != 4 || r.Limit != engine.OutcomeErrorThreshold || !strings.Contains(r.Reason, "restarted") {
		t.Errorf("%+v", r)
	}
	if r := recoveredSearch(sc, nil); r.Found || r.Reason == "" {
		t.Errorf("without a step: %+v", r)
	}
	if recoveredSearch(engine.Scenario{}, nil) != nil {
		t.Error("a run without a search has an answer")
	}
}

// TestAnElasticRunGoesOnWithoutADeadWorker, and ends when the last is lost.
func TestAnElasticRunGoesOnWithoutADeadWorker(t *testing.T) {
	c := newCore(engine.Workload{DurationSeconds: 60}, []string{"worker-0", "worker-1"})
	c.elastic = true
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c.apply(now, hapBegun{})
	c.apply(now, hapPrepared{})
	for _, id := range []string{"worker-0", "worker-1"} {
		c.apply(now, hapWorker{id: id, status: engine.WorkerReady})
	}
	for _, id := range []string{"worker-0", "worker-1"} {
		c.apply(now, hapWorker{id: id, status: engine.WorkerRunning})
	}
	c.apply(now, hapLost{ids: []string{"worker-0"}})
	c.apply(now, hapJoined{"worker-2"})
	c.apply(now, hapWorker{id: "worker-2", status: engine.WorkerFailed, message: "no room"})
	if c.status != engine.StatusRunning {
		t.Fatalf("the run is %s: %s", c.status, c.sentence)
	}
	c.apply(now, hapLost{ids: []string{"worker-1"}})
	if c.status != engine.StatusFailed {
		t.Errorf("without a worker the run is %s", c.status)
	}
}
