package flow

import (
	"fmt"

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

	types  []column.Type
	keys   *aggregate.Keys
	cols   []*column.Vec
	args   []*column.Vec
	groups []int32
	free   []*aggregate.Table
	merged *aggregate.Table
	piece  aggregate.Piece
	out    column.Batch
}

// mostFree is how many empty tables are kept, and largest how many groups one may have had.
const (
	maxFreeTables = 4
	maxFreeGroups = 1 << 16
)

func newAggregator(q *Query, n *plan.Aggregate, next operator) *aggregator {
	a := &aggregator{q: q, n: n, next: next, name: q.name(), panes: newPanes[*aggregate.Table](n.Window),
		keys: aggregate.NewKeys()}
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
	_ = a.q.addState(-t.Size(), "")
	if t.Len() <= maxFreeGroups && len(a.free) < maxFreeTables {
		t.Reset()
		a.free = append(a.free, t)
	}
}

func (a *aggregator) push(from int, b *column.Batch) error {
	latest, seen, err := a.add(b)
	if err != nil || a.n.Traced || !seen {
		return err
	}
	a.clock.observe(from, latest)
	return a.close()
}

// add adds rows to their panes, and returns the latest time that one of them had.
func (a *aggregator) add(b *column.Batch) (latest int64, seen bool, err error) {
	t := a.n.Time.Eval(b)
	a.cols, a.args = a.cols[:0], a.args[:0]
	for _, g := range a.n.Groups {
		a.cols = append(a.cols, g.Eval(b))
	}
	for _, x := range a.n.Args {
		if x == nil {
			a.args = append(a.args, nil)
			continue
		}
		a.args = append(a.args, x.Eval(b))
	}
	a.keys.Encode(a.cols, b.N)
	bounds := a.q.bounds(t.Type)
	for i := 0; i < b.N; {
		if !a.acceptsTime(t, i, bounds) {
			i++
			continue
		}
		start, table, ok := a.panes.of(t.Ints[i])
		if !ok {
			table = a.table()
			a.panes.add(start, table)
		}
		before := 0 // what a table brought along from its last use counts from now on
		if ok {
			before = table.Size()
		}
		a.groups = a.groups[:0]
		begin := i
		end := min(start+a.panes.width-1, bounds.ahead)
		for ; i < b.N && !t.Null[i] && t.Ints[i] >= start && t.Ints[i] <= end; i++ {
			if i > begin && a.panes.late(t.Ints[i]) {
				break
			}
			a.groups = append(a.groups, table.Group(a.keys, a.cols, i))
			if ts := t.Ints[i]; !seen || ts > latest {
				latest, seen = ts, true
			}
		}
		table.Rows += int64(len(a.groups))
		for f, s := range table.States {
			s.Add(aggregate.Rows{Groups: a.groups, From: begin, Arg: a.args[f], Times: t.Ints})
		}
		if more := table.Size() - before; more > 0 {
			if err := a.addState(more, table); err != nil {
				return latest, seen, err
			}
		}
	}
	return latest, seen, nil
}

// merge adds groups that were added up elsewhere, of so many rows of a pane that are counted with them.
func (a *aggregator) merge(start, rows int64, w *column.Wire) error {
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
	if a.q.state+more <= a.q.o.StateBytes {
		a.q.state += more
		return nil
	}
	return a.q.addState(more, fmt.Sprintf("%d groups in a window, %d parts of windows are open", table.Len(),
		len(a.panes.starts)))
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

// emit gives a window out.
func (a *aggregator) emit(start int64, panes []*aggregate.Table) error {
	if err := a.q.o.Ended(); err != nil {
		return err
	}
	t := panes[0]
	if len(panes) > 1 {
		t = a.merged
		t.Reset()
		for _, p := range panes {
			t.Merge(p)
		}
	}
	a.out.Reset(a.n.Columns())
	a.out.N = t.Len()
	for range t.Len() {
		a.out.Cols[0].AppendInt(start)
		a.out.Cols[1].AppendInt(start + a.n.Window.Span)
	}
	t.Append(a.out.Cols[2:])
	return a.next.push(a.name, &a.out)
}
