package flow

import (
	"fmt"

	"github.com/loadstone-db/loadstone/engine/stream/exec/aggregate"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/expression"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
)

// filter copies the rows for which the condition is true.
type filter struct {
	next      operator
	condition *expression.Expr
	keep      []int32
	out       column.Batch
}

func (f *filter) push(from int, b *column.Batch) error {
	v := f.condition.Eval(b)
	f.keep = f.keep[:0]
	for i := range b.N {
		if v.Bools[i] && !v.Null[i] {
			f.keep = append(f.keep, int32(i))
		}
	}
	switch len(f.keep) {
	case 0:
		return nil
	case b.N:
		return f.next.push(from, b)
	}
	if len(f.out.Cols) != len(b.Cols) {
		f.out.Cols = make([]column.Vec, len(b.Cols))
	}
	f.out.N = len(f.keep)
	for i := range b.Cols {
		f.out.Cols[i].Gather(&b.Cols[i], f.keep)
	}
	return f.next.push(from, &f.out)
}

func (f *filter) advance(from int, t int64) error { return f.next.advance(from, t) }
func (f *filter) pause(from int) error            { return f.next.pause(from) }
func (f *filter) end(from int) error              { return f.next.end(from) }

// project evaluates; what is evaluated is not copied.
type project struct {
	next  operator
	items []*expression.Expr
	out   column.Batch
}

func newProject(n *plan.Project, next operator) *project {
	return &project{next: next, items: n.Items, out: column.Batch{Cols: make([]column.Vec, len(n.Items))}}
}

func (p *project) push(from int, b *column.Batch) error {
	p.out.N = b.N
	for i, x := range p.items {
		p.out.Cols[i] = *x.Eval(b)
	}
	return p.next.push(from, &p.out)
}

func (p *project) advance(from int, t int64) error { return p.next.advance(from, t) }
func (p *project) pause(from int) error            { return p.next.pause(from) }
func (p *project) end(from int) error              { return p.next.end(from) }

// lag remembers the last rows of each partition, in the order in which they came.
type lag struct {
	q      *Query
	next   operator
	values []lagValue
	out    column.Batch
}

type lagValue struct {
	plan.LagValue
	keys       *aggregate.Keys
	cols       []*column.Vec
	partitions map[string]*ring
	out        column.Vec
}

// ring holds the last values of a partition, each a vector of one.
type ring struct {
	values []column.Vec
	n      int
}

// ringBytes is about what a partition takes beside its values.
const ringBytes = 200

func newLag(q *Query, n *plan.Lag, next operator) *lag {
	l := &lag{q: q, next: next}
	for _, v := range n.Values {
		l.values = append(l.values, lagValue{LagValue: v, keys: aggregate.NewKeys(), partitions: map[string]*ring{}})
	}
	return l
}

func (l *lag) push(from int, b *column.Batch) error {
	l.out.N, l.out.Cols = b.N, append(l.out.Cols[:0], b.Cols...)
	for i := range l.values {
		if err := l.values[i].eval(l.q, b); err != nil {
			return err
		}
		l.out.Cols = append(l.out.Cols, l.values[i].out)
	}
	return l.next.push(from, &l.out)
}

func (v *lagValue) eval(q *Query, b *column.Batch) error {
	x := v.X.Eval(b)
	v.cols = v.cols[:0]
	for _, p := range v.Partition {
		v.cols = append(v.cols, p.Eval(b))
	}
	v.keys.Encode(v.cols, b.N)
	v.out.Reset(v.X.Type)
	for i := range b.N {
		r := v.partitions[string(v.keys.Key(i))]
		if r == nil {
			r = &ring{values: make([]column.Vec, v.Offset)}
			v.partitions[string(v.keys.Key(i))] = r
			if err := q.addState(ringBytes+len(v.keys.Key(i))+150*v.Offset,
				fmt.Sprintf("LAG has %d partitions", len(v.partitions))); err != nil {
				return err
			}
		}
		old := &r.values[r.n%v.Offset]
		if r.n < v.Offset {
			v.out.AppendNull()
		} else {
			v.out.AppendFrom(old, 0)
		}
		before := old.Size()
		old.Reset(x.Type)
		old.AppendFrom(x, i)
		r.n++
		if more := old.Size() - before; more > 0 {
			if err := q.addState(more, fmt.Sprintf("LAG has %d partitions", len(v.partitions))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lag) advance(from int, t int64) error { return l.next.advance(from, t) }
func (l *lag) pause(from int) error            { return l.next.pause(from) }
func (l *lag) end(from int) error              { return l.next.end(from) }
