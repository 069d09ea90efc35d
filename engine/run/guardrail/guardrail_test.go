package guardrail

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func memory(pct float64) Sample {
	return Sample{Resources: &engine.Resources{MemoryPercent: pct, CPUPercent: 100}}
}

// TestALimitTriggersOnceItHeld: at the first observation that lies as long as
// asked after the first one over the limit, whatever lies between them but a
// lower value, or a gap that nobody watched.
func TestALimitTriggersOnceItHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		max := 80.0
		hold := rapid.SampledFrom([]float64{0, 1, 5, 12.5}).Draw(t, "hold")
		w := New(engine.Guardrails{MaxMemoryPercent: &max, HoldSeconds: hold})
		if hold == 0 {
			hold = 5
		}
		at := noon
		var since time.Time
		for range rapid.IntRange(1, 60).Draw(t, "samples") {
			step := time.Duration(rapid.SampledFrom([]int{100, 900, 1000, 2500, 3000, 3001, 60000}).Draw(t,
				"ms")) * time.Millisecond
			at = at.Add(step)
			if step > 3*time.Second {
				since = time.Time{}
			}
			value := rapid.SampledFrom([]float64{-1, 10, 80, 80.1, 99}).Draw(t, "percent")
			sample := memory(value)
			want := false
			switch {
			case value < 0:
				sample = Sample{}
			case value <= max:
				since = time.Time{}
			case since.IsZero():
				since = at
			default:
				want = at.Sub(since).Seconds()+0.1 >= hold
			}
			if got := w.Observe(at, sample); (got != "") != want {
				t.Fatalf("after %v over the limit, hold %v: %q", at.Sub(since), hold, got)
			}
			if state := w.State()[0]; (state.HeldSeconds > 0) && since.IsZero() || state.HoldSeconds != hold ||
				state.Limit != max {
				t.Fatalf("%+v", state)
			}
		}
	})
}

func TestEachLimitSaysWhatItSaw(t *testing.T) {
	limit, high := 50.0, 99.95
	for _, tt := range []struct {
		g    engine.Guardrails
		s    Sample
		name string
		want string
	}{
		{engine.Guardrails{MaxCPUPercent: &limit}, Sample{Resources: &engine.Resources{CPUPercent: high}}, "max_cpu_percent",
			"generator CPU at 100.0 % for 1 s, the limit is 50 %"},
		{engine.Guardrails{MaxMemoryPercent: &limit}, Sample{Resources: &engine.Resources{MemoryPercent: high}},
			"max_memory_percent", "generator memory at 100.0 % for 1 s, the limit is 50 %"},
		{engine.Guardrails{MaxHostCPUPercent: &limit}, Sample{Resources: &engine.Resources{HostCPUPercent: high}},
			"max_host_cpu_percent", "host CPU at 100.0 % for 1 s, the limit is 50 %"},
		{engine.Guardrails{MaxHostMemoryPercent: &limit}, Sample{Resources: &engine.Resources{HostMemoryPercent: high}},
			"max_host_memory_percent", "host memory at 100.0 % for 1 s, the limit is 50 %"},
		{engine.Guardrails{MaxErrorRatePct: &limit}, Sample{ErrorPct: &high}, "max_error_rate_pct",
			"error rate at 100.0 % for 1 s, the limit is 50 %"},
		{engine.Guardrails{MaxP95Ms: &limit}, Sample{P95Ms: &high}, "max_p95_ms",
			"P95 latency at 100.0 ms for 1 s, the limit is 50 ms"},
		{engine.Guardrails{MaxP99Ms: &limit}, Sample{P99Ms: &high}, "max_p99_ms",
			"P99 latency at 100.0 ms for 1 s, the limit is 50 ms"},
	} {
		tt.g.HoldSeconds = 1
		w := New(tt.g)
		if got := w.Observe(noon, tt.s); got != "" {
			t.Errorf("%s triggered at once: %s", tt.name, got)
		}
		if got := w.Observe(noon.Add(time.Second), tt.s); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if s := w.State(); len(s) != 1 || s[0].Name != tt.name || s[0].Value == nil || *s[0].Value != high ||
			s[0].HeldSeconds != 1 {
			t.Errorf("%+v", s)
		}
	}
}

// TestSilenceIsNoRelief: a target that answers once in a while, and late, passes the limit all the time.
func TestSilenceIsNoRelief(t *testing.T) {
	limit, late := 100.0, 30_000.0
	w := New(engine.Guardrails{MaxP99Ms: &limit})
	at := noon
	for i := range 31 {
		s := Sample{}
		if i%30 == 0 {
			s.P99Ms = &late
		}
		got := w.Observe(at, s)
		if want := i == 30; (got != "") != want || want && !strings.Contains(got, "30000.0 ms for 30 s") {
			t.Fatalf("second %d: %q", i, got)
		}
		at = at.Add(time.Second)
	}
}

func TestWithoutLimitsNothingTriggers(t *testing.T) {
	w := New(engine.Guardrails{})
	high := 1e9
	for i := range 100 {
		s := Sample{Resources: &engine.Resources{CPUPercent: 100, MemoryPercent: 100, HostCPUPercent: 100,
			HostMemoryPercent: 100}, P95Ms: &high, P99Ms: &high, ErrorPct: &high}
		if got := w.Observe(time.Unix(int64(i), 0), s); got != "" || len(w.State()) != 0 {
			t.Fatal(got)
		}
	}
}

// TestAnOutageThatIsToleratedTriggersNothing: what was held before it is forgotten, and what comes after it counts anew;
// the generator's own limits go on.
func TestAnOutageThatIsToleratedTriggersNothing(t *testing.T) {
	w := New(engine.Guardrails{MaxErrorRatePct: new(10.0), MaxMemoryPercent: new(80.0), HoldSeconds: 3})
	at, bad := noon, Sample{ErrorPct: new(100.0)}
	next := func(s Sample) string {
		at = at.Add(time.Second)
		return w.Observe(at, s)
	}
	next(bad)
	next(bad)
	bad.Tolerated = true
	for range 20 {
		if got := next(bad); got != "" {
			t.Fatalf("while it is tolerated: %s", got)
		}
	}
	bad.Tolerated = false
	for i, want := range []bool{false, false, false, true} {
		if got := next(bad); (got != "") != want {
			t.Errorf("%d s after it: %q", i+1, got)
		}
	}
	own := memory(99)
	own.Tolerated = true
	for range 3 {
		next(own)
	}
	if got := next(own); !strings.Contains(got, "generator memory") {
		t.Errorf("the generator's own memory: %q", got)
	}
}
