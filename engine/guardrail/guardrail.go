// Package guardrail decides when a run must stop because its generator or host
// runs out of breath: a pure function of telemetry and time.
package guardrail

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Hold is how long a limit must be exceeded without a break.
const Hold = 5 * time.Second

// Watch follows the guardrails of one run.
type Watch struct {
	limits []limit
}

type limit struct {
	name  string
	max   float64
	value func(engine.Resources) float64
	since time.Time
}

// New returns a watch over the limits that are set; without any, nothing ever triggers.
func New(g engine.Guardrails) *Watch {
	w := &Watch{}
	add := func(name string, max *float64, value func(engine.Resources) float64) {
		if max != nil {
			w.limits = append(w.limits, limit{name: name, max: *max, value: value})
		}
	}
	add("generator CPU", g.MaxCPUPercent, func(r engine.Resources) float64 { return r.CPUPercent })
	add("generator memory", g.MaxMemoryPercent, func(r engine.Resources) float64 { return r.MemoryPercent })
	add("host CPU", g.MaxHostCPUPercent, func(r engine.Resources) float64 { return r.HostCPUPercent })
	add("host memory", g.MaxHostMemoryPercent, func(r engine.Resources) float64 { return r.HostMemoryPercent })
	return w
}

// Observe takes the peak telemetry at a time and returns what triggered, in
// words, or "". Times must not decrease.
func (w *Watch) Observe(at time.Time, peak engine.Resources) string {
	for i := range w.limits {
		l := &w.limits[i]
		value := l.value(peak)
		switch {
		case value <= l.max:
			l.since = time.Time{}
		case l.since.IsZero():
			l.since = at
		case at.Sub(l.since) >= Hold:
			return fmt.Sprintf("%s at %.1f %% for %.0f s, the limit is %g %%", l.name, value, at.Sub(l.since).Seconds(), l.max)
		}
	}
	return ""
}
