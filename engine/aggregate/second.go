package aggregate

import (
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/guardrail"
)

// SilentAfter is longer than the reports of each second are late when all is well.
const SilentAfter = 3 * time.Second

// Silent says that a run worker that reported each second has not since it was heard, and may be heard of again.
func Silent(status engine.WorkerStatus, heard, now time.Time) bool {
	return status != engine.WorkerStarting && !status.Ended() && now.Sub(heard) > SilentAfter
}

// Reported tells whether a worker has sent a snapshot yet. Before the first one
// there is load already, and nothing is known of it.
func (s *Second) Reported() bool {
	return slices.ContainsFunc(s.Workers, func(w WorkerSample) bool { return !w.Newest.IsZero() })
}

// PhaseOf is the phase that a second's figures belong to: snapshots arrive up to
// a second after what they tell, so the first of the measurement may hold warm-up only.
func (s *Second) PhaseOf(now engine.Phase) engine.Phase {
	if len(s.Snapshots) == 0 {
		return now
	}
	for i := range s.Snapshots {
		if s.Snapshots[i].Phase != engine.PhaseWarmup {
			return now
		}
	}
	return engine.PhaseWarmup
}

// Rows are the new snapshots as they are stored: they may wait for a store that is away, a thousand each second.
func (s *Second) Rows() []engine.WorkerSnapshot {
	rows := make([]engine.WorkerSnapshot, len(s.Snapshots))
	for i := range s.Snapshots {
		rows[i] = s.Snapshots[i].Slim()
	}
	return rows
}

// shortestSecond is how much time a last, partial second must cover to be a point of
// the time series when nothing ended in it.
const shortestSecond = 0.25

// Tells reports whether the second is a point of the time series: it covers enough time,
// or something has happened in it. One in which no run worker is heard of tells nothing: what they
// did last is not what they do now, and a gap is a gap.
func (s *Second) Tells() bool {
	return !s.unheard && (s.covered() >= shortestSecond || s.reportedOps() > 0)
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

// Guarded is what guardrails judge of the second.
func (s *Second) Guarded() (g guardrail.Sample) {
	if len(s.Nodes) > 0 {
		g.Resources = &s.Peak
	}
	g.P95Ms, g.P99Ms, g.ErrorPct = s.Worst()
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

// waiting is how many snapshots the next tick has, of all run workers.
func (a *Aggregator) waiting() (n int) {
	for _, r := range a.workers {
		n += len(r.fresh)
	}
	return n
}
