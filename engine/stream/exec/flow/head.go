package flow

import (
	"math"

	"github.com/loadstone-db/loadstone/engine/stream/exec/aggregate"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
)

// HeadSink takes what the heads of a plan come to, for the tail elsewhere: its Query has methods of the same names,
// which have the same effect there as if the sources were its own.
type HeadSink interface {
	// Rows are of an origin of a scan; the batch is valid until it returns.
	Rows(scan, origin int, b *column.Batch) error
	// Pane are groups of a part of a window, of so many rows.
	Pane(scan int, start, rows int64, t *aggregate.Table) error
	// Advance says that an origin has come to a time: what it had before that was given.
	Advance(scan, origin int, t int64) error
	// Quiet says that an origin is not to be waited for until it has a row again, Ended that it has no more.
	Quiet(scan, origin int) error
	Ended(scan, origin int) error
}

// head makes the steps of a head.
func (q *Query) head(i int, h plan.Head) {
	end := &sender{q: q, scan: i}
	if h.Partial == nil {
		q.build(h.Top, end)
		end.first = q.scans[i].first
		return
	}
	p := &partial{aggregator: newAggregator(q, h.Partial, nil), sender: end, sent: map[int]int64{}}
	p.clock.follow(q.build(h.Top, p))
	end.first = q.scans[i].first
	q.partials = append(q.partials, p)
}

// sender passes on what a head without an aggregate comes to.
type sender struct {
	q           *Query
	scan, first int
}

func (s *sender) push(from int, b *column.Batch) error {
	s.q.counts.Out += int64(b.N)
	return s.q.o.Heads.Rows(s.scan, from-s.first, b)
}
func (s *sender) advance(from int, t int64) error {
	return s.q.o.Heads.Advance(s.scan, from-s.first, t)
}
func (s *sender) pause(from int) error { return s.q.o.Heads.Quiet(s.scan, from-s.first) }
func (s *sender) end(from int) error   { return s.q.o.Heads.Ended(s.scan, from-s.first) }

// partial adds rows up, and gives what it has whenever an origin comes to the end of a part of a window, or it is asked
// to. It does not know how far the origins elsewhere have come: whether a row is late is for the tail to say.
type partial struct {
	*aggregator
	sender *sender
	// sent is what an origin was last said to have come to.
	sent map[int]int64
}

// maxHeldBytes is how many bytes a head keeps until it gives them.
const maxHeldBytes = 4 << 20

func (p *partial) push(from int, b *column.Batch) error {
	latest, seen, err := p.add(from, b)
	if err != nil {
		return err
	}
	if p.q.state > maxHeldBytes {
		if err := p.q.Flush(); err != nil {
			return err
		}
	}
	if p.n.Traced || !seen {
		return nil
	}
	return p.advance(from, latest)
}

func (p *partial) advance(from int, t int64) error {
	at, quiet := p.clock.at[from], p.clock.paused[from]
	if t <= at && !quiet {
		return nil
	}
	p.clock.at[from] = max(at, t)
	if quiet {
		// It is to be waited for again at once, whatever time it has.
		delete(p.clock.paused, from)
		delete(p.sent, from)
		return p.flush()
	}
	// A window ends at the end of a pane, as much later as rows may be late.
	late := p.n.Window.Lateness
	last, known := p.sent[from]
	if known && floor(t-late, p.panes.width) == floor(last-late, p.panes.width) {
		return nil
	}
	return p.flush()
}

// flush gives all panes, and then says how far origins have come.
func (p *partial) flush() error {
	for _, start := range p.panes.starts {
		t := p.panes.byStart[start]
		p.q.counts.Out += int64(t.Len())
		if err := p.q.o.Heads.Pane(p.sender.scan, start, t.Rows, t); err != nil {
			return err
		}
		p.drop(t)
		delete(p.panes.byStart, start)
	}
	p.panes.starts = p.panes.starts[:0]
	for from, t := range p.clock.at {
		if last, known := p.sent[from]; t == math.MinInt64 || known && last == t {
			continue
		}
		p.sent[from] = t
		if err := p.sender.advance(from, t); err != nil {
			return err
		}
	}
	return nil
}

func (p *partial) pause(from int) error {
	if err := p.flush(); err != nil {
		return err
	}
	p.clock.paused[from] = true
	return p.sender.pause(from)
}

func (p *partial) end(from int) error {
	if err := p.flush(); err != nil {
		return err
	}
	p.clock.finish(from)
	return p.sender.end(from)
}

// Flush gives what heads have added up so far; nothing where there is nothing new. Who runs heads calls it a few times
// a second.
func (q *Query) Flush() error {
	for _, p := range q.partials {
		if err := p.flush(); err != nil {
			return err
		}
	}
	return nil
}

// inlet is where a tail takes what a head elsewhere comes to.
type inlet struct {
	next    operator
	columns []column.Column
	batch   column.Batch
	held    held
}

// Rows takes rows of an origin that is read elsewhere.
func (q *Query) Rows(scan, origin int, w *column.Wire) error {
	in := &q.inlets[scan]
	in.batch.ReadWire(w, in.columns)
	if w.Err() != nil {
		return w.Err()
	}
	q.counts.Received += int64(in.batch.N)
	if err := in.held.set(q, in.batch.Size(), "rows from another process"); err != nil {
		return err
	}
	return in.next.push(q.scans[scan].first+origin, &in.batch)
}

// Pane takes groups that were added up elsewhere.
func (q *Query) Pane(scan int, start, rows int64, w *column.Wire) error {
	a, is := q.inlets[scan].next.(*aggregator)
	if !is {
		return column.ErrWire
	}
	return a.mergeWire(start, rows, w)
}

// Advance takes how far an origin has come that is read elsewhere.
func (q *Query) Advance(scan, origin int, t int64) error {
	return q.inlets[scan].next.advance(q.scans[scan].first+origin, t)
}

// Quiet is Pause of an origin that is read elsewhere.
func (q *Query) Quiet(scan, origin int) error { return q.Pause(scan, origin) }

// Ended is End of one.
func (q *Query) Ended(scan, origin int) error { return q.End(scan, origin) }

// Fits reports whether there is such an origin.
func (q *Query) Fits(scan, origin int) bool {
	return scan >= 0 && scan < len(q.scans) && origin >= 0 && origin < q.scans[scan].n
}
