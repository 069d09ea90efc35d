package finalize

import (
	"math"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/live"
)

func TestLivePercentilesAreComparedWithTheExactOnes(t *testing.T) {
	second := func(count int64, p50, p95, p99 float64) *live.Second {
		s := &live.Second{PhaseCount: count}
		s.Payload.LatencyTotal = engine.Latency{P50: &p50, P95: &p95, P99: &p99}
		return s
	}
	figures := &engine.Figures{Operations: 1000, LatencyMs: &engine.LatencyMs{P50: 1, P95: 2, P99: 4}}
	var s LivePercentiles
	s.Record(engine.PhaseWarmup, second(990, 9, 9, 9))
	if got := s.compareExact(figures); got != nil {
		t.Errorf("of a warm-up: %v", got)
	}
	s.Record(engine.PhaseMeasurement, second(500, 1, 1, 1))
	if got := s.compareExact(figures); got != nil {
		t.Errorf("of half the executions: %v", got)
	}
	s.Record(engine.PhaseMeasurement, second(990, 1.01, 1.98, 4))
	s.Record(engine.PhaseProcessing, second(0, 0, 0, 0))
	got := s.compareExact(figures)
	if len(got) != 3 {
		t.Fatalf("got %v", got)
	}
	for i, want := range []float64{1, -1, 0} {
		if math.Abs(*got[i].ErrorPct-want) > 1e-9 {
			t.Errorf("P%.0f is off by %v, want %v", got[i].Percentile, *got[i].ErrorPct, want)
		}
	}
	if got := s.compareExact(&engine.Figures{}); got != nil {
		t.Errorf("without executions: %v", got)
	}
}
