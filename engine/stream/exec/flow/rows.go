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
	in        *pieces
	value     *column.Vec
	done      int // rows of the batch that were looked at
	keep      []int32
	out       column.Batch
	held      held
	// passed: rows of a batch that goes on were pushed.
	passed bool
}

func newFilter(q *Query, condition *expression.Expr, next operator) *filter {
	f := &filter{next: next, condition: condition}
	f.in = newPieces(q, f.eval, f.use)
	return f
}

func (f *filter) eval(rows *column.Batch) (err error) {
	f.value, err = f.condition.Eval(rows, f.in.memory)
	return err
}

func (f *filter) use(rows *column.Batch, _ bool) error {
	for i := range rows.N {
		if f.value.Bools[i] && !f.value.Null[i] {
			f.keep = append(f.keep, int32(f.done+i))
		}
	}
	f.done += rows.N
	return nil
}

func (f *filter) push(from int, b *column.Batch) error {
	f.keep, f.done = f.keep[:0], 0
	if err := f.in.push(b); err != nil {
		return err
	}
	switch {
	case len(f.keep) == 0 && (b.More || !f.passed):
		return nil
	case len(f.keep) == b.N:
		f.passed = b.More
		return f.next.push(from, b)
	}
	f.passed = b.More
	if len(f.out.Cols) != len(b.Cols) {
		f.out.Cols = make([]column.Vec, len(b.Cols))
	}
	f.out.N, f.out.More = len(f.keep), b.More
	for i := range b.Cols {
		f.out.Cols[i].Gather(&b.Cols[i], f.keep)
	}
	if err := f.held.set(f.in.q, f.out.Size(), "a filter copies rows"); err != nil {
		return err
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
	in    *pieces
	from  int
	out   column.Batch
}

func newProject(q *Query, n *plan.Project, next operator) *project {
	p := &project{next: next, items: n.Items, out: column.Batch{Cols: make([]column.Vec, len(n.Items))}}
	p.in = newPieces(q, p.eval, p.use)
	return p
}

func (p *project) eval(rows *column.Batch) error {
	for i, x := range p.items {
		v, err := x.Eval(rows, p.in.memory)
		if err != nil {
			clear(p.out.Cols)
			return err
		}
		p.out.Cols[i] = *v
	}
	return nil
}

func (p *project) use(rows *column.Batch, more bool) error {
	p.out.N, p.out.More = rows.N, more
	err := p.next.push(p.from, &p.out)
	clear(p.out.Cols) // their memory may be given back
	return err
}

func (p *project) push(from int, b *column.Batch) error {
	p.from = from
	if b.N == 0 { // it ends what went before
		for i, x := range p.items {
			p.out.Cols[i] = column.Vec{Type: x.Type}
		}
		return p.use(b, b.More)
	}
	return p.in.push(b)
}

func (p *project) advance(from int, t int64) error { return p.next.advance(from, t) }
func (p *project) pause(from int) error            { return p.next.pause(from) }
func (p *project) end(from int) error              { return p.next.end(from) }

// lag remembers the last rows of each partition, in the order in which they came.
type lag struct {
	q      *Query
	next   operator
	values []lagValue
	in     *pieces
	from   int
	out    column.Batch
	held   held
}

type lagValue struct {
	plan.LagValue
	keys       *aggregate.Keys
	x          *column.Vec
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
	l.in = newPieces(q, l.eval, l.use)
	return l
}

func (l *lag) push(from int, b *column.Batch) error {
	l.from = from
	if b.N == 0 {
		return l.use(b, b.More)
	}
	return l.in.push(b)
}

func (l *lag) eval(rows *column.Batch) (err error) {
	for i := range l.values {
		v := &l.values[i]
		if v.x, err = v.X.Eval(rows, l.in.memory); err != nil {
			return err
		}
		v.cols = v.cols[:0]
		for _, p := range v.Partition {
			x, err := p.Eval(rows, l.in.memory)
			if err != nil {
				return err
			}
			v.cols = append(v.cols, x)
		}
	}
	return nil
}

func (l *lag) use(rows *column.Batch, more bool) error {
	l.out.N, l.out.More, l.out.Cols = rows.N, more, append(l.out.Cols[:0], rows.Cols...)
	bytes := 0
	for i := range l.values {
		v := &l.values[i]
		if err := v.lag(l.q, rows); err != nil {
			return err
		}
		l.out.Cols = append(l.out.Cols, v.out)
		bytes += v.out.Size() + v.keys.Size()
	}
	if err := l.held.set(l.q, bytes, "values of LAG"); err != nil {
		return err
	}
	return l.next.push(l.from, &l.out)
}

// lag has the values that rows had before come out, and remembers their own.
func (v *lagValue) lag(q *Query, b *column.Batch) error {
	x := v.x
	v.out.Reset(v.X.Type)
	if b.N == 0 {
		return nil
	}
	v.keys.Encode(v.cols, b.N)
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
