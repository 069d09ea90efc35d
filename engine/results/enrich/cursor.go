package enrich

import "time"

// historyResolution is the resolution of a history's times.
const historyResolution = time.Millisecond

// Cursor pages backwards through a history that gives the latest rows of an
// interval and no more than a page of them. Pages overlap by one tick, because
// rows that ended in the same tick may be split between two; whoever reads them
// knows what it has seen.
type Cursor struct {
	from, to  time.Time
	pageSize  int
	pagesLeft int
	pages     int
	done      bool
	truncated bool
	gaps      int
}

// NewCursor pages from the end of [from, to] towards its beginning, through at most maxPages pages.
func NewCursor(from, to time.Time, pageSize, maxPages int) *Cursor {
	return &Cursor{from: from, to: to, pageSize: pageSize, pagesLeft: maxPages, done: to.Before(from)}
}

// Next returns the interval of the next page; ok is false when there is none.
func (c *Cursor) Next() (from, to time.Time, ok bool) { return c.from, c.to, !c.done }

// Read tells that the page had so many rows, the earliest of which ended at the given time.
func (c *Cursor) Read(rows int, earliest time.Time) {
	c.pages++
	c.pagesLeft--
	if rows < c.pageSize {
		c.done = true
		return
	}
	if c.pagesLeft <= 0 {
		c.done, c.truncated = true, true
		return
	}
	next := earliest.Add(historyResolution)
	if !next.Before(c.to) {
		// A whole page ended within a tick: what else ended in it cannot be asked for.
		next = earliest.Add(-historyResolution)
		if !next.Before(c.to) {
			next = c.to.Add(-historyResolution)
		}
		c.gaps++
	}
	c.to = next
	c.done = c.to.Before(c.from)
}

// Pages is how many pages were read.
func (c *Cursor) Pages() int { return c.pages }

// Truncated reports whether the limit of pages ended the paging before its time.
func (c *Cursor) Truncated() bool { return c.truncated }

// Gaps is how many ticks had more rows than a page holds.
func (c *Cursor) Gaps() int { return c.gaps }
