package results

import (
	"math"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// A stall is a second or more in which no operation was answered (timeouts are no answers), although at the
// measurement's pace so many should have, and a connection usually ends one in a third of the time.
const (
	stallLength = time.Second
	stallMissed = 20
	stallCycles = 3
	maxStalls   = 100
)

// stalls finds them, and what a closed loop did not see of them.
func (s *scan) stalls(f *engine.Figures, all *distribution) {
	if f.LatencyMs == nil || s.ends == nil {
		return
	}
	answered := s.ends.all()
	for _, g := range s.ends.gaps(stallLength) {
		length := time.Duration(g.to - g.from).Seconds()
		if length >= f.DurationSeconds {
			continue // there is no pace
		}
		pace := answered / (f.DurationSeconds - length)
		if s.window.varies {
			if pace = s.ends.pace(g); pace == 0 {
				continue
			}
		}
		cycle := max(float64(s.window.connections)/pace, f.LatencyMs.P50/1000)
		if pace*length < stallMissed || length < stallCycles*cycle || len(f.Stalls) == maxStalls {
			continue
		}
		f.Stalls = append(f.Stalls, engine.Stall{From: engine.At(time.Unix(0, g.from)), Seconds: length, MissedOperations: int64(math.Round(pace * length))})
	}
	if len(f.Stalls) > 0 && f.ServiceMs == nil {
		f.Omission = omission(f, all)
	}
}

// omission estimates what the closed loop did not ask: in a stall operations would have
// come at the usual pace, and each would have waited for the rest of it. What piles up behind
// the stall is left out, so that the estimate is a lower bound.
func omission(f *engine.Figures, all *distribution) *engine.Omission {
	o := &engine.Omission{}
	longest := 0.0
	for _, s := range f.Stalls {
		o.StalledSeconds += s.Seconds
		o.MissedOperations += s.MissedOperations
		longest = max(longest, s.Seconds*1000)
	}
	recorded := all.count()
	beyond := func(ms float64) float64 {
		n := float64(recorded - all.atMost(key(ms)))
		for _, s := range f.Stalls {
			n += float64(s.MissedOperations) * max(0, 1-ms/(s.Seconds*1000))
		}
		return n
	}
	quantile := func(q float64) float64 {
		allowed := (1 - q) * float64(recorded+o.MissedOperations)
		low, high := 0.0, max(longest, f.LatencyMs.Max)
		for range 60 {
			if mid := (low + high) / 2; beyond(mid) > allowed {
				low = mid
			} else {
				high = mid
			}
		}
		return high
	}
	o.P50Ms, o.P95Ms, o.P99Ms, o.P999Ms = quantile(0.5), quantile(0.95), quantile(0.99), quantile(0.999)
	return o
}
