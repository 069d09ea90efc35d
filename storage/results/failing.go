package results

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Over half of what ends fails, for so long and so many of them: what they ask for is not there any more. A time that
// goes on to the end of the measurement was cut short by it, and counts from failHoldAtEnd on; where operations are few,
// also with fewer failures, if all failed and hardly any did before.
const (
	failShare        = 0.5
	failHold         = 3 * time.Second
	failCount        = 20
	failHoldAtEnd    = 750 * time.Millisecond
	failCountAtEnd   = 3
	failBeforeAtMost = 0.1
	maxFailingTimes  = 100
)

// failing are the times in which operations went on failing, up to the last instant of the measurement. It is nil where
// the ends are not known.
func (e *endTimes) failing() []engine.FailingTime {
	if e == nil {
		return nil
	}
	out := []engine.FailingTime{}
	for _, b := range e.failingBins() {
		if t, ok := e.failingTime(b); ok && len(out) < maxFailingTimes {
			out = append(out, t)
		}
	}
	return out
}

// failingBins joins the seconds in which over half failed. Seconds in which nothing ended do not interrupt that.
func (e *endTimes) failingBins() (out []binRange) {
	window := min(int(int64(time.Second)/binLength), len(e.ended))
	under := false
	for i := 0; i+window <= len(e.ended); i++ {
		b := binRange{i, i + window}
		switch ended, failed := e.outcomes(b); {
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

// outcomes counts what ended in the bins.
func (e *endTimes) outcomes(b binRange) (ended, failed int64) {
	for i := b.first; i < b.end; i++ {
		ended, failed = ended+int64(e.ended[i]), failed+int64(e.failed[i])
	}
	return ended, failed
}

// failingTime judges such a stretch, without the edges at which operations still, or again, succeeded.
func (e *endTimes) failingTime(b binRange) (engine.FailingTime, bool) {
	fails := func(i int) bool { return float64(e.failed[i]) > failShare*float64(e.ended[i]) }
	for b.end-b.first > 1 && !fails(b.first) {
		b.first++
	}
	for b.end-b.first > 1 && !fails(b.end-1) {
		b.end--
	}
	ended, failed := e.outcomes(b)
	after, _ := e.outcomes(binRange{b.end, len(e.ended)})
	from, to := e.from+int64(b.first)*binLength, min(e.from+int64(b.end)*binLength, e.to)
	if after == 0 {
		to = e.to
	}
	length := time.Duration(to - from)
	t := engine.FailingTime{From: engine.At(time.Unix(0, from)), Seconds: length.Seconds(), Operations: ended,
		Errors: failed, ToTheEnd: after == 0}
	switch {
	case failed >= failCount:
		return t, length >= failHold || t.ToTheEnd && length >= failHoldAtEnd
	case !t.ToTheEnd || failed < failCountAtEnd || failed < ended || length < failHold:
		return t, false
	}
	before, failedBefore := e.outcomes(binRange{0, b.first})
	return t, float64(failedBefore) < failBeforeAtMost*float64(before)
}
