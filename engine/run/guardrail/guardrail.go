// Package guardrail decides when a run must stop because its generator or host
// runs out of breath, or its target does: a pure function of what was seen, and when.
package guardrail

import (
	"fmt"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// maxGap is the longest time between two observations over which a limit
// counts as passed: what nobody watched proves nothing.
const maxGap = 3 * time.Second

// jitter is by how much a second may be short without counting as less.
const jitter = 100 * time.Millisecond

// Sample is what was seen of a run in a second. What is nil is not known, and changes nothing.
type Sample struct {
	// Resources are the highest of any node.
	Resources *engine.Resources
	// P95Ms and P99Ms are those of the slowest run worker, ErrorPct that of the worker with the most errors.
	P95Ms, P99Ms, ErrorPct *float64
	// Tolerated: the target is away, and the template bears that for some time.
	Tolerated bool
}

// Watch follows the guardrails of one run.
type Watch struct {
	hold   time.Duration
	last   time.Time
	limits []limit
}

type limit struct {
	name, label, unit string
	max               float64
	value             func(Sample) *float64
	ofTarget          bool
	last              *float64
	heldFor           time.Duration
	since             time.Time
}

// New returns a watch over the limits that are set; without any, nothing ever triggers.
func New(g engine.Guardrails) *Watch {
	w := &Watch{hold: g.Hold()}
	add := func(name, words, unit string, max *float64, value func(Sample) *float64) {
		if max != nil {
			w.limits = append(w.limits, limit{name: name, label: words, unit: unit, max: *max, value: value,
				ofTarget: slices.Contains([]string{"max_error_rate_pct", "max_p95_ms", "max_p99_ms"}, name)})
		}
	}
	resource := func(of func(*engine.Resources) *float64) func(Sample) *float64 {
		return func(s Sample) *float64 {
			if s.Resources == nil {
				return nil
			}
			return of(s.Resources)
		}
	}
	add("max_cpu_percent", "generator CPU", "%", g.MaxCPUPercent,
		resource(func(r *engine.Resources) *float64 { return &r.CPUPercent }))
	add("max_memory_percent", "generator memory", "%", g.MaxMemoryPercent,
		resource(func(r *engine.Resources) *float64 { return &r.MemoryPercent }))
	add("max_host_cpu_percent", "host CPU", "%", g.MaxHostCPUPercent,
		resource(func(r *engine.Resources) *float64 { return &r.HostCPUPercent }))
	add("max_host_memory_percent", "host memory", "%", g.MaxHostMemoryPercent,
		resource(func(r *engine.Resources) *float64 { return &r.HostMemoryPercent }))
	add("max_error_rate_pct", "error rate", "%", g.MaxErrorRatePct, func(s Sample) *float64 { return s.ErrorPct })
	add("max_p95_ms", "P95 latency", "ms", g.MaxP95Ms, func(s Sample) *float64 { return s.P95Ms })
	add("max_p99_ms", "P99 latency", "ms", g.MaxP99Ms, func(s Sample) *float64 { return s.P99Ms })
	return w
}

// Observe takes what was seen at a time and returns what triggered, in words, or
// "". Times must not decrease.
func (w *Watch) Observe(at time.Time, s Sample) string {
	gap := !w.last.IsZero() && at.Sub(w.last) > maxGap
	w.last = at
	triggered := ""
	for i := range w.limits {
		l := &w.limits[i]
		if gap || s.Tolerated && l.ofTarget {
			l.since, l.heldFor = time.Time{}, 0
		}
		value := l.value(s)
		if value == nil {
			continue
		}
		seen := *value
		l.last = &seen
		switch {
		case s.Tolerated && l.ofTarget:
			continue
		case seen <= l.max:
			l.since, l.heldFor = time.Time{}, 0
			continue
		case l.since.IsZero():
			l.since = at
		}
		if l.heldFor = at.Sub(l.since); l.heldFor+jitter >= w.hold && triggered == "" {
			triggered = fmt.Sprintf("%s at %.1f %s for %.0f s, the limit is %g %s", l.label, seen, l.unit, l.heldFor.Seconds(),
				l.max, l.unit)
		}
	}
	return triggered
}

// State is how the run stands to each of its limits. The caller owns it.
func (w *Watch) State() []engine.GuardrailState {
	out := make([]engine.GuardrailState, 0, len(w.limits))
	for _, l := range w.limits {
		out = append(out, engine.GuardrailState{Name: l.name, Limit: l.max, Value: l.last, HeldSeconds: l.heldFor.Seconds(),
			HoldSeconds: w.hold.Seconds()})
	}
	return out
}
