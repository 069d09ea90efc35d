package live

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// FromDetail builds the payload of a run that nobody publishes: one that has not
// started, or one that is over. Every field is present, as in a live one.
func FromDetail(d *engine.RunDetail) *engine.Payload {
	if d.Live != nil {
		return d.Live
	}
	p := &engine.Payload{
		TestID: d.RunID, RunID: d.RunID, TestName: d.TestName, Status: d.Status,
		Timestamp:          engine.At(time.Now()),
		CancellationReason: d.CancellationReason,
		Enrichment:         d.Enrichment,
		Ops:                engine.PayloadOps{Total: d.TotalOps, CurrentPerSec: 0},
		OpsByKind:          map[engine.Kind]engine.KindRate{},
		LatencyByKind:      map[engine.Kind]engine.Latency{},
		Errors:             engine.PayloadErrors{Count: d.ErrorCount, ByClass: map[engine.ErrorClass]int64{}, Recent: []engine.ExecutionError{}},
		Workers:            []engine.PayloadWorker{},
		CustomMetrics:      engine.CustomMetrics{AppOpsBreakdown: map[string]int64{}, SFBench: map[string]any{}},
		Validity:           engine.Validity{Verdict: engine.VerdictValid, Causes: []engine.ValidityCause{}, Notes: []string{}},
		Logs:               []engine.LogEntry{},
	}
	if d.Phase != engine.PhaseNone && !d.Status.Terminal() {
		phase := d.Phase
		p.Phase = &phase
	}
	w := d.Scenario.Workload
	p.Timing = engine.Timing{
		StartTime: d.StartTime, WarmupStartTime: d.WarmupStartTime, WarmupEndTime: d.WarmupEndTime,
		MeasurementStartTime: d.WarmupEndTime, MeasurementEndTime: d.MeasurementEndTime, EndTime: d.EndTime,
		WarmupSeconds: w.WarmupSeconds, DurationSeconds: w.DurationSeconds,
		ExpectedSecondsTotal: w.WarmupSeconds + w.DurationSeconds,
	}
	if !d.StartTime.IsZero() {
		end := d.EndTime.Time
		if end.IsZero() {
			end = p.Timestamp.Time
		}
		p.Timing.ElapsedDisplaySeconds = end.Sub(d.StartTime.Time).Seconds()
		p.Elapsed = p.Timing.ElapsedDisplaySeconds
	}
	if d.TotalOps > 0 {
		p.Errors.Rate = float64(d.ErrorCount) / float64(d.TotalOps)
	}
	if s := d.Summary; s != nil {
		fromSummary(p, s)
	}
	return p
}

func fromSummary(p *engine.Payload, s *engine.Summary) {
	p.Ops.Total = s.Operations
	p.Operations = engine.PayloadOperations{Reads: s.Reads, Writes: s.Writes}
	p.LatencyTotal = latency(s.LatencyMs)
	for kind, k := range s.ByKind {
		p.OpsByKind[kind] = engine.KindRate{Total: k.Count, Errors: k.Errors}
		p.LatencyByKind[kind] = latency(k.LatencyMs)
	}
	p.Errors.Count, p.Errors.Rate, p.Errors.Retries = s.Errors.Count, s.Errors.Rate, s.Retries
	if s.Errors.ByClass != nil {
		p.Errors.ByClass = s.Errors.ByClass
	}
	if s.ValidityDetail.Verdict != "" {
		p.Validity = s.ValidityDetail
		if p.Validity.Causes == nil {
			p.Validity.Causes = []engine.ValidityCause{}
		}
		if p.Validity.Notes == nil {
			p.Validity.Notes = []string{}
		}
	}
}

func latency(l *engine.LatencyMs) engine.Latency {
	if l == nil {
		return engine.Latency{}
	}
	v := *l
	return engine.Latency{P50: &v.P50, P95: &v.P95, P99: &v.P99, Avg: &v.Avg, Min: &v.Min, Max: &v.Max}
}
