package run

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/live"
)

// TestWhoHasLeftARunIsNotRunning: run workers that were retired have COMPLETED and those that were lost FAILED in the
// results, in what the page shows and in the heartbeats, while their run goes on.
func TestWhoHasLeftARunIsNotRunning(t *testing.T) {
	two, eight := 2, 8
	sc := elastic(engine.ScalingAuto, 0)
	sc.Workload.Stages = []engine.Stage{{DurationSeconds: 20, Connections: &eight, Ramp: engine.RampStep},
		{DurationSeconds: 3600, Connections: &two, Ramp: engine.RampStep}}
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.start(sc)
		v.wait(7 * time.Second)
		v.disconnect("worker-3")
		v.wait(DeadAfter + 60*time.Second)
		p := v.live()
		if p.Status != engine.StatusRunning {
			t.Fatalf("the run is %s", p.Status)
		}
		stored := func() []engine.RunResult {
			rows, err := v.store.Results(t.Context(), "run-1")
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
		rows := stored()
		want := map[string]engine.Status{"worker-0": engine.StatusRunning, "worker-1": engine.StatusCompleted,
			"worker-2": engine.StatusCompleted, "worker-3": engine.StatusFailed}
		for _, row := range rows {
			if is, known := want[row.WorkerID]; known && (row.Status != is || row.EndTime.IsZero() == is.Terminal()) {
				t.Errorf("the row of %s is %s, ended %v", row.WorkerID, row.Status, row.EndTime)
			}
		}
		shown := live.FinishedState(&engine.RunDetail{Run: engine.Run{RunID: "run-1", Status: p.Status}, Workers: rows},
			time.Now()).Workers
		for _, w := range append(shown, p.Workers...) {
			if is, known := want[w.WorkerID]; known && is.Terminal() != w.Status.Ended() {
				t.Errorf("%s is shown as %s", w.WorkerID, w.Status)
			}
			if w.WorkerID == "worker-3" && w.Metrics.QPS != nil {
				t.Errorf("a lost run worker does %v/s", *w.Metrics.QPS)
			}
		}
		for _, w := range shown {
			if want[w.WorkerID] == engine.StatusCompleted &&
				(w.Metrics.TotalQueries == 0 || w.Metrics.ErrorCount != nil) {
				t.Errorf("of %s, which has left: %+v", w.WorkerID, w.Metrics)
			}
		}
		beats, err := v.store.Workers(t.Context(), "run-1")
		if err != nil || len(beats) < len(want) {
			t.Errorf("%d heartbeats, %v", len(beats), err)
		}
		for _, w := range beats {
			if is, known := want[w.WorkerID]; known && is.Terminal() != w.Status.Ended() {
				t.Errorf("the heartbeat of %s is %s", w.WorkerID, w.Status)
			}
		}
		if len(shown) < len(want) || len(p.Workers) < len(want) {
			t.Errorf("%d and %d run workers", len(shown), len(p.Workers))
		}
		// The lost one is heard of again, and has ended; then the run ends by a user. Neither changes how they left.
		ended := map[string]engine.Time{}
		for _, row := range rows {
			ended[row.WorkerID] = row.EndTime
		}
		v.mu.Lock()
		v.workers["worker-3"].cutAt, v.workers["worker-3"].silent = time.Time{}, false
		v.leave(v.workers["worker-3"])
		v.mu.Unlock()
		v.wait(5 * time.Second)
		check := func(when string) {
			known := 0
			for _, row := range stored() {
				is := want[row.WorkerID]
				if !is.Terminal() {
					continue
				}
				known++
				if row.Status != is || !row.EndTime.Equal(ended[row.WorkerID].Time) || row.Figures == nil ||
					(row.FailureReason != "") != (is == engine.StatusFailed) {
					t.Errorf("%s the row of %s is %s (%s), ended %v; it ended %v", when, row.WorkerID, row.Status,
						row.FailureReason, row.EndTime, ended[row.WorkerID])
				}
			}
			if known != 3 {
				t.Errorf("%s %d have left", when, known)
			}
		}
		check("while the run goes on")
		if _, err := v.svc.Stop(t.Context(), "run-1", "tester"); err != nil {
			t.Fatal(err)
		}
		v.figures()
		v.wait(time.Second)
		check("after the run")
		for _, row := range stored() {
			if row.WorkerID == "worker-0" && (row.Status != engine.StatusCancelled || row.Figures.CountsOnly) {
				t.Errorf("who stayed is %s, %+v", row.Status, row.Figures)
			}
		}
	})
}
