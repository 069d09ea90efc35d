package finalize

import (
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/live"
)

// series are n intervals at a speed, with noise of up to 10 %.
func series(noise *rapid.T, speeds ...float64) (all []float64) {
	for _, speed := range speeds {
		v := speed
		if noise != nil {
			v *= rapid.Float64Range(0.9, 1.1).Draw(noise, "noise")
		}
		all = append(all, v)
	}
	return all
}

func repeat(n int, speed float64) (all []float64) {
	for range n {
		all = append(all, speed)
	}
	return all
}

// TestASlowdownIsFound: at once and for good, wherever it is, and nothing else: neither noise, nor a dip, nor a table that
// becomes slower by and by.
func TestASlowdownIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.IntRange(steadySlots, 60).Draw(t, "before")
		after := rapid.IntRange(steadySlots, 60).Draw(t, "after")
		to := rapid.Float64Range(0.1, 0.5).Draw(t, "to")
		at, fast, slow := slowdown(series(t, append(repeat(before, 1000), repeat(after, 1000*to)...)...))
		if at != before || fast < 900 || fast > 1100 || slow < 900*to || slow > 1100*to {
			t.Fatalf("found at %d, from %g to %g", at, fast, slow)
		}
		if at, _, _ := slowdown(series(t, repeat(before+after, 1000)...)); at >= 0 {
			t.Fatalf("noise is found at %d", at)
		}
		dip := append(append(repeat(before, 1000), repeat(3, 200)...), repeat(after, 1000)...)
		if at, _, _ := slowdown(series(t, dip...)); at >= 0 {
			t.Fatalf("a dip is found at %d", at)
		}
		var slope []float64
		for i := range 40 {
			slope = append(slope, 1000-15*float64(i))
		}
		if at, _, _ := slowdown(slope); at >= 0 {
			t.Fatalf("a slope is found at %d", at)
		}
	})
	if at, _, _ := slowdown(append(repeat(5, 1000), repeat(5, 100)...)); at >= 0 {
		t.Errorf("a run of 50 s is judged at %d", at)
	}
}

// TestSpentBurstCreditsDegradeARun: where the instance is said to have such credits; where nobody said, it is a note, and
// elsewhere nothing. A load that changes by itself is not judged.
func TestSpentBurstCreditsDegradeARun(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var slots []engine.MeasuredSecond
	for i := range 24 {
		n := int64(5000)
		if i >= 10 {
			n = 1500
		}
		slots = append(slots, engine.MeasuredSecond{Operations: n, Seconds: 5})
	}
	for _, c := range []struct {
		burst  string
		change func(*engine.Scenario)
		cause  bool
		note   bool
	}{
		{engine.BurstYes, nil, true, false},
		{"unknown", nil, false, true},
		{"", nil, false, false},
		{engine.BurstYes, func(s *engine.Scenario) { s.Workload.Stages = []engine.Stage{{}} }, false, false},
		{engine.BurstYes, func(s *engine.Scenario) { s.Workload.LoadMode = engine.LoadFindMax }, false, false},
	} {
		svc := New(Options{Log: zerolog.Nop(), Results: pieces{found: slots}})
		e := Evidence{Plan: &engine.Plan{Burst: c.burst}, Validity: live.NewValidity()}
		if c.change != nil {
			c.change(&e.Run.Scenario)
		}
		f := &engine.Figures{Operations: 1, MeasuredFrom: engine.At(begin), MeasuredTo: engine.At(begin.Add(2 * time.Minute))}
		svc.checkBurst(t.Context(), e, f)
		v := e.Validity.Verdict()
		var cause, note bool
		for _, found := range v.Causes {
			cause = cause || found.Cause == engine.CauseBurst && found.From.Equal(begin.Add(50*time.Second))
		}
		for _, found := range v.NoteDetails {
			note = note || found.Code == engine.NoteBurstUnknown
		}
		if cause != c.cause || note != c.note {
			t.Errorf("%+v: %+v", c, v)
		}
	}
}
