// This part builds the state of a run as the page is sent it, whether the
// run is live or at rest: one builder, so that both have the same shape. Pure
// functions of what is given; the live figures are filled in by engine/run/live.

package live

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// BaseState holds what the run's row says; every field is present.
func BaseState(run engine.Run, now time.Time) *engine.LiveState {
	p := &engine.LiveState{ResultID: run.ResultID, RunID: run.RunID, RunName: run.RunName, Status: run.Status,
		Timestamp:          engine.At(now),
		CancellationReason: run.CancellationReason, Enrichment: NotEnriched(),
		Logs: []engine.LogEntry{}, Guardrails: []engine.GuardrailState{}, Rules: []engine.RuleState{},
		Workers:   []engine.WorkerState{},
		OpsByKind: map[engine.Kind]engine.KindRate{}, LatencyByKind: map[engine.Kind]engine.Latency{},
		Errors:        engine.ErrorStats{ByClass: map[engine.ErrorClass]int64{}, Recent: []engine.ObservedError{}},
		CustomMetrics: engine.CustomMetrics{AppOpsBreakdown: map[string]int64{}, SFBench: map[string]any{}},
		Validity:      engine.Validity{Verdict: engine.VerdictValid, Causes: []engine.ValidityCause{}, Notes: []string{}}}
	p.Rules = append(p.Rules, run.Rules...)
	if run.Phase != engine.PhaseNone {
		phase := run.Phase
		p.Phase = &phase
	}
	p.Timing = timing(run, now)
	p.Elapsed = p.Timing.ElapsedDisplaySeconds
	return p
}

// NotEnriched is the enrichment of a run of which nothing is known yet.
func NotEnriched() engine.Enrichment {
	return engine.Enrichment{Status: engine.EnrichmentSkipped, Reason: "Nothing has been executed yet."}
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

// timing derives the timers from the run's times. The total stops with the run
// and is kept while figures are computed; a phase timer stops with its phase.
func timing(run engine.Run, now time.Time) engine.Timing {
	w := run.Scenario.Workload
	t := engine.Timing{StartTime: run.StartTime, WarmupStartTime: run.WarmupStartTime, WarmupEndTime: run.WarmupEndTime,
		MeasurementStartTime: run.WarmupEndTime,
		MeasurementEndTime:   run.MeasurementEndTime, EndTime: run.EndTime, WarmupSeconds: w.WarmupSeconds,
		DurationSeconds:      w.DurationSeconds,
		ExpectedSecondsTotal: w.WarmupSeconds + w.DurationSeconds}
	if w.IsSearch() {
		// It takes as long as it takes.
		t.DurationSeconds, t.ExpectedSecondsTotal = 0, 0
	}
	if run.StartTime.IsZero() {
		return t
	}
	end := now
	if !run.EndTime.IsZero() {
		end = run.EndTime.Time
	}
	t.ElapsedDisplaySeconds = max(0, end.Sub(run.StartTime.Time).Seconds())
	since := func(from engine.Time) {
		if !from.IsZero() {
			t.PhaseElapsedSeconds = seconds(max(0, now.Sub(from.Time)))
		}
	}
	remaining := func(from engine.Time, total time.Duration) {
		if !from.IsZero() {
			t.PhaseRemainingSeconds = seconds(max(0, total-max(0, now.Sub(from.Time))))
		}
	}
	switch run.Phase {
	case engine.PhasePreparing:
		since(run.StartTime)
	case engine.PhaseWarmup:
		since(run.WarmupStartTime)
		remaining(run.WarmupStartTime, w.Warmup())
	case engine.PhaseMeasurement:
		since(run.WarmupEndTime)
		if !w.IsSearch() {
			remaining(run.WarmupEndTime, w.Duration())
		}
	case engine.PhaseCooldown:
		since(run.MeasurementEndTime)
	case engine.PhaseProcessing:
		since(run.EndTime)
		t.ProcessingStartTime, t.ProcessingElapsedTotal = run.EndTime, t.PhaseElapsedSeconds
	}
	return t
}

// FinishedState is the payload of a run that no loop publishes: one that has not
// started, or whose load is over. That of a live run is its own.
func FinishedState(d *engine.RunDetail, now time.Time) *engine.LiveState {
	if d.Live != nil {
		return d.Live
	}
	p := BaseState(d.Run, now)
	p.Simulated, p.Emulated, p.Enrichment = d.Simulated, d.Emulated, d.Enrichment
	p.Ops.Total, p.Errors.Count = d.TotalOps, d.ErrorCount
	if d.TotalOps > 0 {
		p.Errors.Rate = new(float64(d.ErrorCount) / float64(d.TotalOps))
	}
	p.FindMax = d.FindMax
	for _, w := range d.Workers {
		p.Workers = append(p.Workers, workerRow(w, d.Run))
	}
	if s := d.Summary; s != nil {
		applySummary(p, s)
	}
	ApplyWarehouse(p, d.Warehouse, credits(d))
	return p
}

func applySummary(p *engine.LiveState, s *engine.Summary) {
	p.Ops.Total, p.Operations.Reads, p.Operations.Writes = s.Operations, s.Reads, s.Writes
	p.LatencyTotal = latencyFromResult(s.LatencyMs)
	for kind, k := range s.ByKind {
		p.OpsByKind[kind] = engine.KindRate{Total: k.Count, Errors: k.Errors}
		p.LatencyByKind[kind] = latencyFromResult(k.LatencyMs)
		p.CustomMetrics.AppOpsBreakdown[kind.String()] = k.Count
	}
	p.Errors.Count, p.Errors.Rate, p.Errors.Retries = s.Errors.Count, s.Errors.Rate, s.Retries
	if s.Errors.ByClass != nil {
		p.Errors.ByClass = s.Errors.ByClass
	}
	if s.ValidityDetail.Verdict != "" {
		p.Validity = s.ValidityDetail
	}
	if p.Validity.Causes == nil {
		p.Validity.Causes = []engine.ValidityCause{}
	}
	if p.Validity.Notes == nil {
		p.Validity.Notes = []string{}
	}
}

// workerRow is a row of the results as one of the table.
func workerRow(r engine.RunResult, run engine.Run) engine.WorkerState {
	w := engine.WorkerState{WorkerID: r.WorkerID, Status: engine.WorkerCompleted, Health: engine.HealthHealthy,
		LastHeartbeat: r.EndTime}
	if r.WorkerGroupID != nil {
		w.WorkerGroupID = *r.WorkerGroupID
	}
	switch {
	case r.FailureReason != "":
		w.Status = engine.WorkerFailed
	case !run.Status.Terminal() && !r.Status.Terminal():
		w.Status = engine.WorkerRunning
	}
	w.Metrics.TargetConnections = run.WorkerTargets[r.WorkerID].TargetConnections
	if f := r.Figures; f != nil {
		w.Metrics.QPS, w.Metrics.TotalQueries = f.QPS, f.Operations
		if !f.CountsOnly {
			w.Metrics.ErrorCount = &f.Errors.Count
		}
		l := latencyFromResult(f.LatencyMs)
		w.Metrics.P50LatencyMs, w.Metrics.P95LatencyMs, w.Metrics.P99LatencyMs = l.P50, l.P95, l.P99
	}
	return w
}

func latencyFromResult(l *engine.LatencyMs) engine.Latency {
	if l == nil {
		return engine.Latency{}
	}
	v := *l
	return engine.Latency{P50: &v.P50, P95: &v.P95, P99: &v.P99, Avg: &v.Avg, Min: &v.Min, Max: &v.Max}
}

// credits of a run that is over, nil where nobody knows.
func credits(d *engine.RunDetail) *float64 {
	if d.Summary == nil || d.Summary.Cost == nil {
		return nil
	}
	c := d.Summary.Cost.RunCredits
	return &c
}

// ApplyWarehouse shows the warehouse as last polled, and what the run has used of it so
// far. A run without one (nil) keeps both empty.
func ApplyWarehouse(p *engine.LiveState, w *engine.Warehouse, credits *float64) {
	if w == nil {
		return
	}
	shown := *w
	shown.Raw = nil
	p.Warehouse = &shown
	var clusters any // null where the edition knows none, and the number itself where it does
	if w.StartedClusters != nil {
		clusters = *w.StartedClusters
	}
	p.CustomMetrics.SFBench = map[string]any{"warehouse": w.Name, "running": w.Running, "queued": w.Queued,
		"clusters": clusters, "credits": credits}
}

// ApplyPoint shows a stored second as what is live.
func ApplyPoint(p *engine.LiveState, at engine.Point) {
	p.Ops.CurrentPerSec, p.Ops.Total = at.QPS, at.TotalQueries
	p.Operations.ReadsPerSec, p.Operations.WritesPerSec = at.ReadsPerSec, at.WritesPerSec
	p.Latency.P50, p.Latency.P95, p.Latency.P99 = at.P50LatencyMs, at.P95LatencyMs, at.P99LatencyMs
	p.Latency.Avg, p.Latency.Max = at.AvgLatencyMs, at.MaxLatencyMs
	p.Errors.PerSec, p.Errors.Count = at.ErrorsPerSec, at.ErrorCount
	if at.ErrorsByClass != nil {
		p.Errors.ByClass = at.ErrorsByClass
	}
	p.Connections.Active, p.Connections.Target = at.ActiveConnections, at.TargetConnections
	p.LatencyHistogram, p.LoadStats = at.Histogram, at.LoadStats
	r := &p.CustomMetrics.Resources
	r.CPUPercent, r.MemoryPercent = at.CPUPercent, at.MemoryPercent
	r.HostCPUPercent, r.HostMemoryPercent = at.HostCPUPercent, at.HostMemoryPercent
}

// ConnectProgress is the progress of run workers that open their connections.
func ConnectProgress(open, want int64) *engine.PrepareProgress {
	return &engine.PrepareProgress{Step: "connect", Message: "Opening the connections of the run workers", RowsDone: open,
		RowsTotal: want}
}
