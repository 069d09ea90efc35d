package results

import (
	"math"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Over half of what ends fails, for so long and so many of them: what they ask for is not there any more.
const (
	failShare       = 0.5
	failHold        = 3 * time.Second
	failCount       = 20
	maxFailingTimes = 100
)

// A time that goes on to the end of the measurement was cut short by it, and counts from failHoldAtEnd on. Where
// hardly any operation failed before, fewer failures count: failCountFew in failHoldFew, or failCountAll in failHold
// where all failed.
const (
	failHoldAtEnd    = 750 * time.Millisecond
	failHoldFew      = 2 * time.Second
	failCountFew     = 10
	failCountAll     = 3
	failBeforeAtMost = 0.1
	// Failures are more than those before let expect by so many standard deviations.
	failDeviations = 3
	// Successes at the very end end the time if chance would show them so rarely.
	failChance = 0.001
)

// outcomes count what ended in each bin, and what of it failed.
type outcomes struct {
	from, to, length int64 // ns; length of a bin
	ended, failed    []uint32
	// failures are when the first and the last one of each bin failed, nil where a bin is no longer than binLength.
	failures []failures
	// into is where they are added now, nil for here.
	into *outcomes
}

// failures are when operations in a bin failed, in parts of its length.
type failures struct{ first, last uint16 }

// newOutcomes cuts a measurement into bins, not more than most.
func newOutcomes(from, to int64, most int64) outcomes {
	length := binLength
	if n := (to-from)/binLength + 1; n > most {
		length *= (n + most - 1) / most
	}
	n := (to-from)/length + 1
	e := outcomes{from: from, to: to, length: length, ended: make([]uint32, n), failed: make([]uint32, n)}
	if length > binLength {
		e.failures = make([]failures, n)
	}
	return e
}

func (e *outcomes) add(ended int64, success bool) {
	i := (ended - e.from) / e.length
	e.ended[i]++
	if !success {
		if e.failures != nil {
			at := uint16((ended - e.from) % e.length * math.MaxUint16 / e.length)
			e.addFailures(int(i), failures{at, at})
		}
		e.failed[i]++
	}
}

// addFailures takes in when some failed, before they are counted.
func (e *outcomes) addFailures(bin int, f failures) {
	if known := &e.failures[bin]; e.failed[bin] == 0 {
		*known = f
	} else {
		known.first, known.last = min(known.first, f.first), max(known.last, f.last)
	}
}

func (e *outcomes) merge(o *outcomes) {
	for i := range e.ended {
		if e.failures != nil && o.failed[i] > 0 {
			e.addFailures(i, o.failures[i])
		}
		e.ended[i] += o.ended[i]
		e.failed[i] += o.failed[i]
	}
}

// second is how many bins a second has, one at least.
func (e *outcomes) second() int { return max(min(int(int64(time.Second)/e.length), len(e.ended)), 1) }

// failing are the times in which operations went on failing, up to the last instant of the measurement: of all, and of
// each statement. It is nil where the ends are not known.
func (e *endTimes) failing() []engine.FailingTime {
	if e == nil {
		return nil
	}
	all := e.outcomes.failing()
	return append(all, e.statements.failing(all)...)
}

func (e *outcomes) failing() []engine.FailingTime {
	out := []engine.FailingTime{}
	end := e.failingEnd()
	last, toTheEnd := e.failingAtEnd(end)
	for _, b := range e.failingBins() {
		if toTheEnd {
			b.end = min(b.end, end.first)
		}
		if b.first >= b.end {
			continue
		}
		if t, ok := e.failingTime(b); ok && len(out) < maxFailingTimes-1 {
			out = append(out, t)
		}
	}
	if toTheEnd {
		out = append(out, last)
	}
	return out
}

// failingEnd are the last bins, from the one on that brings the most failures beyond half of what ended, and after the
// last second in which hardly any operation failed. In a mix of which a part fails, a second with fewer failures among
// the others is chance.
func (e *outcomes) failingEnd() binRange {
	window := e.second()
	out := binRange{len(e.ended), len(e.ended)}
	best, beyond := 0.0, 0.0
	for i := len(e.ended) - 1; i >= 0; i-- {
		if i+window <= len(e.ended) {
			if ended, failed := e.within(binRange{i, i + window}); ended > 0 &&
				float64(failed) <= failBeforeAtMost*float64(ended) {
				break
			}
		}
		if beyond += float64(e.failed[i]) - failShare*float64(e.ended[i]); beyond > best {
			best, out.first = beyond, i
		}
	}
	return out
}

// failingAtEnd judges the bins of failingEnd.
func (e *outcomes) failingAtEnd(b binRange) (engine.FailingTime, bool) {
	t, length := e.describeFailing(b)
	if t.Errors == 0 || e.recovered(b, float64(t.Errors)/float64(t.Operations)) {
		return t, false
	}
	t.ToTheEnd = true
	before, failedBefore := e.within(binRange{0, b.first})
	usual := 0.0
	if before > 0 {
		usual = float64(failedBefore) / float64(before)
	}
	n, failed := float64(t.Operations), float64(t.Errors)
	switch {
	case failed <= n*usual+failDeviations*math.Sqrt(n*usual*(1-usual)):
		return t, false // it has always been so
	case t.Errors >= failCount:
		return t, length >= failHoldAtEnd
	case before == 0 || usual >= failBeforeAtMost:
		return t, false
	case t.Errors >= failCountFew:
		return t, length >= failHoldFew
	}
	return t, length >= failHold && t.Errors >= failCountAll && t.Errors == t.Operations
}

// recovered reports whether what ended after the last bin with a failure cannot be chance where such a share fails.
func (e *outcomes) recovered(b binRange, share float64) bool {
	i := b.end
	for i > b.first && e.failed[i-1] == 0 {
		i--
	}
	after, _ := e.within(binRange{i, b.end})
	return after > 0 && math.Pow(1-share, float64(after)) < failChance
}

// failingBins joins the seconds in which over half failed. Seconds in which nothing ended do not interrupt that.
func (e *outcomes) failingBins() (out []binRange) {
	window := e.second()
	under := false
	for i := 0; i+window <= len(e.ended); i++ {
		b := binRange{i, i + window}
		switch ended, failed := e.within(b); {
		case ended == 0:
			if under {
				out[len(out)-1].end = b.end
			}
		case float64(failed) <= failShare*float64(ended):
			under = false
		case under:
			out[len(out)-1].end = b.end
		default:
			out, under = append(out, b), true
		}
	}
	return out
}

// within counts what ended in the bins.
func (e *outcomes) within(b binRange) (ended, failed int64) {
	for i := b.first; i < b.end; i++ {
		ended, failed = ended+int64(e.ended[i]), failed+int64(e.failed[i])
	}
	return ended, failed
}

// failingTime judges such a stretch, without the edges at which operations still, or again, succeeded.
func (e *outcomes) failingTime(b binRange) (engine.FailingTime, bool) {
	t, length := e.describeFailing(e.trim(b))
	return t, length >= failHold && t.Errors >= failCount
}

// trim leaves out the edges at which at most half failed.
func (e *outcomes) trim(b binRange) binRange {
	fails := func(i int) bool { return float64(e.failed[i]) > failShare*float64(e.ended[i]) }
	for b.end-b.first > 1 && !fails(b.first) {
		b.first++
	}
	for b.end-b.first > 1 && !fails(b.end-1) {
		b.end--
	}
	return b
}

// describeFailing counts what ended in the bins, and returns for how long operations failed in them.
func (e *outcomes) describeFailing(b binRange) (engine.FailingTime, time.Duration) {
	ended, failed := e.within(b)
	from, to := e.from+int64(b.first)*e.length, min(e.from+int64(b.end)*e.length, e.to)
	length := time.Duration(to - from)
	return engine.FailingTime{From: engine.At(time.Unix(0, from)), Seconds: length.Seconds(), Operations: ended,
		Errors: failed}, min(length, e.failedFor(b))
}

// failedFor is the time from the first failure in the bins to the last one, as closely as short bins tell: a long bin
// may have all of its failures in one moment.
func (e *outcomes) failedFor(b binRange) time.Duration {
	if e.failures == nil {
		return math.MaxInt64
	}
	for b.first < b.end && e.failed[b.first] == 0 {
		b.first++
	}
	for b.first < b.end && e.failed[b.end-1] == 0 {
		b.end--
	}
	if b.first == b.end {
		return 0
	}
	at := func(bin int, part uint16) int64 { return int64(bin)*e.length + int64(part)*e.length/math.MaxUint16 }
	return time.Duration(at(b.end-1, e.failures[b.end-1].last) - at(b.first, e.failures[b.first].first) + binLength)
}
