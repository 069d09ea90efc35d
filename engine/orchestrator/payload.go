package orchestrator

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/aggregate"
)

// enrichmentSkipped is the enrichment of a target that keeps no history of single queries.
func enrichmentSkipped() engine.Enrichment {
	return engine.Enrichment{Status: "SKIPPED", Reason: "Postgres keeps no history of single queries; the recorded executions are the source."}
}

// enrichmentNone is that of a run of which nothing is known yet.
func enrichmentNone() engine.Enrichment {
	return engine.Enrichment{Status: engine.EnrichmentSkipped, Reason: "Nothing has been executed yet."}
}

// publish makes the payload of this moment and offers it to the subscribers.
func (l *live) publish(last bool) {
	p := l.snapshot(l.clock.Now())
	l.payload.Store(p)
	l.svc.publish(l.runID, p, last)
}

// snapshot is the whole live state. It shares no memory that changes later.
func (l *live) snapshot(now time.Time) *engine.Payload {
	p := basePayload(l.run, now)
	l.second.Fill(p)
	if l.plan != nil {
		p.Simulated, p.Emulated = l.plan.Server.Simulated, l.plan.Server.Emulated
	}
	if l.core.preparing && l.progress != nil {
		progress := *l.progress
		p.Prepare = &progress
	} else if l.core.placed && !l.core.started && !l.core.status.Terminal() {
		p.Prepare = l.connecting()
	}
	if !l.preparedAt.IsZero() {
		p.Timing.PrepareElapsedSeconds = seconds(l.preparedAt.Sub(l.run.StartTime.Time))
	}
	if l.plan != nil {
		p.Enrichment = l.svc.enrichmentOf(l.runID, nil, l.plan.Plan)
	}
	if l.enriching != nil {
		p.Enrichment = *l.enriching.state.Load()
	}
	if w := l.warehouse; w != nil {
		shown := *w
		shown.Raw = nil
		p.Warehouse = &shown
	}
	p.Validity = l.validity.Verdict()
	if sum := l.summary.Load(); sum != nil {
		p.Validity = sum.ValidityDetail
	}
	p.Guardrails = l.guard.State()
	p.FindMax = l.searchState(now)
	p.Logs, p.LogsDropped = l.logbook.newest(), l.logbook.dropped
	return p
}

// connecting is the progress between placing and START.
func (l *live) connecting() *engine.PrepareProgress {
	var open, want int64
	for _, w := range l.workers {
		open += int64(w.state.OpenConnections)
		want += int64(w.connections)
	}
	return &engine.PrepareProgress{Step: "connect", Message: "Opening the connections of the run workers", RowsDone: open, RowsTotal: want}
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

// basePayload holds what the run's row says.
func basePayload(run engine.Run, now time.Time) *engine.Payload {
	p := &engine.Payload{TestID: run.TestID, RunID: run.RunID, TestName: run.TestName, Status: run.Status, Timestamp: engine.At(now),
		CancellationReason: run.CancellationReason, Enrichment: enrichmentNone(), Logs: []engine.LogEntry{}, Guardrails: []engine.GuardrailState{},
		Validity: engine.Validity{Verdict: engine.VerdictValid, Causes: []engine.ValidityCause{}, Notes: []string{}}}
	aggregate.New().Tick(run.Phase, nil).Fill(p)
	if run.Phase != engine.PhaseNone {
		phase := run.Phase
		p.Phase = &phase
	}
	p.Timing = timing(run, now)
	p.Elapsed = p.Timing.ElapsedDisplaySeconds
	return p
}

// timing derives the timers from the run's times. The total stops with the run
// and is kept while figures are computed; a phase timer stops with its phase.
func timing(run engine.Run, now time.Time) engine.Timing {
	w := run.Scenario.Workload
	t := engine.Timing{StartTime: run.StartTime, WarmupStartTime: run.WarmupStartTime, WarmupEndTime: run.WarmupEndTime, MeasurementStartTime: run.WarmupEndTime,
		MeasurementEndTime: run.MeasurementEndTime, EndTime: run.EndTime, WarmupSeconds: w.WarmupSeconds, DurationSeconds: w.DurationSeconds,
		ExpectedSecondsTotal: w.WarmupSeconds + w.DurationSeconds}
	if w.Searches() {
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
			t.PhaseRemainingSeconds = seconds(max(0, total-now.Sub(from.Time)))
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
		if !w.Searches() {
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

// restingPayload is the payload of a run that is not live.
func restingPayload(d engine.RunDetail) *engine.Payload {
	p := basePayload(d.Run, time.Now())
	p.Simulated, p.Emulated, p.Enrichment = d.Simulated, d.Emulated, d.Enrichment
	p.Ops.Total, p.Errors.Count = d.TotalOps, d.ErrorCount
	if s := d.Summary; s != nil {
		p.Validity, p.FindMax = s.ValidityDetail, restingSearch(s.FindMax)
		p.Ops.Total, p.Operations.Reads, p.Operations.Writes = s.Operations, s.Reads, s.Writes
		p.Errors.Count, p.Errors.Rate = s.Errors.Count, s.Errors.Rate
		if s.Errors.ByClass != nil {
			p.Errors.ByClass = s.Errors.ByClass
		}
		if m := s.LatencyMs; m != nil {
			p.LatencyTotal = engine.Latency{P50: &m.P50, P95: &m.P95, P99: &m.P99, Avg: &m.Avg, Min: &m.Min, Max: &m.Max}
		}
	}
	return p
}
