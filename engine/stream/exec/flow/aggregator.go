package flow

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/aggregate"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
)

// aggregator adds rows up in a table for each pane; windows of several panes merge their tables.
type aggregator struct {
	q     *Query
	n     *plan.Aggregate
	next  operator
	name  int
	clock clock
	panes panes[*aggregate.Table]

	types   []column.Type
	in      *pieces
	keys    *aggregate.Keys
	time    *column.Vec
	cols    []*column.Vec
	args    []*column.Vec
	groups  []int32
	moments moments
	// latest is the latest time of a row of the batch, if one was seen.
	latest int64
	seen   bool
	free   []*aggregate.Table
	// merged is a window of several panes, of which taken bytes are counted.
	merged *aggregate.Table
	taken  int
	stops  func() error
	piece  aggregate.Piece
	out    column.Batch
	// buffers are keys, and windows that are given out.
	buffers held
}

// maxFreeTables is how many empty tables are kept, and maxFreeBytes how many one may have taken: they are in nobody's
// account.
const (
	maxFreeTables = 4
	maxFreeBytes  = 4 << 20
)

// maxOutGroups is how many groups of a window are pushed at once.
const maxOutGroups = 2048

func newAggregator(q *Query, n *plan.Aggregate, next operator) *aggregator {
	a := &aggregator{q: q, n: n, next: next, name: q.name(), panes: newPanes[*aggregate.Table](n.Window),
		keys: aggregate.NewKeys(), moments: moments{}}
	a.in, a.stops = newPieces(q, a.eval, a.use), a.ended
	for _, g := range n.Groups {
		a.types = append(a.types, g.Type)
	}
	a.merged = a.table()
	return a
}

func (a *aggregator) table() *aggregate.Table {
	if n := len(a.free); n > 0 {
		t := a.free[n-1]
		a.free = a.free[:n-1]
		return t
	}
	return aggregate.NewTable(a.types, a.n.Functions, a.q.plan.Faults)
}

// drop takes a table back that is not needed any more.
func (a *aggregator) drop(t *aggregate.Table) {
	size := t.Size()
	_ = a.q.addState(-size, "")
	if size <= maxFreeBytes && len(a.free) < maxFreeTables {
		t.Reset()
		a.free = append(a.free, t)
	}
}

func (a *aggregator) push(from int, b *column.Batch) error {
	latest, seen, err := a.add(from, b)
	if err != nil || a.n.Traced || !seen {
		return err
	}
	a.clock.observe(from, latest)
	return a.close()
}

// add adds rows to their panes, and returns the latest time that one of them had once all rows are there that go
// together.
func (a *aggregator) add(from int, b *column.Batch) (latest int64, seen bool, err error) {
	a.seen = false
	if err := a.in.push(b); err != nil {
		return 0, false, err
	}
	latest, seen = a.moments.of(from, a.latest, a.seen, b.More)
	return latest, seen, nil
}

func (a *aggregator) eval(rows *column.Batch) (err error) {
	if a.time, err = a.n.Time.Eval(rows, a.in.memory); err != nil {
		return err
	}
	a.cols, a.args = a.cols[:0], a.args[:0]
	for _, g := range a.n.Groups {
		v, err := g.Eval(rows, a.in.memory)
		if err != nil {
			return err
		}
		a.cols = append(a.cols, v)
	}
	for _, x := range a.n.Args {
		var v *column.Vec
		if x != nil {
			if v, err = x.Eval(rows, a.in.memory); err != nil {
				return err
			}
		}
		a.args = append(a.args, v)
	}
	return nil
}

// checkRows is after how many rows it is asked whether the query has to end.
const checkRows = 1 << 14

func (a *aggregator) use(b *column.Batch, _ bool) error {
	t := a.time
	a.keys.Encode(a.cols, b.N)
	if err := a.buffers.set(a.q, a.keys.Size()+a.out.Size(), "keys of groups"); err != nil {
		return err
	}
	bounds := a.q.bounds(t.Type)
	for i := 0; i < b.N; {
		if !a.acceptsTime(t, i, bounds) {
			i++
			continue
		}
		n, err := a.addRun(i, min(b.N, i+checkRows), bounds)
		if err != nil {
			return err
		}
		if i += n; n == checkRows {
			if err := a.q.o.Ended(); err != nil {
				return err
			}
		}
	}
	return nil
}

// addRun adds the rows from begin on, before until, that are in the same pane as the first, and returns how many there
// were.
func (a *aggregator) addRun(begin, until int, bounds bounds) (n int, err error) {
	t := a.time
	start, table, ok := a.panes.of(t.Ints[begin])
	if !ok {
		table = a.table()
		a.panes.add(start, table)
	}
	before := 0 // what a table brought along from its last use counts from now on
	if ok {
		before = table.Size()
	}
	a.groups = a.groups[:0]
	end := min(start+a.panes.width-1, bounds.ahead)
	for i := begin; i < until && !t.Null[i] && t.Ints[i] >= start && t.Ints[i] <= end; i++ {
		if i > begin && a.panes.late(t.Ints[i]) {
			break
		}
		a.groups = append(a.groups, table.Group(a.keys, a.cols, i))
		if ts := t.Ints[i]; !a.seen || ts > a.latest {
			a.latest, a.seen = ts, true
		}
	}
	table.Rows += int64(len(a.groups))
	for f, s := range table.States {
		s.Add(aggregate.Rows{Groups: a.groups, From: begin, Arg: a.args[f], Times: t.Ints})
	}
	if more := table.Size() - before; more > 0 {
		err = a.addState(more, table)
	}
	return len(a.groups), err
}

// mergeWire adds groups that were added up elsewhere, of so many rows of a pane that are counted with them.
func (a *aggregator) mergeWire(start, rows int64, w *column.Wire) error {
	if b := a.q.bounds(a.n.Time.Type); start != floor(start, a.panes.width) || start < floor(b.min, a.panes.width) ||
		start > b.max {
		return column.ErrWire
	}
	if a.panes.late(start) { // as all its rows: windows begin and end where panes do
		a.q.counts.Late += rows
		a.merged.Reset() // what comes behind them is read on
		_, err := a.merged.MergeWire(a.keys, &a.piece, w)
		return err
	}
	_, table, there := a.panes.of(start)
	before := 0
	if there {
		before = table.Size()
	} else {
		table = a.table()
		a.panes.add(start, table)
	}
	n, err := table.MergeWire(a.keys, &a.piece, w)
	if err != nil {
		return err
	}
	a.q.counts.Received += int64(n)
	if more := table.Size() - before; more > 0 {
		return a.addState(more, table)
	}
	return nil
}

func (a *aggregator) addState(more int, table *aggregate.Table) error {
	if err := a.q.memory.Grow(more); err != nil {
		return a.q.StateLimit(err, fmt.Sprintf("%d groups in a window, %d parts of windows are open", table.Len(),
			len(a.panes.starts)))
	}
	a.q.state += more
	return nil
}

// acceptsTime reports whether a row has a time that can be taken, and counts those that have none.
func (a *aggregator) acceptsTime(t *column.Vec, i int, b bounds) bool {
	switch {
	case t.Null[i] || t.Ints[i] < b.min || t.Ints[i] > b.max:
		a.q.counts.Timeless++
	case t.Ints[i] > b.ahead:
		a.q.counts.Ahead++
	case a.panes.late(t.Ints[i]):
		a.q.counts.Late++
	default:
		return true
	}
	return false
}

func (a *aggregator) advance(from int, t int64) error {
	a.clock.observe(from, t)
	return a.close()
}

func (a *aggregator) pause(from int) error {
	if a.clock.paused[from] = true; a.clock.allIdle() {
		return a.next.pause(a.name)
	}
	return a.close()
}

func (a *aggregator) open() bool  { return a.panes.open() }
func (a *aggregator) isFed() bool { return a.clock.fed }

// idle implements windowed.
func (a *aggregator) idle(now time.Time) error {
	quiet := a.clock.idleFor(now)
	latest, ok := a.clock.latest()
	if quiet == 0 || !ok {
		return nil
	}
	given, err := a.panes.idle(latest, quiet, a.q.bounds(a.n.Time.Type).scale, a.emit, a.drop)
	if err != nil || !given {
		return err
	}
	if t, ok := a.panes.earliestPending(); ok {
		if err := a.next.advance(a.name, t); err != nil {
			return err
		}
	}
	return a.next.pause(a.name)
}

func (a *aggregator) end(from int) error {
	a.clock.finish(from)
	if err := a.close(); err != nil {
		return err
	}
	if len(a.clock.at) > 0 {
		return nil
	}
	return a.next.end(a.name)
}

// close gives out what the watermark has passed, and says how far it came.
func (a *aggregator) close() error {
	if err := a.panes.close(a.clock.watermark(), a.emit, a.drop); err != nil {
		return err
	}
	if t, ok := a.panes.earliestPending(); ok {
		return a.next.advance(a.name, t)
	}
	return nil
}

// ended is why the query has to end, nil where it has not.
func (a *aggregator) ended() error {
	if !a.q.memory.Stopped() {
		return nil
	}
	return a.q.o.Ended()
}

// merge adds the parts of a window up, in merged.
func (a *aggregator) merge(panes []*aggregate.Table) error {
	a.merged.Reset()
	for _, p := range panes {
		if err := a.merged.Merge(p, a.stops); err != nil {
			return err
		}
		now, err := a.q.memory.Set(a.taken, a.merged.Size())
		if a.taken = now; err != nil {
			return a.q.StateLimit(err, fmt.Sprintf("%d groups in a window of several parts", a.merged.Len()))
		}
	}
	return nil
}

// unmerge gives back what merged has taken.
func (a *aggregator) unmerge() {
	a.q.memory.Free(a.taken)
	if a.taken > maxFreeBytes {
		a.merged = aggregate.NewTable(a.types, a.n.Functions, a.q.plan.Faults)
	}
	a.taken = 0
}

// emit gives a window out, in pieces where it has many groups.
func (a *aggregator) emit(start int64, panes []*aggregate.Table) error {
	if err := a.q.o.Ended(); err != nil {
		return err
	}
	t := panes[0]
	if len(panes) > 1 {
		t = a.merged
		defer a.unmerge()
		if err := a.merge(panes); err != nil {
			return err
		}
	}
	for from := 0; from < t.Len(); {
		until := t.Until(from, maxOutGroups, maxOutTextBytes)
		a.out.Reset(a.n.Columns())
		a.out.N, a.out.More = until-from, until < t.Len()
		for range until - from {
			a.out.Cols[0].AppendInt(start)
			a.out.Cols[1].AppendInt(start + a.n.Window.Span)
		}
		t.Append(a.out.Cols[2:], from, until)
		if err := a.buffers.set(a.q, a.keys.Size()+a.out.Size(), "groups of a window that is given out"); err != nil {
			return err
		}
		if err := a.next.push(a.name, &a.out); err != nil {
			return err
		}
		if from = until; from < t.Len() {
			if err := a.q.o.Ended(); err != nil {
				return err
			}
		}
	}
	return nil
}
