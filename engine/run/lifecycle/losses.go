package lifecycle

import (
	"fmt"
	"slices"
	"time"
)

// Losses are the run workers that are gone and may still bear their load, until they must have
// stopped by themselves: nobody else may have it before. It reads no clock.
type Losses struct{ until map[string]time.Time }

// Lost says that a run worker is gone, and when it must have stopped. What was said first stays.
func (l *Losses) Lost(id string, until time.Time) {
	if _, known := l.until[id]; known {
		return
	}
	if l.until == nil {
		l.until = map[string]time.Time{}
	}
	l.until[id] = until
}

// Holds reports whether the load of a run worker that is gone is still its own.
func (l *Losses) Holds(id string) bool { return !l.until[id].IsZero() }

// Freed are those whose load others may have from now on, each once, by their ids.
func (l *Losses) Freed(now time.Time) (ids []string) {
	for id, until := range l.until {
		if !until.IsZero() && !now.Before(until) {
			l.until[id] = time.Time{}
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Crew is what bounds how many run workers may take the place of lost ones.
type Crew struct {
	// Have bear load; Most may, 0 without a bound.
	Have, Most int
	// Slots are key slots that nobody has had.
	Slots int
	// Fixed says why none may join, empty when some may.
	Fixed string
}

// Replacements is how many of the lost run workers are replaced, and why not all are. The
// load of the others goes to those that are left, as far as they hold it.
func (c Crew) Replacements(lost int) (n int, why string) {
	n = lost
	bound := func(most int, because string) {
		if most < n {
			n, why = max(most, 0), because
		}
	}
	if c.Fixed != "" {
		bound(0, c.Fixed)
	}
	if c.Most > 0 {
		bound(c.Most-c.Have, fmt.Sprintf("scaling.max_workers is %d", c.Most))
	}
	bound(c.Slots, "the key slots of the run are used up")
	return n, why
}
