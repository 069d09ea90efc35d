package results

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// A stall is a second or more in which at most a fiftieth of the operations were answered that should
// have been at the measurement's pace (timeouts are no answers), although that is many, and a
// connection usually ends one in a third of the time.
const (
	stallLength = time.Second
	stallMissed = 20
	stallCycles = 3
	stallShare  = 0.02
	maxStalls   = 100
	// waitingShare of the time of connections went into operations that were not answered: they all wait.
	waitingShare = 0.9
)

// stalls finds them, and what a closed loop did not see of them.
func (s *figuresScan) stalls(f *engine.Figures, all *distribution) {
	if f.LatencyMs == nil || s.ends == nil {
		return
	}
	s.answered = s.ends.total()
	gaps := s.filterStalls(f, s.ends.gaps(stallLength))
	found := gaps
	if f.ServiceMs == nil { // the latency of an open loop tells of the rest
		found = s.filterStalls(f, mergeGaps(gaps, s.filterStalls(f, s.thinStretches(f.DurationSeconds))))
	}
	f.Stalls = s.describeStall(f, found)
	// What would have happened to others while some were answered is not known.
	if f.ServiceMs == nil && len(gaps) > 0 {
		f.Omission = omission(f, all, s.describeStall(f, gaps))
	}
}

// filterStalls are those that are stalls.
func (s *figuresScan) filterStalls(f *engine.Figures, times []interval) (out []interval) {
	for _, g := range times {
		if _, ok := s.isStall(f, g); ok && len(out) < maxStalls {
			out = append(out, g)
		}
	}
	return out
}

// describeStall says what is known of them.
func (s *figuresScan) describeStall(f *engine.Figures, times []interval) (out []engine.Stall) {
	for _, g := range times {
		stall, _ := s.isStall(f, g)
		out = append(out, stall)
	}
	return out
}

// isStall judges a time in which little or nothing was answered.
func (s *figuresScan) isStall(f *engine.Figures, g interval) (engine.Stall, bool) {
	length := time.Duration(g.to - g.from).Seconds()
	if length >= f.DurationSeconds {
		return engine.Stall{}, false // there is no pace
	}
	inside := s.ends.within(g)
	pace := (s.answered - inside) / (f.DurationSeconds - length)
	if s.window.varies {
		pace = s.ends.pace(g)
	}
	if pace == 0 || inside > stallShare*pace*length {
		return engine.Stall{}, false
	}
	cycle := max(float64(s.window.connections)/pace, f.LatencyMs.P50/1000)
	if pace*length < stallMissed || length < stallCycles*cycle {
		return engine.Stall{}, false
	}
	return engine.Stall{From: engine.At(time.Unix(0, g.from)), Seconds: length,
		AnsweredOperations: int64(inside), MissedOperations: int64(math.Round(pace*length - inside))}, true
}

// thinStretches are the times in which nearly all connections waited for what was not answered: few answers
// may else be all that was asked, and slow ones are answers.
func (s *figuresScan) thinStretches(duration float64) (found []interval) {
	for _, b := range s.ends.stretches() {
		g := s.ends.stretch(b)
		pace := s.ends.pace(g)
		if length := time.Duration(g.to - g.from).Seconds(); !s.window.varies && length < duration {
			pace = (s.answered - s.ends.within(g)) / (duration - length)
		}
		found = append(found, s.ends.trim(b, pace))
	}
	return found
}

// binRange are those from first up to but not including end.
type binRange struct{ first, end int }

// connectionsWaited reports whether nearly all the time of what ended in the bins was that of operations without an
// answer.
func (e *endTimes) connectionsWaited(b binRange) bool {
	var lost, spent float64
	for i := b.first; i < b.end; i++ {
		lost, spent = lost+float64(e.lost[i]), spent+float64(e.spent[i])
	}
	return lost >= waitingShare*spent
}

// stretches joins the seconds in which connections waited.
func (e *endTimes) stretches() (out []binRange) {
	const window = int(int64(stallLength) / binLength)
	under := false
	for i := 0; i+window <= len(e.count); i++ {
		b := binRange{i, i + window}
		if !e.connectionsWaited(b) {
			under = false
			continue
		}
		if under {
			out[len(out)-1].end = b.end
		} else {
			out, under = append(out, b), true
		}
	}
	return out
}

// trim leaves out bins at the edges in which operations were still, or again, answered.
func (e *endTimes) trim(b binRange, pace float64) interval {
	limit := stallShare * pace * time.Duration(binLength).Seconds()
	for b.end-b.first > 1 && float64(e.count[b.first]) > limit {
		b.first++
	}
	for b.end-b.first > 1 && float64(e.count[b.end-1]) > limit {
		b.end--
	}
	return e.stretch(b)
}

// stretch is the time of bins, with the empty edges of their neighbours.
func (e *endTimes) stretch(b binRange) interval {
	g := interval{e.from + int64(b.first)*binLength, min(e.from+int64(b.end)*binLength, e.to)}
	if i := b.first - 1; i >= 0 && e.first[i] != noEndTime {
		g.from = e.from + int64(i)*binLength + int64(e.last[i])
	}
	if i := b.end; i < len(e.first) && e.first[i] != noEndTime {
		g.to = e.from + int64(i)*binLength + int64(e.first[i])
	}
	return g
}

// within is how many operations were answered inside a gap or a stretch, not counting those at its edges.
func (e *endTimes) within(g interval) (n float64) {
	for i := max(0, (g.from-e.from)/binLength); i < int64(len(e.count)); i++ {
		begin := e.from + i*binLength
		if begin >= g.to {
			break
		}
		if e.first[i] == noEndTime || begin+int64(e.first[i]) >= g.to || begin+int64(e.last[i]) <= g.from {
			continue
		}
		n += float64(e.count[i])
	}
	return n
}

// gapShareOfStretch is the share of a stretch up to which gaps in it are parts of it; with more it is they that are
// told.
const gapShareOfStretch = 0.9

// mergeGaps replaces gaps by the stretches that hold them, where those are more than the gaps.
func mergeGaps(gaps, stretches []interval) []interval {
	out := slices.Clone(gaps)
	for _, g := range stretches {
		inside := func(o interval) bool { return o.from < g.to && o.to > g.from }
		var empty int64
		for _, o := range gaps {
			if inside(o) {
				empty += o.to - o.from
			}
		}
		if float64(empty) < gapShareOfStretch*float64(g.to-g.from) {
			out = append(slices.DeleteFunc(out, inside), g)
		}
	}
	slices.SortFunc(out, func(x, y interval) int { return cmp.Compare(x.from, y.from) })
	return out
}

// omission estimates what the closed loop did not ask: in a stall operations would have
// come at the usual pace, and each would have waited for the rest of it. What piles up behind
// the stall is left out, so that the estimate is a lower bound.
func omission(f *engine.Figures, all *distribution, empty []engine.Stall) *engine.Omission {
	o := &engine.Omission{}
	longest := 0.0
	for _, s := range empty {
		o.StalledSeconds += s.Seconds
		o.MissedOperations += s.MissedOperations
		longest = max(longest, s.Seconds*1000)
	}
	recorded := all.count()
	beyond := func(ms float64) float64 {
		n := float64(recorded - all.atMost(key(ms)))
		for _, s := range empty {
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
