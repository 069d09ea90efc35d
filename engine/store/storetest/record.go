package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

func Second(n int) store.Tick {
	p50, p95 := 1.5, 2.5
	at := Noon.Add(time.Duration(n) * time.Second)
	t := store.Tick{RunID: "r1", TotalOps: int64(100 * n), ErrorCount: int64(n), CurrentQPS: 100,
		WorkersRegistered: 2, WorkersActive: 2,
		Point: &engine.Point{Timestamp: engine.At(at), ElapsedSeconds: float64(n), Phase: engine.PhaseMeasurement, QPS: 100,
			ReadsPerSec: 60, WritesPerSec: 40,
			P50LatencyMs: &p50, P95LatencyMs: &p95, ErrorsPerSec: 1, TotalQueries: int64(100 * n), ErrorCount: int64(n),
			ActiveConnections: 4, TargetConnections: 5,
			QPSByKind:     map[engine.Kind]float64{engine.KindPointLookup: 60},
			ErrorsByClass: map[engine.ErrorClass]int64{engine.ErrClassTimeout: 1},
			Histogram:     &engine.HistogramData{Schema: 2, Offset: 80, Counts: []int64{1, 2}, Sum: 300, Min: 90, Max: 110},
			CPUPercent:    10, MemoryPercent: 20, HostCPUPercent: 30, HostMemoryPercent: 40},
	}
	for w := range 2 {
		id := fmt.Sprintf("worker-%d", w)
		t.Workers = append(t.Workers,
			store.WorkerRow{RunID: "r1", WorkerID: id, WorkerGroupID: w, NodeID: "node", ResultID: "r1-" + id,
				Status: engine.WorkerRunning, Phase: engine.PhaseMeasurement, LastHeartbeat: at})
		t.Snapshots = append(t.Snapshots,
			engine.WorkerSnapshot{RunID: "r1", ResultID: "r1-" + id, WorkerID: id, WorkerGroupID: w, NodeID: "node",
				Tick: int64(n), Timestamp: engine.At(at), Phase: engine.PhaseMeasurement, Status: engine.WorkerRunning,
				PhaseSeconds: float64(n), TickSeconds: 0.5,
				Started: int64(50 * n), Succeeded: int64(49 * n), Failed: int64(n), TickStarted: 25,
				ByKind: map[engine.Kind]engine.KindCounts{engine.KindInsert: {Count: 20}},
				TickLatency: &engine.PackedHistogram{Schema: 0, Offset: 20, Width: 1, Counts: []byte{50}, Sum: 50 << 20,
					Min: 1 << 20, Max: 1 << 20}, ActiveConnections: 2, TargetConnections: 3})
	}
	return t
}

func tick(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	_, err := s.Transition(ctx, store.Transition{RunID: "r1", To: engine.StatusRunning, StartTime: Noon})
	Must(t, err)
	for n := 1; n <= 3; n++ {
		Must(t, s.SaveTick(ctx, Second(n)))
	}
	run, err := s.Run(ctx, "r1")
	Must(t, err)
	if run.TotalOps != 300 || run.ErrorCount != 3 || run.CurrentQPS != 100 || run.WorkersRegistered != 2 ||
		run.WorkersActive != 2 {
		t.Errorf("roll-up %+v", run)
	}
	points, _, err := s.Series(ctx, "r1", store.Window{})
	Must(t, err)
	Same(t, "points", points, []engine.Point{*Second(1).Point, *Second(2).Point, *Second(3).Point})
	workers, err := s.Workers(ctx, "r1")
	Must(t, err)
	Same(t, "workers", workers, Second(3).Workers)
}

func tickIsIdempotent(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	first := Second(1)
	first.Logs = []engine.LogEntry{{Seq: 1, Level: engine.LogInfo, Message: "once", Timestamp: engine.At(Noon)}}
	for range 3 {
		Must(t, s.SaveTick(ctx, first))
	}
	points, _, err := s.Series(ctx, "r1", store.Window{})
	Must(t, err)
	logs, err := s.Logs(ctx, "r1", 0, "", 0)
	Must(t, err)
	if len(points) != 1 || len(logs) != 1 {
		t.Errorf("%d points, %d log lines after repeating one second", len(points), len(logs))
	}
	// A late repetition must not turn the heartbeat back.
	Must(t, s.SaveTick(ctx, Second(2)))
	Must(t, s.SaveTick(ctx, first))
	workers, err := s.Workers(ctx, "r1")
	Must(t, err)
	Same(t, "workers", workers, Second(2).Workers)
}

// tickOddText proves that what a target says cannot stop the recording.
func tickOddText(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	one := Second(1)
	one.Workers[0].Error = "bad \x00 text \xff"
	one.Logs = []engine.LogEntry{
		{Seq: 1, Level: engine.LogError, Message: "nul \x00, broken \xff, emoji 🧲"},
		{Seq: 2, Level: engine.LogError, Message: "details",
			Details: json.RawMessage(`{"text": "a\u0000b", "path": "c:\\u0000"}`)},
		{Seq: 3, Level: engine.LogError, Message: "not json", Details: json.RawMessage(`{"half`)},
		{Seq: 4, Level: engine.LogError, Message: strings.Repeat("long ", 10_000)},
	}
	Must(t, s.SaveTick(ctx, one))
	logs, err := s.Logs(ctx, "r1", 0, "", 0)
	Must(t, err)
	if len(logs) != 4 || !strings.Contains(logs[0].Message, "🧲") {
		t.Fatalf("logs %v", logs)
	}
	var details map[string]string
	Must(t, json.Unmarshal(logs[1].Details, &details))
	if details["text"] != "ab" || details["path"] != `c:\u0000` {
		t.Errorf("details %q", details)
	}
}

func logs(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	levels := []engine.LogLevel{engine.LogInfo, engine.LogWarning, engine.LogError, engine.LogCritical}
	var want []engine.LogEntry
	for i := range 8 {
		want = append(want, engine.LogEntry{Seq: int64(i + 1), RunID: "r1", ResultID: "r1", WorkerID: "worker-0",
			Level:   levels[i%4],
			Message: fmt.Sprint("line ", i), Details: json.RawMessage(`{"n":1}`), Timestamp: engine.At(Noon)})
	}
	Must(t, s.SaveTick(ctx, store.Tick{RunID: "r1", Logs: want}))
	all, err := s.Logs(ctx, "r1", 0, "", 0)
	Must(t, err)
	Same(t, "logs", all, want)
	some, err := s.Logs(ctx, "r1", 2, "", 3)
	Must(t, err)
	Same(t, "three after 2", some, want[2:5])
	bad, err := s.Logs(ctx, "r1", 0, engine.LogError, 0)
	Must(t, err)
	Same(t, "errors and worse", bad, []engine.LogEntry{want[2], want[3], want[6], want[7]})
}

func results(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	passed, children := false, []engine.RunResult(nil)
	for _, g := range []int{10, 2} {
		children = append(children, engine.RunResult{ResultID: fmt.Sprint("c", g), RunID: "r1", WorkerGroupID: &g,
			WorkerID: fmt.Sprint("worker-", g), Status: engine.StatusRunning, StartTime: engine.At(Noon)})
	}
	Must(t, s.SaveResult(ctx, children...))
	parent := engine.RunResult{
		ResultID:         "r1",
		RunID:            "r1",
		Status:           engine.StatusCompleted,
		Passed:           &passed,
		EndTime:          engine.At(Noon),
		EnrichmentStatus: "SKIPPED",
		Environment:      &engine.Environment{CPUs: 2},
		Figures: &engine.Figures{
			Operations:      5,
			DurationSeconds: 2,
			QPS:             new(2.5),
			LatencyMs:       &engine.LatencyMs{P50: 1, P99: 9},
			ByKind:          map[engine.Kind]*engine.KindFigures{engine.KindUpdate: {Count: 5}},
			Errors: engine.ErrorFigures{ByClass: map[engine.ErrorClass]int64{},
				Top: []engine.ErrorGroup{{ExecutionError: engine.ExecutionError{Code: "40001", Message: "nul \x00"}, Count: 1}}},
			Histogram: []engine.HistogramBucket{{FromMs: 1, ToMs: 2, Count: 5}},
		},
		Validity:   &engine.Validity{Verdict: engine.VerdictValid},
		Thresholds: []engine.ThresholdResult{{Threshold: "p95_ms < 1"}},
		Plan:       &engine.Plan{Driver: "postgres", Statements: []engine.Statement{{ID: "s", SQL: "SELECT $1"}}},
	}
	Must(t, s.SaveResult(ctx, parent))
	// Nothing but the reason is given, so nothing else changes.
	Must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "r1", RunID: "r1", FailureReason: "Worker failure"}))
	rows, err := s.Results(ctx, "r1")
	Must(t, err)
	if len(rows) != 3 || rows[0].ResultID != "r1" || rows[1].ResultID != "c2" || rows[2].ResultID != "c10" {
		t.Fatalf("order of %+v", rows)
	}
	want := parent
	want.RunName, want.FailureReason, want.CreatedAt, want.UpdatedAt = "test of r1", "Worker failure", rows[0].CreatedAt,
		rows[0].UpdatedAt
	want.Figures.Errors.Top[0].Message = "nul "
	Same(t, "parent", rows[0], want)
	if rows[1].WorkerID != "worker-2" || *rows[1].WorkerGroupID != 2 || rows[1].Status != engine.StatusRunning ||
		rows[1].Figures != nil {
		t.Errorf("child %+v", rows[1])
	}
	_, first := s.TakeOver(ctx, "r1")
	epoch, err := s.TakeOver(ctx, "r1")
	Must(t, errors.Join(first, err))
	// Who owned the run before changes nothing of what who owns it now has written.
	late := engine.RunResult{ResultID: "r1", RunID: "r1", Epoch: epoch - 1, Status: engine.StatusRunning,
		FailureReason: "late", Validity: &engine.Validity{Verdict: engine.VerdictDegraded}}
	other := engine.RunResult{ResultID: "late", RunID: "r1", WorkerID: "worker-9"}
	WantError(t, s.SaveResult(ctx, late, other), store.ErrFenced)
	late.Epoch = epoch // all rows or none
	WantError(t, s.SaveResult(ctx, late, other, engine.RunResult{ResultID: "none", RunID: "none"}), store.ErrNotFound)
	after, err := s.Results(ctx, "r1")
	Must(t, err)
	Same(t, "results after a late write", after, rows)
	Must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "r1", RunID: "r1", Epoch: epoch, FailureReason: "in time"}))
	if after, err = s.Results(ctx, "r1"); err != nil || after[0].FailureReason != "in time" || after[0].Epoch != 0 {
		t.Errorf("%v, %+v", err, after[0])
	}
}

func enrichment(t *testing.T, s Store) {
	ctx := t.Context()
	none := engine.PhaseNone
	for _, id := range []string{"done", "pending", "running", "live"} {
		Create(t, s, id)
		Move(t, s, id, engine.StatusRunning)
		if id != "live" {
			Move(t, s, id, engine.StatusStopping, engine.StatusCompleted)
			_, err := s.Transition(ctx, store.Transition{RunID: id, Phase: &none})
			Must(t, err)
		}
	}
	ratio := 0.25
	save := func(id string, e engine.Enrichment) {
		Must(t, s.SaveResult(ctx, engine.RunResult{ResultID: id, RunID: id, Enrichment: &e}))
	}
	want := engine.Enrichment{Status: engine.EnrichmentPartial, Ratio: &ratio, Executions: 4, Matched: 1,
		StartedAt: engine.At(Noon), Notes: []string{"n"},
		ByKind: map[engine.Kind]*engine.KindEnrichment{engine.KindInsert: {Executions: 4, Matched: 1, Ratio: 0.25,
			Figures: &engine.ServerFigures{Matched: 1}}}}
	save("done", engine.Enrichment{Status: engine.EnrichmentPending})
	save("done", want)
	save("pending", engine.Enrichment{Status: engine.EnrichmentPending})
	save("running", engine.Enrichment{Status: engine.EnrichmentRunning})
	save("live", engine.Enrichment{Status: engine.EnrichmentPending})
	rows, err := s.Results(ctx, "done")
	Must(t, err)
	if rows[0].EnrichmentStatus != engine.EnrichmentPartial {
		t.Errorf("status %q", rows[0].EnrichmentStatus)
	}
	Same(t, "enrichment", *rows[0].Enrichment, want)
	ids, err := s.PendingEnrichments(ctx)
	Must(t, err)
	Same(t, "enriching runs", ids, []string{"pending", "running"})
	awaited := engine.Enrichment{Status: engine.EnrichmentPartial,
		Aggregate: &engine.AggregateEnrichment{Status: engine.EnrichmentPending, NextPollAt: engine.At(Noon)}}
	save("done", awaited)
	save("live", awaited)
	awaited.Status = engine.EnrichmentRunning
	save("running", awaited)
	ids, err = s.PendingAggregates(ctx)
	Must(t, err)
	Same(t, "runs that await aggregates", ids, []string{"done"})
}

func artifacts(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	a := engine.Artifact{ArtifactID: "a1", RunID: "r1", ResultID: "c1", WorkerID: "worker-0", Kind: "executions",
		Name:      "executions-0.parquet",
		SizeBytes: 10, SHA256: strings.Repeat("ab", 32), RowCount: 3, MinTime: engine.At(Noon),
		MaxTime: engine.At(Noon.Add(time.Second)), SchemaVersion: 1, CreatedAt: engine.At(Noon)}
	Must(t, s.SaveArtifact(ctx, 0, a))
	Must(t, s.SaveArtifact(ctx, 0, a))
	again := a
	again.ArtifactID = "" // another fetch of the same file
	Must(t, s.SaveArtifact(ctx, 0, again))
	other := a
	other.ArtifactID, other.SHA256 = "a2", strings.Repeat("cd", 32)
	WantError(t, s.SaveArtifact(ctx, 0, other), store.ErrConflict)
	_, err := s.TakeOver(ctx, "r1")
	Must(t, err)
	epoch, err := s.TakeOver(ctx, "r1")
	Must(t, err)
	late := a
	late.ArtifactID, late.Name = "a3", "executions-1.parquet"
	WantError(t, s.SaveArtifact(ctx, epoch-1, late), store.ErrFenced)
	list, err := s.Artifacts(ctx, "r1")
	Must(t, err)
	Same(t, "artifacts", list, []engine.Artifact{a})
	Create(t, s, "kinds")
	for _, kind := range []string{"enrichment", "binds", "server"} { // what engine/results/record writes
		more := a
		more.ArtifactID, more.RunID, more.Kind, more.Name = "a-"+kind, "kinds", kind, kind+"-0.parquet"
		Must(t, s.SaveArtifact(ctx, 0, more))
	}
	Must(t, s.SaveArtifact(ctx, epoch, late))
	list, err = s.Artifacts(ctx, "r1")
	Must(t, err)
	Same(t, "artifacts of the owner", list, []engine.Artifact{a, late})
}

func liveRuns(t *testing.T, s Store) {
	ctx := t.Context()
	none := engine.PhaseNone
	processing := engine.PhaseProcessing
	for _, id := range []string{"prepared", "running", "stopping", "cancelling", "processing", "done"} {
		Create(t, s, id)
	}
	Move(t, s, "running", engine.StatusRunning)
	Move(t, s, "stopping", engine.StatusRunning, engine.StatusStopping)
	Move(t, s, "cancelling", engine.StatusRunning, engine.StatusCancelling)
	Move(t, s, "processing", engine.StatusRunning, engine.StatusStopping, engine.StatusCompleted)
	Move(t, s, "done", engine.StatusRunning, engine.StatusStopping, engine.StatusCompleted)
	_, err := s.Transition(ctx, store.Transition{RunID: "processing", Phase: &processing})
	Must(t, err)
	_, err = s.Transition(ctx, store.Transition{RunID: "done", Phase: &none})
	Must(t, err)
	runs, err := s.LiveRuns(ctx)
	Must(t, err)
	got := map[string]bool{}
	for _, r := range runs {
		got[r.RunID] = true
	}
	if len(got) != 4 || !got["running"] || !got["stopping"] || !got["cancelling"] || !got["processing"] {
		t.Errorf("live runs %v", got)
	}
}

func deleteRun(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	Move(t, s, "r1", engine.StatusRunning)
	WantError(t, s.DeleteRun(ctx, "r1"), store.ErrConflict)
	tick := Second(1)
	tick.Logs = []engine.LogEntry{{Seq: 1, Level: engine.LogInfo, Message: "x"}}
	Must(t, s.SaveTick(ctx, tick))
	Must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "c1", RunID: "r1", WorkerID: "worker-0"}))
	Must(t, s.SaveArtifact(ctx, 0,
		engine.Artifact{RunID: "r1", ResultID: "c1", Kind: "executions", Name: "a", SHA256: "ab"}))
	_, err := s.Transition(ctx, store.Transition{RunID: "r1", To: engine.StatusStopping,
		Events: []engine.Event{{Type: engine.EventStop}}})
	Must(t, err)
	WantError(t, s.DeleteRun(ctx, "r1"), store.ErrConflict)
	Move(t, s, "r1", engine.StatusCompleted)
	Must(t, s.DeleteRun(ctx, "r1"))
	_, err = s.Run(ctx, "r1")
	WantError(t, err, store.ErrNotFound)
	events, err := s.Events(ctx, "r1", 0)
	Must(t, err)
	rows, err := s.Results(ctx, "r1")
	Must(t, err)
	parts, err := s.Artifacts(ctx, "r1")
	Must(t, err)
	if len(events)+len(rows)+len(parts) != 0 {
		t.Errorf("left behind: %d events, %d results, %d artifacts", len(events), len(rows), len(parts))
	}
	Create(t, s, "r2")
	Must(t, s.DeleteRun(ctx, "r2"))
}
