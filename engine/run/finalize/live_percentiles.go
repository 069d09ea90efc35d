package finalize

import (
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/live"
)

// LivePercentiles are the live percentiles of a measurement, and of how many executions they are.
type LivePercentiles struct {
	latency engine.Latency
	count   int64
}

// Record keeps what a second of the measurement showed.
func (s *LivePercentiles) Record(phase engine.Phase, second *live.Second) {
	if (phase == engine.PhaseMeasurement || phase == engine.PhaseCooldown) && second.PhaseCount > 0 {
		s.latency, s.count = second.Payload.LatencyTotal, second.PhaseCount
	}
}

// maxUnseenShare is the part of the executions that may end after the last second that was
// shown; where more did, or a search began anew, the two are not of the same executions.
const maxUnseenShare = 0.1

// compareExact compares with the exact percentiles; nil where there is nothing to compare.
func (s LivePercentiles) compareExact(f *engine.Figures) []engine.LivePercentile {
	if s.count == 0 || f.LatencyMs == nil || s.latency.P50 == nil {
		return nil
	}
	if d := float64(f.Operations - s.count); d > maxUnseenShare*float64(f.Operations) ||
		-d > maxUnseenShare*float64(f.Operations) {
		return nil
	}
	exact := f.LatencyMs
	list := []engine.LivePercentile{
		{Percentile: 50, LiveMs: *s.latency.P50, ExactMs: exact.P50},
		{Percentile: 95, LiveMs: *s.latency.P95, ExactMs: exact.P95},
		{Percentile: 99, LiveMs: *s.latency.P99, ExactMs: exact.P99},
	}
	for i := range list {
		if p := &list[i]; p.ExactMs > 0 {
			pct := (p.LiveMs/p.ExactMs - 1) * 100
			p.ErrorPct = &pct
		}
	}
	return list
}
