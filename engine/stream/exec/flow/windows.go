package flow

import (
	"math"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/plan"
)

// clock knows how far each origin has come.
type clock struct {
	at     map[int]int64
	paused map[int]bool
	// idleSince is when the last of the origins fell silent, by the machine's clock; zero while one is not.
	idleSince time.Time
	// fed: the origins are operators with windows, which fall silent at once; sources are called quiet IdleAfter after
	// they have become it.
	fed bool
}

// follow makes the clock wait for origins.
func (c *clock) follow(origins []int) {
	if c.at == nil {
		c.at, c.paused = map[int]int64{}, map[int]bool{}
	}
	for _, o := range origins {
		c.at[o] = math.MinInt64
	}
}

func (c *clock) observe(from int, t int64) {
	c.at[from] = max(c.at[from], t)
	delete(c.paused, from)
	c.idleSince = time.Time{}
}

// finish takes an origin out that has ended.
func (c *clock) finish(from int) {
	delete(c.at, from)
	delete(c.paused, from)
}

// allIdle reports whether all origins that have not ended are quiet.
func (c *clock) allIdle() bool { return len(c.paused) == len(c.at) }

// latest is the latest time that an origin has come to; false where none has a time.
func (c *clock) latest() (latest int64, ok bool) {
	latest = math.MinInt64
	for _, t := range c.at {
		latest = max(latest, t)
	}
	return latest, latest != math.MinInt64
}

// idleFor is for how long all origins have been quiet, 0 where one is not, or all have ended.
func (c *clock) idleFor(now time.Time) time.Duration {
	switch {
	case len(c.at) == 0 || !c.allIdle():
		c.idleSince = time.Time{}
		return 0
	case c.idleSince.IsZero() && c.fed:
		c.idleSince = now
	case c.idleSince.IsZero():
		c.idleSince = now.Add(-IdleAfter)
	}
	return now.Sub(c.idleSince)
}

// watermark is the time that all origins have come to but those that are quiet; the end of time when all have ended.
func (c *clock) watermark() int64 {
	if len(c.at) > 0 && c.allIdle() {
		return math.MinInt64
	}
	least := int64(math.MaxInt64)
	for o, t := range c.at {
		if !c.paused[o] {
			least = min(least, t)
		}
	}
	return least
}

// floor is the greatest multiple of step that is not above t.
func floor(t, step int64) int64 {
	m := t % step
	if m < 0 {
		m += step
	}
	return t - m
}

// panes are what windows are made of: a row is in one pane, a window in one or more that follow each other.
type panes[P any] struct {
	window  plan.Window
	width   int64
	starts  []int64 // of those that hold rows, in order
	byStart map[int64]P
	// closed is the watermark, less lateness, up to which windows were given out.
	closed int64
	// next is the first start of a window that was not given out or passed.
	next int64
}

func newPanes[P any](w plan.Window) panes[P] {
	a, b := w.Size, w.Advance
	for b != 0 {
		a, b = b, a%b
	}
	return panes[P]{window: w, width: a, byStart: map[int64]P{}, closed: math.MinInt64, next: math.MinInt64}
}

// late reports whether all windows of a row were given out.
func (p *panes[P]) late(t int64) bool {
	return p.closed != math.MinInt64 && floor(t, p.window.Advance)+p.window.Size <= p.closed
}

// of returns the pane of a time, if it is there; add puts it there.
func (p *panes[P]) of(t int64) (start int64, pane P, ok bool) {
	start = floor(t, p.width)
	pane, ok = p.byStart[start]
	return start, pane, ok
}

func (p *panes[P]) add(start int64, pane P) {
	i, _ := slices.BinarySearch(p.starts, start)
	p.starts = slices.Insert(p.starts, i, start)
	p.byStart[start] = pane
}

// close gives out all windows that end at or before a watermark, in order, and lets panes go that no window needs.
func (p *panes[P]) close(watermark int64, give func(start int64, panes []P) error, drop func(P)) error {
	if watermark == math.MinInt64 {
		return nil
	}
	if watermark != math.MaxInt64 {
		watermark -= p.window.Lateness
	}
	if watermark <= p.closed {
		return nil
	}
	p.closed = watermark
	if err := p.emitUntil(watermark, give, drop); err != nil {
		return err
	}
	// Windows without rows were passed too: who is downstream was told that none of them comes.
	if t, ok := p.earliestPending(); ok {
		p.next = max(p.next, t)
	}
	return nil
}

// emitUntil gives out the windows of rows that are there.
func (p *panes[P]) emitUntil(watermark int64, give func(start int64, panes []P) error, drop func(P)) error {
	var in []P
	for len(p.starts) > 0 {
		// The first window that the first pane is in.
		start := floor(p.starts[0]+p.width-p.window.Size, p.window.Advance)
		if start < p.starts[0]+p.width-p.window.Size {
			start += p.window.Advance
		}
		start = max(start, p.next)
		if start+p.window.Size > watermark {
			return nil
		}
		in = in[:0]
		for _, s := range p.starts {
			if s >= start+p.window.Size {
				break
			}
			if s >= start {
				in = append(in, p.byStart[s])
			}
		}
		if len(in) > 0 {
			if err := give(start, in); err != nil {
				return err
			}
		}
		p.next = start + p.window.Advance
		for len(p.starts) > 0 && p.starts[0] < p.next {
			drop(p.byStart[p.starts[0]])
			delete(p.byStart, p.starts[0])
			p.starts = slices.Delete(p.starts, 0, 1)
		}
	}
	return nil
}

// lastEnd is the end of the last window that holds rows; false where none does.
func (p *panes[P]) lastEnd() (int64, bool) {
	n := len(p.starts)
	if n == 0 {
		return 0, false
	}
	return floor(p.starts[n-1], p.window.Advance) + p.window.Size, true
}

// open reports whether windows hold rows.
func (p *panes[P]) open() bool { return len(p.starts) > 0 }

// idle gives out the windows that hold rows and whose time is over when time has gone on for so long since the latest
// one of a row, which is of a type with that many microseconds in one. It reports whether there were any.
func (p *panes[P]) idle(latest int64, quiet time.Duration, scale int64, give func(start int64, panes []P) error,
	drop func(P)) (given bool, err error) {
	end, open := p.lastEnd()
	if !open {
		return false, nil
	}
	// No further than these windows: where the next row is nobody knows.
	t := min(latest+quiet.Microseconds()/scale, end+p.window.Lateness)
	before := len(p.starts)
	next := p.next
	err = p.close(t, give, drop)
	return len(p.starts) != before || p.next != next, err
}

// earliestPending is the earliest start of a window that may still be given out; false while that is unknown.
func (p *panes[P]) earliestPending() (int64, bool) {
	if p.closed == math.MinInt64 || p.closed == math.MaxInt64 {
		return 0, false
	}
	return floor(p.closed-p.window.Size, p.window.Advance) + p.window.Advance, true
}
