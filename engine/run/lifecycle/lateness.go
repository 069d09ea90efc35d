package lifecycle

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// lateness is what one run worker's ticks of a step say of the generator itself.
type lateness struct {
	seconds float64
	// busy is for how long its process used nearly all of the CPU that it may use, still how long it did not run.
	busy, still float64
	lastStill   float64
	lag         *histogram.Histogram
	split       engine.LatencySplit
	// last is what its process had noticed by the snapshot before, also of the step before, and noticed what it has in the
	// step; nil before anything was told.
	last, noticed *engine.Witness
	// longestMs is the longest time for which the process stood still, as its seconds tell.
	longestMs float64
}

const (
	// busyPercent is the generator's own CPU from which on it is late, busyShare the part of a step.
	busyPercent, busyShare = 90, 0.2
	// stillShare is the part of a step for which a process may stand still.
	stillShare = 0.04
	// lateShare is the part of the latency that the generator's own lateness may be, and leastLate the lateness that is
	// never too much.
	lateShare, leastLate = 0.1, time.Millisecond
)

func (l *lateness) add(s *engine.WorkerSnapshot) {
	l.seconds += s.TickSeconds
	if s.Resources.CPUPercent > busyPercent {
		l.busy += s.TickSeconds
	}
	// A stillness is told twice, with this second and with the next.
	if still := s.Resources.MaxStallMs / 1e3; still != l.lastStill {
		l.still, l.lastStill = l.still+still, still
	}
	l.still += s.StalledMs / 1e3
	l.longestMs = max(l.longestMs, s.Resources.MaxStallMs, s.StalledMs)
	if s.TickLag != nil {
		if l.lag == nil {
			l.lag = histogram.New()
		}
		// A histogram that is not well-formed counts as one that was not sent.
		_ = l.lag.MergeData(histogram.Unpack(s.TickLag))
	}
	l.split.Add(s.TickSplit)
	l.notice(s.Resources.Witness)
}

// notice adds up what the process has noticed since the snapshot before; one that began anew counts from there on.
func (l *lateness) notice(w *engine.Witness) {
	if w == nil {
		return
	}
	if l.last != nil && w.RunNs >= l.last.RunNs && w.Late.Count() >= l.last.Late.Count() {
		since := w.Since(*l.last)
		if l.noticed != nil {
			since = l.noticed.Plus(since)
		}
		l.noticed = &since
	}
	l.last = w
}

// stoodMs is the longest time in the step for which the process ran nothing, in milliseconds. A thread that is to wake
// at equal distances is that late then.
func (l *lateness) stoodMs() float64 {
	if l.noticed == nil {
		return l.longestMs
	}
	return max(l.longestMs, l.noticed.Late.Longest())
}

// waited is the part of the step in which the process was kept from what it was to do, 0 where nothing tells.
func (l *lateness) waited() float64 {
	if l.noticed == nil {
		return 0
	}
	return l.noticed.Waited()
}

// decodeMean is how long an operation took on the mean from the first byte of its answer on.
func (l *lateness) decodeMean() time.Duration {
	if l.split.Count == 0 {
		return 0
	}
	return time.Duration(l.split.Decode / l.split.Count)
}

// judge says how the generator was late, as far as it changes what was measured; empty where it was not. usual is the
// least that decoding took in a step of this search.
func (l *lateness) judge(latency *histogram.Histogram, usual time.Duration) string {
	if l.seconds <= 0 {
		return ""
	}
	if l.busy > busyShare*l.seconds {
		return fmt.Sprintf("used over %d %% of its CPU in %.2g of %.2g s", busyPercent, l.busy, l.seconds)
	}
	if l.still > stillShare*l.seconds {
		return fmt.Sprintf("did not run for %.2g of %.2g s", l.still, l.seconds)
	}
	if latency.Count() == 0 {
		return ""
	}
	const p95 = 0.95
	took := latency.Quantile(p95)
	if l.lag != nil && l.lag.Count() > 0 {
		if late := l.lag.Quantile(p95); late > max(lateShare*took, float64(leastLate)) {
			return fmt.Sprintf("began operations late: P95 %.3g ms of %.3g ms", late/1e6, took/1e6)
		}
	}
	// Between the first byte of an answer and its end the target may still make the rest: only what the process was kept
	// waiting of it is its own.
	decode := l.decodeMean()
	late := min(float64(decode-usual), l.waited()*float64(decode))
	if usual > 0 && late > max(lateShare*took, float64(leastLate)) {
		return fmt.Sprintf("read answers late: %.3g ms on the mean, %.3g ms in its best step", engine.Milliseconds(decode),
			engine.Milliseconds(usual))
	}
	return ""
}

// keepDecode keeps the least that decoding took in a step.
func (m *Meter) keepDecode() {
	for _, w := range m.workers {
		if d := w.late.decodeMean(); d > 0 && (m.decode == 0 || d < m.decode) {
			m.decode = d
		}
	}
}
