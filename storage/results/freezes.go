package results

import (
	"math"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// A freeze is a time in which a closed loop's operations are all in flight and none is answered, until they are
// answered together: connections that wait each for an operation of its own do not end together. It takes much longer
// than operations usually do, and long enough to tell. Where operations are short, most of those that took long ended
// with a freeze; else each connection may have had a slow one of its own, and chance ends those of few connections
// together.
const (
	shortestFine   = 25 * time.Millisecond
	maxFineBins    = 1 << 20
	freezeBins     = 4 // that are empty, at least
	longOperation  = 75 * time.Millisecond
	thawBins       = 3
	thawShare      = 0.8 // of the connections, whose operations end as it ends
	minConnections = 2
	minSlow        = 4 // connections, where operations are not short
	thawedShare    = 0.5
	maxFreezeTimes = 100
)

// fineTimes count what was answered in short pieces of time, and how much of that had taken long.
type fineTimes struct {
	length      int64 // of a piece, ns
	ended, long []uint16
}

func newFineTimes(length int64) fineTimes {
	piece := max(int64(shortestFine), length/maxFineBins+1)
	n := length/piece + 1
	return fineTimes{length: piece, ended: make([]uint16, n), long: make([]uint16, n)}
}

// add counts an answer so long after the beginning.
func (f *fineTimes) add(at int64, ms float64) {
	i := at / f.length
	f.ended[i] = saturated(f.ended[i], 1)
	if ms >= engine.Milliseconds(longOperation) {
		f.long[i] = saturated(f.long[i], 1)
	}
}

func (f *fineTimes) merge(o fineTimes) {
	for i := range f.ended {
		f.ended[i], f.long[i] = saturated(f.ended[i], o.ended[i]), saturated(f.long[i], o.long[i])
	}
}

func saturated(a, b uint16) uint16 { return uint16(min(uint32(a)+uint32(b), math.MaxUint16)) }

// empties are the stretches of pieces in which nothing was answered, between two in which something was.
func (f *fineTimes) empties() (out []binRange) {
	last := -1
	for i, n := range f.ended {
		if n == 0 {
			continue
		}
		if last >= 0 && i-last-1 >= freezeBins {
			out = append(out, binRange{last + 1, i})
		}
		last = i
	}
	return out
}

// thawed is how many operations that had taken long ended with the stretch.
func (f *fineTimes) thawed(b binRange) (n int) {
	for i := b.end; i < min(b.end+thawBins, len(f.long)); i++ {
		n += int(f.long[i])
	}
	return n
}

// longOnes is how many operations took long.
func (f *fineTimes) longOnes() (n int) {
	for _, c := range f.long {
		n += int(c)
	}
	return n
}

// freezes finds them where the number of connections is known and stays. It is nil without at least two of them: one
// is no more than a slow moment, and a long one is a stall.
func (s *figuresScan) freezes(f *engine.Figures) *engine.Freezes {
	n := s.window.connections
	if f.LatencyMs == nil || f.ServiceMs != nil || s.ends == nil || s.window.varies || n < minConnections {
		return nil
	}
	fine := &s.ends.fine
	empties := fine.empties()
	empty := time.Duration(0)
	for _, b := range empties {
		empty += time.Duration(int64(b.end-b.first) * fine.length)
	}
	if empty.Seconds() >= f.DurationSeconds {
		return nil
	}
	pace := s.ends.total() / (f.DurationSeconds - empty.Seconds())
	cycle := max(float64(n)/pace, f.LatencyMs.P50/1000)
	short := f.LatencyMs.P50 < engine.Milliseconds(longOperation)/stallCycles
	if !short && n < minSlow {
		return nil
	}
	out, thawed := &engine.Freezes{}, 0
	for _, b := range empties {
		// It began somewhere in the piece before, and ended somewhere in the one after.
		length := time.Duration(int64(b.end-b.first+1) * fine.length).Seconds()
		if pace*length < stallMissed || length < stallCycles*cycle {
			continue
		}
		together := fine.thawed(b)
		if float64(together) < thawShare*float64(n) {
			continue
		}
		thawed += together
		out.Count++
		out.Seconds += length
		out.LongestSeconds = max(out.LongestSeconds, length)
		if len(out.Times) < maxFreezeTimes {
			from := s.ends.from + int64(b.first)*fine.length - fine.length/2
			out.Times = append(out.Times, engine.Stall{From: engine.At(time.Unix(0, from)), Seconds: length,
				MissedOperations: int64(math.Round(pace * length))})
		}
	}
	if out.Count < 2 || short && float64(thawed) < thawedShare*float64(fine.longOnes()) {
		return nil
	}
	return out
}
