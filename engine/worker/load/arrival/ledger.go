package arrival

import (
	"math"
	"sync"
	"time"
)

// Ledger counts the arrivals of an open loop where the schedule makes them. It
// walks the schedule by itself, from the clock alone: what the dispatcher took,
// offered or forgot is not known here. Only therefore can the first equation of the
// account, scheduled = started + dropped, fail when an arrival is lost on its way.
type Ledger struct {
	mu        sync.Mutex
	origin    int64
	schedule  *Schedule // of its own; nil when the workload's delays are the schedule
	lastAsked int64     // up to when it was walked
	warm      int64     // arrivals that were due before the measurement

	// What the workload has given: groups of operations, and when a workload that
	// paces itself placed the last one.
	recorded int64
	due      int64
	measured int64 // as Group.measured
	ended    bool  // the stream has ended: nothing is due for which there is no operation
}

// NewLedger returns the ledger of a schedule, of which it has a copy of its own: nil
// when the workload's delays are the schedule. Nothing is measured yet.
func NewLedger(s *Schedule) *Ledger { return &Ledger{schedule: s, measured: math.MaxInt64} }

// Begin starts the schedule.
func (l *Ledger) Begin(origin int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.origin, l.due = origin, origin
}

// Change replaces what follows after now in a schedule, and here. What has been
// counted or taken already stays: both go on with the same curve.
func (l *Ledger) Change(of *Schedule, now int64, legs []Leg) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := max(now, l.lastAsked) - l.origin
	of.curve.changeAfter(time.Duration(max(at, 0)), max(of.taken, l.schedule.taken), legs)
	l.schedule.curve.replace(of.curve.pieces)
}

// RecordGroup notes a group that the workload has given, delay after the one before.
// It returns when it is due for a workload that paces itself.
func (l *Ledger) RecordGroup(delay time.Duration) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recorded++
	l.due += int64(max(delay, 0))
	if l.schedule == nil && l.due < l.measured {
		l.warm++
	}
	return l.due
}

// End notes that the workload has no more operations.
func (l *Ledger) End() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
}

// Over reports whether the workload has no more operations.
func (l *Ledger) Over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// Enter notes when the measurement begins; what is due before is warm-up.
func (l *Ledger) Enter(measured int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.measured = measured
	switch {
	case measured == math.MaxInt64:
	case l.schedule != nil:
		l.warm = l.until(measured - 1)
	case l.warm > 0 && l.due >= measured: // the one that is not due yet
		l.warm--
	}
}

// Scheduled counts the arrivals that were due at a time, and those of them that
// belong to the warm-up. Times must not fall from call to call.
func (l *Ledger) Scheduled(at int64) (all, warm int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.schedule == nil {
		all = l.recorded
		if all > 0 && l.due > at {
			all-- // the workload is at most one arrival ahead
		}
	} else {
		all = l.until(at)
		if l.measured == math.MaxInt64 { // all so far
			return all, all
		}
	}
	return all, min(l.warm, all)
}

// until needs mu, and a schedule.
func (l *Ledger) until(at int64) int64 {
	if l.origin == 0 {
		return 0
	}
	l.lastAsked = max(l.lastAsked, at)
	n := l.schedule.pass(time.Duration(at - l.origin))
	if l.ended {
		n = min(n, l.recorded)
	}
	return n
}
