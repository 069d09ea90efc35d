package lifecycle

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/findmax"
)

func searching(warmup float64, f engine.FindMax) *Machine {
	c := fixed(engine.Workload{LoadMode: engine.LoadFindMax, WarmupSeconds: warmup}, "worker-0")
	c.plan.Search, c.plan.Duration = NewSearch(f, 1, strconv.Itoa), f.MaxDuration()
	return c
}

func searchFields() engine.FindMax {
	return engine.FindMax{Unit: engine.FindMaxConnections, StartConcurrency: 4, ConcurrencyIncrement: 4,
		StepDurationSeconds: 2, MaxDurationSeconds: 600,
		QPSStabilityPct: 5, LatencyStabilityPct: 20, MaxErrorRatePct: 1}
}

// TestEverySearchingRunEndsAndObeysTheContract: whatever the steps give and
// whenever the run is stopped, there is one step at a time, none after STOP,
// and an answer once the run stops.
func TestEverySearchingRunEndsAndObeysTheContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := searchFields()
		f.MaxDurationSeconds = float64(rapid.IntRange(3, 300).Draw(t, "longest"))
		c := searching(float64(rapid.IntRange(0, 2).Draw(t, "warmup")), f)
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		most := rapid.IntRange(4, 60).Draw(t, "most")
		under, judged, skipped, last, asked, stopped := 0, 0, 0, 0, 0, false
		apply := func(h Event) {
			for _, a := range c.Apply(now, h) {
				switch a := a.(type) {
				case BeginStep:
					if stopped || a.Number != under+1 || judged+skipped < under-1 {
						t.Fatalf("step %d after %d, %d judged, stopped %v", a.Number, under, judged, stopped)
					}
					if a.Level < 1 || a.Level > float64(most) || a.Level != math.Trunc(a.Level) || a.Settle != 400*time.Millisecond ||
						a.Length < 2*time.Second || a.Length > 20*time.Second {
						t.Fatalf("%+v", a)
					}
					under = a.Number
				case RecordStep:
					judged++
					if before := last; a.Step.StepNumber <= before || a.Step.StepStartTime.After(a.Step.StepEndTime.Time) {
						t.Fatalf("judged %+v behind number %d", a.Step, before)
					}
					last = a.Step.StepNumber
				case SkipStep:
					if skipped++; a.Why == "" || a.Number < under-1 {
						t.Fatalf("%+v in step %d", a, under)
					}
				case MeasureStep:
					if asked++; a.Number != under || c.Stopping() {
						t.Fatalf("asked to measure %d in step %d", a.Number, under)
					}
				case Change:
					stopped = stopped || a.Urgent
				}
			}
		}
		apply(RunStarted{})
		apply(Prepared{float64(most)})
		apply(WorkerChanged{ID: "worker-0", Status: engine.WorkerReady})
		for range 400 {
			now = now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 40).Draw(t, "what") {
			case 0:
				apply(StopRequested{Reason: engine.StopUserRequested})
			case 1:
				apply(StepMeasured{Number: under + rapid.IntRange(-2, 2).Draw(t, "other")})
			case 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12:
				ms := rapid.Float64Range(1, 3).Draw(t, "p95")
				apply(StepMeasured{Number: under, Length: 2 * time.Second,
					Observation: findmax.Observation{Operations: rapid.Int64Range(0, 2000).Draw(t, "operations"),
						QPS: rapid.Float64Range(0, 100).Draw(t, "qps"), P95: &ms,
						Missing: rapid.IntRange(0, 30).Draw(t, "missing") / 30}})
			default:
				apply(Tick{})
			}
			if c.Stopping() {
				break
			}
			if due := c.Due(); due.IsZero() {
				t.Fatal("nothing is due in a run that goes on")
			}
		}
		// Time alone ends every run.
		for i := 0; !c.Stopping(); i++ {
			if i > 1000 {
				t.Fatal("the run does not end")
			}
			now = c.Due()
			apply(Tick{})
		}
		r := c.plan.Search.series.Result()
		if r == nil || r.Reason == "" || r.Steps != judged || len(r.History) != judged {
			t.Fatalf("%d judged, answer %+v", judged, r)
		}
		apply(StepMeasured{Number: under, Length: time.Second})
		apply(WorkerChanged{ID: "worker-0", Status: engine.WorkerCompleted})
		if !c.status.Terminal() {
			t.Fatalf("the run is %s", c.status)
		}
	})
}

// TestAStepThatNobodyReports is judged by what there is, and the search goes on.
func TestAStepThatNobodyReports(t *testing.T) {
	c := searching(0, searchFields())
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c.Apply(now, RunStarted{})
	c.Apply(now, Prepared{40})
	c.Apply(now, WorkerChanged{ID: "worker-0", Status: engine.WorkerReady})
	due := c.Due()
	if want := now.Add(2400*time.Millisecond + stepGrace); !due.Equal(want) {
		t.Fatalf("due at %v, want %v", due, want)
	}
	if acts := c.Apply(due, Tick{}); len(acts) != 1 || acts[0] != (MeasureStep{1}) {
		t.Fatalf("%+v", acts)
	}
	if acts := c.Apply(due, Tick{}); len(acts) != 0 {
		t.Fatalf("asked twice: %+v", acts)
	}
	acts := c.Apply(due, StepMeasured{Number: 1})
	if len(acts) != 2 {
		t.Fatalf("%+v", acts)
	}
	if j, ok := acts[1].(RecordStep); !ok || j.Step.Outcome != engine.OutcomeDegraded ||
		!strings.Contains(j.Step.StopReason, "no operation ended") {
		t.Errorf("%+v", acts[1])
	}
}

// TestTheLongestSearch ends with what is known by then, COMPLETED.
func TestTheLongestSearch(t *testing.T) {
	f := searchFields()
	f.MaxDurationSeconds = 5
	c := searching(0, f)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c.Apply(now, RunStarted{})
	c.Apply(now, Prepared{40})
	c.Apply(now, WorkerChanged{ID: "worker-0", Status: engine.WorkerReady})
	ms := 1.0
	c.Apply(
		now.Add(2*time.Second),
		StepMeasured{Number: 1, Observation: findmax.Observation{Operations: findmax.MinOperations, QPS: 5, P95: &ms}},
	)
	c.Apply(now.Add(5*time.Second), Tick{})
	r := c.plan.Search.series.Result()
	if c.reason != engine.StopDurationElapsed || r == nil || !r.Found || r.Confirmed || *r.MaxConnections != 4 ||
		!strings.Contains(r.Reason, "max_duration_seconds") {
		t.Errorf("%s, %+v", c.reason, r)
	}
}

// TestARecoveredSearch answers with the steps that were stored.
func TestARecoveredSearch(t *testing.T) {
	sc := engine.Scenario{Workload: engine.Workload{LoadMode: engine.LoadFindMax}, FindMax: searchFields()}
	whole := findmax.New(searchConfig(sc.FindMax, 40))
	ms := 1.0
	for _, qps := range []float64{100, 200, 300} {
		whole.Observe(findmax.Observation{Operations: findmax.MinOperations, QPS: qps, P95: &ms})
	}
	whole.Observe(findmax.Observation{Operations: findmax.MinOperations, QPS: 300, P95: &ms, Missing: 3})
	r := RecoverResult(sc, &engine.FindMaxState{UpperBound: 40, Steps: whole.Steps()})
	if !r.Found || *r.MaxConnections != 12 || r.Confirmed || r.Steps != 4 || r.Limit != engine.OutcomeErrorThreshold ||
		!strings.Contains(r.Reason, "restarted") {
		t.Errorf("%+v", r)
	}
	if r := RecoverResult(sc, nil); r.Found || r.Reason == "" {
		t.Errorf("without a step: %+v", r)
	}
	if RecoverResult(engine.Scenario{}, nil) != nil {
		t.Error("a run without a search has an answer")
	}
}

// TestAnElasticRunGoesOnWithoutADeadWorker, and ends when the last is lost.
func TestAnElasticRunGoesOnWithoutADeadWorker(t *testing.T) {
	c := fixed(engine.Workload{DurationSeconds: 60}, "worker-0", "worker-1")
	c.plan.Elastic = true
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c.Apply(now, RunStarted{})
	c.Apply(now, Prepared{})
	for _, id := range []string{"worker-0", "worker-1"} {
		c.Apply(now, WorkerChanged{ID: id, Status: engine.WorkerReady})
	}
	for _, id := range []string{"worker-0", "worker-1"} {
		c.Apply(now, WorkerChanged{ID: id, Status: engine.WorkerRunning})
	}
	c.Apply(now, WorkersLost{IDs: []string{"worker-0"}})
	c.Apply(now, WorkerJoined{"worker-2"})
	c.Apply(now, WorkerChanged{ID: "worker-2", Status: engine.WorkerFailed, Message: "no room"})
	if c.status != engine.StatusRunning {
		t.Fatalf("the run is %s: %s", c.status, c.message)
	}
	c.Apply(now, WorkersLost{IDs: []string{"worker-1"}})
	if c.status != engine.StatusFailed {
		t.Errorf("without a worker the run is %s", c.status)
	}
}
