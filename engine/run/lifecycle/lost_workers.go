package lifecycle

import (
	"fmt"
	"slices"
	"time"
)

// LostWorkers are the run workers that are gone and may still bear their load, until they must have
// stopped by themselves: nobody else may have it before. It reads no clock.
type LostWorkers struct{ deadlines map[string]time.Time }

// MarkLost says that a run worker is gone, and when it must have stopped. What was said first stays.
func (l *LostWorkers) MarkLost(id string, until time.Time) {
	if _, known := l.deadlines[id]; known {
		return
	}
	if l.deadlines == nil {
		l.deadlines = map[string]time.Time{}
	}
	l.deadlines[id] = until
}

// HoldsLoad reports whether the load of a run worker that is gone is still its own.
func (l *LostWorkers) HoldsLoad(id string) bool { return !l.deadlines[id].IsZero() }

// ReleaseExpired are those whose load others may have from now on, each once, by their ids.
func (l *LostWorkers) ReleaseExpired(now time.Time) (ids []string) {
	for id, until := range l.deadlines {
		if !until.IsZero() && !now.Before(until) {
			l.deadlines[id] = time.Time{}
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// ReplacementLimits is what bounds how many run workers may take the place of lost ones.
type ReplacementLimits struct {
	// Active bear load; Most may, 0 without a bound.
	Active, Max int
	// Slots are key slots that nobody has had.
	Slots int
	// FixedReason says why none may join, empty when some may.
	FixedReason string
}

// Replacements is how many of the lost run workers are replaced, and why not all are. The
// load of the others goes to those that are left, as far as they hold it.
func (c ReplacementLimits) Replacements(lost int) (n int, why string) {
	n = lost
	bound := func(most int, because string) {
		if most < n {
			n, why = max(most, 0), because
		}
	}
	if c.FixedReason != "" {
		bound(0, c.FixedReason)
	}
	if c.Max > 0 {
		bound(c.Max-c.Active, fmt.Sprintf("scaling.max_workers is %d", c.Max))
	}
	bound(c.Slots, "the key slots of the run are used up")
	return n, why
}
