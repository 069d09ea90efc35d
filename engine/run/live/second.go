package live

import (
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/guardrail"
)

// SilentAfter is longer than the reports of each second are late when all is well.
const SilentAfter = 3 * time.Second

// IsSilent says that a run worker that reported each second has not since it was heard, and may be heard of again.
func IsSilent(status engine.WorkerStatus, heard, now time.Time) bool {
	return status != engine.WorkerStarting && !status.Ended() && now.Sub(heard) > SilentAfter
}

// Reported tells whether a worker has sent a snapshot yet. Before the first one
// there is load already, and nothing is known of it.
func (s *Second) Reported() bool {
	return slices.ContainsFunc(s.Workers, func(w WorkerSample) bool { return !w.Newest.IsZero() })
}

// warmupTail is how long after the warm-up a second may still tell of it: snapshots arrive up to a second after what
// they tell.
const warmupTail = 2 * time.Second

// PhaseOf is the phase that a second's figures belong to, now being the run's and measured how long its measurement has
// gone on. A second that holds warm-up is one of it, with what it holds of the measurement: no figure of the
// measurement has any warm-up in it. What a run worker that was cut off tells of the warm-up later moves no second.
func (s *Second) PhaseOf(now engine.Phase, measured time.Duration) engine.Phase {
	warm := 0
	for i := range s.Snapshots {
		if s.Snapshots[i].Phase == engine.PhaseWarmup {
			warm++
		}
	}
	if warm > 0 && (warm == len(s.Snapshots) || measured < warmupTail) {
		return engine.PhaseWarmup
	}
	return now
}

// Rows are the new snapshots as they are stored: they may wait for a store that is away, a thousand each second.
func (s *Second) Rows() []engine.WorkerSnapshot {
	rows := make([]engine.WorkerSnapshot, len(s.Snapshots))
	for i := range s.Snapshots {
		rows[i] = s.Snapshots[i].Slim()
	}
	return rows
}

// minSecond is how much time a last, partial second must cover to be a point of
// the time series when nothing ended in it.
const minSecond = 0.25

// IsPoint reports whether the second is a point of the time series: it covers enough time,
// or something has happened in it. One in which no run worker is heard of tells nothing: what they
// did last is not what they do now, and a gap is a gap.
func (s *Second) IsPoint() bool {
	return !s.allSilent && (s.covered() >= minSecond || s.reportedOps() > 0)
}

// reportedOps is how many operations the new snapshots report.
func (s *Second) reportedOps() (n int64) {
	for _, snap := range s.Snapshots {
		n += snap.TickStarted
	}
	return n
}

// covered is the longest time that the snapshots of one worker cover in this
// second; a second without any repeats the one before and covers all of it.
func (s *Second) covered() float64 {
	if len(s.Snapshots) == 0 {
		return 1
	}
	longest := 0.0
	for _, snap := range s.Snapshots {
		longest = max(longest, snap.TickSeconds)
	}
	return longest
}

// GuardrailSample is what guardrails judge of the second.
func (s *Second) GuardrailSample() (g guardrail.Sample) {
	if len(s.Nodes) > 0 {
		g.Resources = &s.Peak
	}
	g.P95Ms, g.P99Ms, g.ErrorPct = s.Worst()
	g.Tolerated = s.Tolerated
	return g
}

// Worst are the highest P95, P99 and share of errors of any run worker in the new
// snapshots of the measurement, nil without an execution.
func (s *Second) Worst() (p95Ms, p99Ms, errorPct *float64) {
	for _, w := range s.Workers {
		p95Ms, p99Ms, errorPct = larger(p95Ms, w.P95Ms), larger(p99Ms, w.P99Ms), larger(errorPct, w.ErrorPct)
	}
	return p95Ms, p99Ms, errorPct
}

// maxHoldTicks is for how many ticks the first snapshots of some run workers wait for those of the others: all report
// within a second of the beginning, at times of their own.
const maxHoldTicks = 2

// awaitsFirst reports whether nothing of the run has been shown yet, and one of those that bear its load has sent no
// snapshot: the sum of the others would pass for a slow beginning.
func (a *Aggregator) awaitsFirst(workers []Worker) bool {
	if a.hasShown || a.heldTicks == maxHoldTicks || a.waiting() == 0 {
		return false
	}
	for i := range workers {
		w := &workers[i]
		if w.Status == engine.WorkerStarting || w.Status.Ended() || w.Health == engine.HealthDead || w.Silent {
			continue
		}
		if a.Newest(w.WorkerID) == nil {
			a.heldTicks++
			return true
		}
	}
	return false
}

// waiting is how many snapshots the next tick has, of all run workers.
func (a *Aggregator) waiting() (n int) {
	for _, r := range a.workers {
		n += len(r.fresh)
	}
	return n
}

// Fill writes the parts that aggregation owns into p.
func (s *Second) Fill(p *engine.LiveState) {
	a := &s.Payload
	p.Ops, p.Operations, p.OpsByKind = a.Ops, a.Operations, a.OpsByKind
	p.Latency, p.LatencyTotal, p.LatencyByKind = a.Latency, a.LatencyTotal, a.LatencyByKind
	p.LatencyAggregationMethod, p.LatencyHistogram = a.LatencyAggregationMethod, a.LatencyHistogram
	p.LoadStats, p.ServiceTotal = a.LoadStats, a.ServiceTotal
	p.Errors, p.Connections, p.Workers, p.CustomMetrics = a.Errors, a.Connections, a.Workers, a.CustomMetrics
}

// Point is the tick as one element of the run's time series.
func (s *Second) Point(at time.Time, elapsed time.Duration, phase engine.Phase) engine.Point {
	p := &s.Payload
	r := p.CustomMetrics.Resources
	return engine.Point{
		Timestamp: engine.At(at), ElapsedSeconds: elapsed.Seconds(), Phase: phase,
		QPS: p.Ops.CurrentPerSec, ReadsPerSec: p.Operations.ReadsPerSec, WritesPerSec: p.Operations.WritesPerSec,
		P50LatencyMs: p.Latency.P50, P95LatencyMs: p.Latency.P95, P99LatencyMs: p.Latency.P99,
		AvgLatencyMs: p.Latency.Avg, MaxLatencyMs: p.Latency.Max,
		ErrorsPerSec: p.Errors.PerSec, TotalQueries: p.Ops.Total, ErrorCount: p.Errors.Count,
		ActiveConnections: p.Connections.Active, TargetConnections: p.Connections.Target,
		QPSByKind: s.qpsByKind, ErrorsByClass: p.Errors.ByClass, Histogram: p.LatencyHistogram,
		CPUPercent: r.CPUPercent, MemoryPercent: r.MemoryPercent, HostCPUPercent: r.HostCPUPercent,
		HostMemoryPercent: r.HostMemoryPercent, LoadStats: p.LoadStats,
	}
}
