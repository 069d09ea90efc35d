package run_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestStagesBringAndSendRunWorkers: at 2 connections each, the peak needs three
// run workers, and what lies before and after it one. No record is lost or repeated.
func TestStagesBringAndSendRunWorkers(t *testing.T) {
	if testing.Short() {
		t.Skip("make check-ci: it takes many seconds")
	}
	t.Parallel()
	f := newFixture(t).start()
	two, six := 2, 6
	run := f.run(func(sc *engine.Scenario) {
		sc.Scaling = engine.Scaling{Mode: engine.ScalingAuto, WorkerCount: 1, PerWorkerCapacity: 2}
		// Two workers that took the same keys would fail to insert them.
		sc.Workload.Params = json.RawMessage(`{"weights": {"POINT_LOOKUP": 50, "INSERT": 50}}`)
		sc.Workload.ConcurrentConnections, sc.Workload.WarmupSeconds, sc.Workload.DurationSeconds = 2, 0, 11
		sc.Workload.Stages = []engine.Stage{
			{DurationSeconds: 5.5, Connections: &two, Ramp: engine.RampStep},
			{DurationSeconds: 1, Connections: &six, Ramp: engine.RampLinear},
			{DurationSeconds: 2.5, Connections: &six, Ramp: engine.RampStep},
			{DurationSeconds: 2, Connections: &two, Ramp: engine.RampStep},
		}
	})
	// Only the time before the peak is watched: a busy machine may not show the peak itself.
	f.until(run.RunID, func(p *engine.LiveState) bool {
		if p.Phase == nil || *p.Phase != engine.PhaseMeasurement || p.Timing.PhaseElapsedSeconds == nil {
			return p.Status.Terminal()
		}
		elapsed := *p.Timing.PhaseElapsedSeconds
		if elapsed < 5 && p.Connections.Target > 2 {
			t.Errorf("%d connections are wanted %v s into the measurement", p.Connections.Target, elapsed)
		}
		return elapsed >= 5
	})
	sum := f.wait(run.RunID)
	if sum.Status != engine.StatusCompleted || !sum.Accounting.Balanced || sum.Errors.Count != 0 {
		t.Fatalf("%s, %+v, %+v\n%s", sum.Status, sum.Accounting, sum.Errors, f.logs(run.RunID))
	}
	d := f.settled(run.RunID)
	// The stored events show the peak and the way back, however slow the machine was to show them live.
	retired, peak, targets := 0, 0, map[string]int{"worker-0": 2}
	for _, e := range d.Events {
		if e.Type == engine.EventSetWorkerTarget && e.Data.TargetConnections != nil {
			targets[e.Data.WorkerID] = *e.Data.TargetConnections
			total := 0
			for _, n := range targets {
				total += n
			}
			peak = max(peak, total)
		}
		if e.Type == engine.EventStop && e.Data.Scope == engine.ScopeWorker {
			retired++
		}
	}
	if peak != 6 || targets["worker-0"] != 2 {
		t.Errorf("at most %d connections were asked for, and %v in the end\n%s", peak, targets, f.logs(run.RunID))
	}
	if len(d.Workers) != 3 || retired != 2 {
		t.Errorf("%d run workers, %d of them retired\n%s", len(d.Workers), retired, f.logs(run.RunID))
	}
	// The fallback knows every run worker, also those that no event was about lately.
	if left := d.WorkerTargets; len(left) != 3 || left["worker-0"].TargetConnections != 2 ||
		left["worker-1"].TargetConnections != 0 || left["worker-2"].TargetConnections != 0 || d.WorkersExpected != 1 {
		t.Errorf("stored targets %v, %d run workers expected", left, d.WorkersExpected)
	}
	for reason, n := range map[string]int{engine.TargetInitial: 3, engine.TargetRetire: 2} {
		if got := told(d, reason); len(got) != n {
			t.Errorf("%d events %q, want %d: %+v", len(got), reason, n, got)
		}
	}
	for _, w := range d.Workers {
		if w.Figures == nil || !w.Figures.Accounting.Balanced || w.FailureReason != "" || w.Figures.Accounting.Recorded == 0 {
			t.Errorf("%s: %+v, %s", w.WorkerID, w.Figures, w.FailureReason)
		}
	}
	var text bytes.Buffer
	if err := f.results.WriteCSV(t.Context(), run.RunID, &text); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&text).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	seen := map[string]bool{}
	for _, r := range rows[1:] {
		key := fmt.Sprint(r[at["worker_id"]], " ", r[at["connection_id"]], " ", r[at["seq"]])
		if seen[key] {
			t.Fatalf("%s is recorded twice", key)
		}
		seen[key] = true
	}
	if int64(len(seen)) != sum.Accounting.Started {
		t.Errorf("%d records of %d operations", len(seen), sum.Accounting.Started)
	}
}
