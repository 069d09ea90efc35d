package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	runlive "github.com/loadstone-db/loadstone/engine/run/live"
)

// shape is every path of a document with the type of what is there; elements of
// a list are one path, and a map's keys are only those that the document has.
func shape(t *testing.T, v any) map[string]string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		kind := "null"
		switch v := v.(type) {
		case map[string]any:
			kind = "object"
			for k, e := range v {
				walk(strings.TrimPrefix(path+"."+k, "."), e)
			}
		case []any:
			kind = "list"
			for _, e := range v {
				walk(path+"[]", e)
			}
		case string:
			kind = "string"
		case float64:
			kind = "number"
		case bool:
			kind = "boolean"
		}
		if path != "" && (out[path] == "" || out[path] == "null") {
			out[path] = kind
		}
	}
	walk("", doc)
	return out
}

// seedShape is the payload as the source document gives it.
const seedShape = `{
  "test_id": "uuid", "status": "RUNNING", "phase": "MEASUREMENT", "timestamp": "2026-01-23T10:15:30.123Z", "elapsed": 125.5,
  "ops": {"total": 125000, "current_per_sec": 1250.5},
  "operations": {"reads": 100000, "writes": 25000},
  "latency": {"p50": 12.5, "p95": 45.2, "p99": 98.7, "avg": 18.3},
  "errors": {"count": 5, "rate": 0.00004},
  "connections": {"active": 50, "target": 50},
  "workers": [{"worker_id": "worker-0", "worker_group_id": 0, "status": "RUNNING", "phase": "MEASUREMENT", "health": "HEALTHY", "last_heartbeat": "2026-01-23T10:15:28.000Z",
    "metrics": {"qps": 625.2, "p95_latency_ms": 42.1, "error_count": 2, "active_connections": 25}}],
  "warehouse": {"name": "BENCHMARK_WH", "started_clusters": 2, "running": 45, "queued": 0},
  "find_max": {"current_step": 3, "target_workers": 35, "baseline_p95_ms": 42.5, "current_p95_ms": 48.2, "p95_vs_baseline_pct": 13.4, "qps_vs_prior_pct": 2.1,
    "queue_detected": false, "status": "STEPPING"},
  "custom_metrics": {"app_ops_breakdown": {}, "sf_bench": {}, "resources": {}}
}`

// TestThePayloadHasTheWholeShapeOfTheContract, live and at rest: the source document's fields with its types
// (null only where nothing is known), and the same fields whether the run is live or not.
func TestThePayloadHasTheWholeShapeOfTheContract(t *testing.T) {
	var seed any
	if err := json.Unmarshal([]byte(seedShape), &seed); err != nil {
		t.Fatal(err)
	}
	want := shape(t, seed)
	var all []string
	// check compares with the contract; null are the paths that may be null, with what is below them.
	check := func(name string, p any, null ...string) {
		t.Helper()
		got := shape(t, p)
		for path, kind := range want {
			missing := slices.ContainsFunc(null, func(n string) bool {
				return path == n || strings.HasPrefix(path, n+".") || strings.HasPrefix(path, n+"[]")
			})
			if have := got[path]; have != kind &&
				(have == "" && !missing || have != "" && have != "null" || have == "null" && !missing) {
				t.Errorf("%s: %s is %q, the contract has a %s", name, path, have, kind)
			}
		}
		// A run at rest has every field that a live one has, and no other.
		fields := slices.Collect(maps.Keys(got))
		fields = slices.DeleteFunc(fields, func(path string) bool {
			return strings.Contains(path, ".") ||
				strings.Contains(path, "[]")
		})
		slices.Sort(fields)
		if all == nil {
			all = fields
		}
		if !slices.Equal(all, fields) {
			t.Errorf("%s: the fields are %v, those of a live run %v", name, fields, all)
		}
	}
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		sc := fiveWorkers(engine.ScalingFixed)
		most, slo := 10, 1000.0
		sc.Workload.LoadMode, sc.Workload.DurationSeconds = engine.LoadFindMax, 60
		sc.FindMax = engine.FindMax{Enabled: true, Unit: engine.FindMaxConnections, StartConcurrency: 5,
			ConcurrencyIncrement: 5, MaxConcurrency: &most, StepDurationSeconds: 10,
			MaxDurationSeconds: 600, QPSStabilityPct: 5, LatencyStabilityPct: 50, MaxErrorRatePct: 1,
			SLO: &engine.SLO{P95Ms: &slo}}
		v.start(sc)
		v.svc.runs.Get("run-1").poller.polls <- WarehousePoll{At: time.Now(),
			Warehouse: &engine.Warehouse{Name: "BENCHMARK_WH", State: "STARTED", Type: "STANDARD", Size: "X-Small",
				StartedClusters: new(2), Running: 45}}
		v.wait(20 * time.Second)
		p := v.live()
		check("live", p)
		if p.FindMax.StepID == "" || p.FindMax.StepID != p.FindMax.Steps[0].StepID && p.FindMax.CurrentStep == 1 {
			t.Errorf("the step under way is %q", p.FindMax.StepID)
		}
		if bench := p.CustomMetrics.SFBench; bench["running"] != 45 || bench["queued"] != 0 || bench["clusters"] != 2 {
			t.Errorf("sf_bench is %v", bench)
		}
		// Two clusters of one credit an hour, for 20 s.
		if c, ok := p.CustomMetrics.SFBench["credits"].(*float64); !ok || c == nil || *c < 0.8*2*20/3600. ||
			*c > 2*2*22/3600. {
			t.Errorf("credits so far: %v", c)
		}
		sum := v.figures()
		run, _ := v.store.Run(t.Context(), "run-1")
		rows, _ := v.store.Results(t.Context(), "run-1")
		d := engine.RunDetail{Run: run, Summary: sum, Workers: rows[1:], FindMax: lifecycle.FinishedSearchState(sum.FindMax),
			Warehouse: p.Warehouse}
		d.Summary.Cost = &engine.Cost{RunCredits: 0.02}
		// What only a live run has is null: latency of the last second, the phase, health by phase.
		check(
			"over",
			runlive.FinishedState(&d, time.Now()),
			"phase",
			"latency.p50",
			"latency.p95",
			"latency.p99",
			"latency.avg",
			"find_max.qps_vs_prior_pct",
			"find_max.p95_vs_baseline_pct",
		)
		run.Status, run.Phase, run.StartTime, run.EndTime = engine.StatusPrepared, engine.PhasePreparing, engine.Time{},
			engine.Time{}
		check("prepared", runlive.FinishedState(&engine.RunDetail{Run: run}, time.Now()), "latency.p50", "latency.p95",
			"latency.p99", "latency.avg", "workers[]", "warehouse", "find_max")
		checkSteps(t, v, sum)
	})
}

// checkSteps: one id for each step, in its events, its history and the state that was stored each second.
func checkSteps(t *testing.T, v *virtualServer, sum *engine.Summary) {
	t.Helper()
	ids := map[int]string{}
	for _, e := range v.store.stored() {
		if e.Data.StepNumber > 0 {
			if id := ids[e.Data.StepNumber]; id != "" && id != e.Data.StepID {
				t.Errorf("step %d has the ids %s and %s", e.Data.StepNumber, id, e.Data.StepID)
			}
			ids[e.Data.StepNumber] = e.Data.StepID
		}
	}
	for _, step := range sum.FindMax.History {
		if step.StepID == "" || step.StepID != ids[step.StepNumber] {
			t.Errorf("step %d is %q in the history, and %q in its events", step.StepNumber, step.StepID, ids[step.StepNumber])
		}
	}
	seconds := map[string]int{}
	for _, s := range v.store.states {
		if s.Status != engine.StageDone && s.CurrentStep > 0 {
			if s.StepID != ids[s.CurrentStep] {
				t.Errorf("step %d is %q in what was stored", s.CurrentStep, s.StepID)
			}
			seconds[s.StepID]++
		}
	}
	for n, id := range ids {
		if seconds[id] < 9 {
			t.Errorf("step %d, of 12 s, was stored in %d seconds: %s", n, seconds[id], fmt.Sprint(seconds))
		}
	}
}
