// Package flow runs a plan over batches: operators that push rows to the next one, from the scans to the outlet. It
// has no goroutine, no clock and no I/O; one goroutine at a time pushes.
//
// Time is that of the rows. Each origin, a physical source or an operator below, has the latest time that was seen of
// it; the watermark of a window is the earliest of its origins' times, less the lateness that the query allows. A
// window is given out once the watermark has reached its end. Rows all of whose windows were given out are late: they
// are counted, and nothing is changed that was given out. The watermark moves behind a batch, so that within one no
// row is late; a batch that is marked says itself how far its origin has come. Rows a day and more ahead of the
// machine's clock are left out and counted: one of them would make all others late.
//
// What a query holds is bounded: rows are evaluated in pieces where all of a batch would take too much, and a query
// that holds more than its limit nevertheless fails, and says with what.
package flow

import (
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
)

// Options say how a query is run.
type Options struct {
	// Origins is how many physical sources each scan has, those that are read elsewhere among them.
	Origins []int
	// Account counts what the query holds; without one it may hold Budget bytes, 0 for what is usual.
	Account *memory.Account
	Budget  int
	// Now is the machine's clock.
	Now func() time.Time
	// Out is given the results; a batch is valid until it returns.
	Out func(*column.Batch) error
	// Ended, if it is set, is asked now and then while a batch takes long: one row may close a million windows, or meet a
	// million others in a join. Its error ends that.
	Ended func() error
	// Heads, if it is set, is given what the heads of the plan come to, in place of the tail; Out is not used then.
	Heads HeadSink
}

// Counts are what became of rows.
type Counts struct {
	In, Out int64
	// Received are rows and groups that came from heads elsewhere; they are not of In.
	Received int64
	// Late came when all their windows had been given out, Ahead are of the future, Timeless have no time.
	Late, Ahead, Timeless int64
	// Results that are NULL since they could not be computed.
	DivisionByZero, Overflow, Cast int64
	// State is how many bytes the query holds now.
	State int
	// Latest is the latest time of a row, in microseconds since 1970; 0 where rows have no time, or none came.
	Latest int64
}

// Query is a plan that runs.
type Query struct {
	o     Options
	plan  *plan.Plan
	scans []*scan
	// names of origins are counted up.
	origins int
	counts  Counts
	// state is what windows, joins and LAG hold; memory counts that, and all else that the query holds.
	state  int
	memory *memory.Account
	// inlets are where the tail takes what heads elsewhere come to, by scan; tops are their last steps.
	inlets []inlet
	tops   map[plan.Node]int
	// pieces are those of all operators.
	pieces []*pieces
	// partials are the aggregates that heads add up in part.
	partials []*partial
	// windows are the operators with windows, those that others read first.
	windows []windowed
}

// windowed is an operator that gives windows out.
type windowed interface {
	// idle gives out windows whose time is over by the machine's clock while all origins are quiet.
	idle(now time.Time) error
	// open reports whether windows hold rows, isFed that rows come from windows of other operators.
	open() bool
	isFed() bool
}

// IdleAfter is how long a source has no row until windows do not wait for it.
const IdleAfter = 5 * time.Second

// operator takes what the one before it pushes.
type operator interface {
	// push takes rows of an origin.
	push(from int, b *column.Batch) error
	// advance says that an origin has come to a time.
	advance(from int, t int64) error
	// pause says that an origin is quiet, and not to be waited for until it has a row again.
	pause(from int) error
	// end says that an origin has no more rows.
	end(from int) error
}

// New returns a query that has seen no row.
func New(p *plan.Plan, o Options) *Query {
	if o.Account == nil {
		o.Account = memory.Limits{}.Open(memory.Holder{}, o.Budget, nil)
	}
	if o.Ended == nil {
		o.Ended = func() error { return nil }
	}
	q := &Query{o: o, plan: p, memory: o.Account, scans: make([]*scan, len(p.Scans)), inlets: make([]inlet, len(p.Scans)),
		tops: map[plan.Node]int{}}
	for i, h := range p.Heads() {
		q.tops[h.Top] = i
		q.inlets[i].columns = h.Top.Columns()
		if o.Heads != nil {
			q.head(i, h)
		}
	}
	if o.Heads == nil {
		q.build(p.Root, &outputOp{q})
	}
	return q
}

// build makes the operators below next, and returns the origins that will push to it.
func (q *Query) build(n plan.Node, next operator) []int {
	if scan, is := q.tops[n]; is && q.o.Heads == nil {
		q.inlets[scan].next = next
	}
	switch n := n.(type) {
	case *plan.Filter:
		return q.build(n.In, newFilter(q, n.Condition, next))
	case *plan.Project:
		return q.build(n.In, newProject(q, n, next))
	case *plan.Lag:
		return q.build(n.In, newLag(q, n, next))
	case *plan.Aggregate:
		a, below := newAggregator(q, n, next), len(q.windows)
		a.clock.follow(q.build(n.In, a))
		a.clock.fed = len(q.windows) > below
		q.windows = append(q.windows, a)
		return []int{a.name}
	case *plan.Join:
		j, below := newJoiner(q, n, next), len(q.windows)
		j.sides[0].follow(q.build(n.Left, j.sides[0]))
		j.sides[0].fed = len(q.windows) > below
		below = len(q.windows)
		j.sides[1].follow(q.build(n.Right, j.sides[1]))
		j.sides[1].fed = len(q.windows) > below
		q.windows = append(q.windows, j)
		return []int{j.name}
	}
	s, _ := plan.ScanOf(n)
	to := &scan{q: q, next: next, first: q.origins, n: q.o.Origins[s.Index], time: s.Time}
	q.origins += to.n
	q.scans[s.Index] = to
	var names []int
	for i := range to.n {
		names = append(names, to.first+i)
	}
	return names
}

// name is a new origin.
func (q *Query) name() int {
	q.origins++
	return q.origins - 1
}

// Push takes rows of a physical source of a scan. The batch is the caller's again when it returns.
func (q *Query) Push(scan, origin int, b *column.Batch) error {
	q.counts.In += int64(b.N)
	return q.scans[scan].take(origin, b)
}

// End says that a physical source has no more rows.
func (q *Query) End(scan, origin int) error {
	s := q.scans[scan]
	return s.next.end(s.first + origin)
}

// Pause says that a physical source is quiet: windows do not wait for it until it has a row again.
func (q *Query) Pause(scan, origin int) error {
	s := q.scans[scan]
	return s.next.pause(s.first + origin)
}

// Tick has time go on by the machine's clock where all sources are quiet: a window that holds rows comes out once its
// time is over, and does not wait for a row that may never come. Who runs the query calls it about once a second while
// no rows wait.
func (q *Query) Tick() error {
	open := false
	for _, w := range q.windows {
		if open && w.isFed() {
			continue // what it reads may have rows for its windows
		}
		if err := w.idle(q.o.Now()); err != nil {
			return err
		}
		open = open || w.open()
	}
	return nil
}

// Release lets all go that the query holds. Nothing but Counts may be called afterwards.
func (q *Query) Release() {
	for _, p := range q.pieces {
		p.memory.Release()
	}
	q.scans, q.inlets, q.tops, q.partials, q.pieces, q.windows = nil, nil, nil, nil, nil, nil
}

// Counts returns what became of rows so far.
func (q *Query) Counts() Counts {
	c := q.counts
	f := q.plan.Faults
	c.DivisionByZero, c.Overflow, c.Cast, c.State = f.DivisionByZero, f.Overflow, f.Cast, q.state
	return c
}

// addState adds to the state, or takes from it; more than the query may hold is its end.
func (q *Query) addState(bytes int, what string) error {
	if bytes <= 0 {
		q.state += bytes
		q.memory.Free(-bytes)
		return nil
	}
	if err := q.memory.Grow(bytes); err != nil {
		return q.StateLimit(err, what)
	}
	q.state += bytes
	return nil
}

type scan struct {
	q     *Query
	next  operator
	first int
	n     int
	time  int
}

func (s *scan) take(origin int, b *column.Batch) error {
	if b.N > 0 {
		if err := s.next.push(s.first+origin, b); err != nil {
			return err
		}
	}
	if s.time < 0 {
		return nil
	}
	v := &b.Cols[s.time]
	bounds := s.q.bounds(v.Type)
	t, ok := bounds.latest(v)
	if ok {
		s.q.counts.Latest = max(s.q.counts.Latest, t*bounds.scale)
	}
	if b.HasWatermark {
		// Rounded down, for a time in milliseconds.
		t, ok = floor(b.Watermark, bounds.scale)/bounds.scale, true
	}
	if !ok {
		return nil
	}
	return s.next.advance(s.first+origin, t)
}

// bounds are between which times of rows are taken.
type bounds struct {
	min, max, ahead int64
	scale           int64 // microseconds of one
}

// ahead is how far ahead of the machine's clock the time of a row may be.
const ahead = 24 * time.Hour

func (q *Query) bounds(t column.Type) bounds {
	scale := int64(1)
	if t.Kind == column.Int {
		scale = 1000
	}
	return bounds{column.MinTime / scale, column.MaxTime / scale, q.o.Now().Add(ahead).UnixMicro() / scale, scale}
}

// latest is the latest time of a column that is taken.
func (b bounds) latest(v *column.Vec) (latest int64, ok bool) {
	for i, t := range v.Ints {
		if !v.Null[i] && t >= b.min && t <= b.ahead && (!ok || t > latest) {
			latest, ok = t, true
		}
	}
	return latest, ok
}

type outputOp struct{ q *Query }

func (o *outputOp) push(_ int, b *column.Batch) error {
	if b.N == 0 {
		return nil
	}
	o.q.counts.Out += int64(b.N)
	return o.q.o.Out(b)
}
func (o *outputOp) advance(int, int64) error { return nil }
func (o *outputOp) pause(int) error          { return nil }
func (o *outputOp) end(int) error            { return nil }
