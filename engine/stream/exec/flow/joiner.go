package flow

import (
	"fmt"
	"math"

	"github.com/loadstone-db/loadstone/engine/stream/exec/aggregate"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/expression"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
)

// joiner keeps the rows of both sides until the watermark has passed their windows.
type joiner struct {
	q     *Query
	n     *plan.Join
	next  operator
	name  int
	sides [2]*side
	panes panes[*pair]
	out   column.Batch
	// texts are the columns of out that are.
	texts []int
	// pairBytes is about how many bytes a pane takes beside the values of its rows.
	pairBytes int
	on        filter
}

// side is where rows of one side come in.
type side struct {
	clock
	j      *joiner
	which  int
	time   *expression.Expr
	traced bool
	exprs  []*expression.Expr
	keys   *aggregate.Keys
	cols   []*column.Vec
}

// pair is a pane: the rows of both sides, with their keys.
type pair [2]struct {
	rows column.Batch
	keys []string
	size int
}

// mostRows is how many rows are pushed at once, and mostTexts how many bytes of one column's texts: a vector has no
// room for those of many long rows.
const (
	maxOutRows      = 1024
	maxOutTextBytes = 4 << 20
)

// vectorBytes is about what a vector takes beside its values.
const vectorBytes = 170

func newJoiner(q *Query, n *plan.Join, next operator) *joiner {
	j := &joiner{q: q, n: n, next: next, name: q.name(), panes: newPanes[*pair](n.Window)}
	j.sides[0] = &side{j: j, which: 0, time: n.LeftTime, traced: n.LeftTraced, exprs: n.LeftKeys,
		keys: aggregate.NewKeys()}
	j.sides[1] = &side{j: j, which: 1, time: n.RightTime, traced: n.RightTraced, exprs: n.RightKeys,
		keys: aggregate.NewKeys()}
	j.pairBytes = 256 + vectorBytes*len(n.Columns())
	for i, c := range n.Columns() {
		if c.Type.Kind == column.Text {
			j.texts = append(j.texts, i)
		}
	}
	if n.On != nil {
		j.on = filter{next: next, condition: n.On}
		j.next = &j.on
	}
	return j
}

func (s *side) push(from int, b *column.Batch) error {
	j := s.j
	t := s.time.Eval(b)
	s.cols = s.cols[:0]
	for _, x := range s.exprs {
		s.cols = append(s.cols, x.Eval(b))
	}
	s.keys.Encode(s.cols, b.N)
	bounds := j.q.bounds(t.Type)
	latest, seen := int64(0), false
	for i := range b.N {
		switch {
		case t.Null[i] || t.Ints[i] < bounds.min || t.Ints[i] > bounds.max:
			j.q.counts.Timeless++
			continue
		case t.Ints[i] > bounds.ahead:
			j.q.counts.Ahead++
			continue
		case j.panes.late(t.Ints[i]):
			j.q.counts.Late++
			continue
		}
		if !seen || t.Ints[i] > latest {
			latest, seen = t.Ints[i], true
		}
		if err := s.keep(t.Ints[i], b, i); err != nil {
			return err
		}
	}
	if s.traced || !seen {
		return nil
	}
	s.observe(from, latest)
	return j.close()
}

// keep puts a row into its pane; one whose key is NULL equals none.
func (s *side) keep(t int64, b *column.Batch, i int) error {
	for _, c := range s.cols {
		if c.Null[i] {
			return nil
		}
	}
	j := s.j
	start, p, ok := j.panes.of(t)
	if !ok {
		p = &pair{}
		for k, n := range []plan.Node{j.n.Left, j.n.Right} {
			p[k].rows.Reset(n.Columns())
		}
		j.panes.add(start, p)
		if err := j.q.addState(
			j.pairBytes,
			fmt.Sprintf("%d parts of windows of a join are open", len(j.panes.starts)),
		); err != nil {
			return err
		}
	}
	to := &p[s.which]
	for c := range b.Cols {
		to.rows.Cols[c].AppendFrom(&b.Cols[c], i)
	}
	to.keys = append(to.keys, string(s.keys.Key(i)))
	to.rows.N++
	if to.rows.N&(to.rows.N-1) != 0 && to.rows.N%256 != 0 {
		return nil
	}
	size := 0
	for c := range to.rows.Cols {
		size += to.rows.Cols[c].Size()
	}
	size += to.rows.N * (16 + len(to.keys[0]))
	more := size - to.size
	to.size = size
	return j.q.addState(more, fmt.Sprintf("a join holds %d rows of one side in a part of a window, of which %d are open",
		to.rows.N, len(j.panes.starts)))
}

func (s *side) advance(from int, t int64) error {
	s.observe(from, t)
	return s.j.close()
}

func (s *side) pause(from int) error {
	s.paused[from] = true
	if s.j.sides[0].allIdle() && s.j.sides[1].allIdle() {
		return s.j.next.pause(s.j.name)
	}
	return s.j.close()
}

func (s *side) end(from int) error {
	s.finish(from)
	if err := s.j.close(); err != nil {
		return err
	}
	if len(s.j.sides[0].at)+len(s.j.sides[1].at) > 0 {
		return nil
	}
	return s.j.next.end(s.j.name)
}

func (j *joiner) close() error {
	watermark := int64(math.MaxInt64)
	for _, s := range j.sides {
		if len(s.at) == 0 || !s.allIdle() {
			watermark = min(watermark, s.watermark())
		}
	}
	if len(j.sides[0].paused)+len(j.sides[1].paused) > 0 && watermark == math.MaxInt64 {
		return nil // all that have not ended are quiet
	}
	err := j.panes.close(watermark, j.emit, func(p *pair) { _ = j.q.addState(-p[0].size-p[1].size-j.pairBytes, "") })
	if err != nil {
		return err
	}
	if t, ok := j.panes.earliestPending(); ok && watermark != math.MinInt64 {
		return j.next.advance(j.name, t)
	}
	return nil
}

// place is a row in one of a window's panes.
type place struct {
	rows *column.Batch
	i    int
}

// emit pairs the rows of a window.
func (j *joiner) emit(start int64, panes []*pair) error {
	right := map[string][]place{}
	for _, p := range panes {
		for i, k := range p[1].keys {
			right[k] = append(right[k], place{&p[1].rows, i})
		}
	}
	j.out.Reset(j.n.Columns())
	left := len(j.n.Left.Columns())
	for _, p := range panes {
		for i, k := range p[0].keys {
			for _, r := range right[k] {
				j.out.Cols[0].AppendInt(start)
				j.out.Cols[1].AppendInt(start + j.n.Window.Span)
				for c := range left {
					j.out.Cols[2+c].AppendFrom(&p[0].rows.Cols[c], i)
				}
				for c := range r.rows.Cols {
					j.out.Cols[2+left+c].AppendFrom(&r.rows.Cols[c], r.i)
				}
				if j.out.N++; j.out.N == maxOutRows || j.longTexts() {
					if err := j.flush(); err != nil {
						return err
					}
				}
			}
		}
	}
	return j.flush()
}

// longTexts reports whether texts of pairs are to be passed on, though there are few.
func (j *joiner) longTexts() bool {
	for _, c := range j.texts {
		if len(j.out.Cols[c].Bytes) >= maxOutTextBytes {
			return true
		}
	}
	return false
}

func (j *joiner) flush() error {
	if err := j.q.o.Ended(); err != nil {
		return err
	}
	if j.out.N == 0 {
		return nil
	}
	if err := j.next.push(j.name, &j.out); err != nil {
		return err
	}
	j.out.Reset(j.n.Columns())
	return nil
}
