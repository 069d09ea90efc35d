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
	if s.TickLag != nil {
		if l.lag == nil {
			l.lag = histogram.New()
		}
		// A histogram that is not well-formed counts as one that was not sent.
		_ = l.lag.MergeData(histogram.Unpack(s.TickLag))
	}
	l.split.Add(s.TickSplit)
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
	if decode := l.decodeMean(); usual > 0 && float64(decode-usual) > max(lateShare*took, float64(leastLate)) {
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
