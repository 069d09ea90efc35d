package guardrail

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"pgregory.net/rapid"
)

func TestALimitTriggersOnceItHeldForFiveSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		max := 80.0
		w := New(engine.Guardrails{MaxMemoryPercent: &max})
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var since time.Time
		for range rapid.IntRange(1, 60).Draw(t, "samples") {
			at = at.Add(time.Duration(rapid.IntRange(100, 2500).Draw(t, "ms")) * time.Millisecond)
			value := rapid.SampledFrom([]float64{10, 80, 80.1, 99}).Draw(t, "percent")
			want := false
			switch {
			case value <= max:
				since = time.Time{}
			case since.IsZero():
				since = at
			default:
				want = at.Sub(since) >= 5*time.Second
			}
			if got := w.Observe(at, engine.Resources{MemoryPercent: value, CPUPercent: 100}); (got != "") != want {
				t.Fatalf("after %v over the limit: %q", at.Sub(since), got)
			}
		}
	})
}

func TestWithoutLimitsNothingTriggers(t *testing.T) {
	w := New(engine.Guardrails{})
	for i := range 100 {
		if got := w.Observe(time.Unix(int64(i), 0), engine.Resources{CPUPercent: 100, MemoryPercent: 100, HostCPUPercent: 100, HostMemoryPercent: 100}); got != "" {
			t.Fatal(got)
		}
	}
}
