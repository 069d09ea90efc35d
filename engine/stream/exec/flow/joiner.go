package flow

import (
	"fmt"
	"math"
	"slices"
	"time"

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
	on        *filter
	// buffers are pairs that are given out.
	buffers held
}

// side is where rows of one side come in.
type side struct {
	clock
	j      *joiner
	which  int
	time   *expression.Expr
	traced bool
	exprs  []*expression.Expr
	in     *pieces
	keys   *aggregate.Keys
	times  *column.Vec
	cols   []*column.Vec
	// latest is the latest time of a row of the batch, if one was seen.
	moments moments
	latest  int64
	seen    bool
	buffers held
}

// pair is a pane: the rows of both sides, with their keys.
type pair [2]struct {
	rows column.Batch
	keys []string
	// size is what is counted of the rows, keyBytes of their keys; unmeasured are about the bytes since then.
	size, keyBytes, unmeasured int
}

// maxOutRows is how many rows are pushed at once, and maxOutTextBytes how many bytes of their texts; unmeasuredBytes
// is after how many bytes of rows it is measured what they take.
const (
	maxOutRows      = 1024
	maxOutTextBytes = 1 << 20
	unmeasuredBytes = 64 << 10
)

// vectorBytes is about what a vector takes beside its values.
const vectorBytes = 170

func newJoiner(q *Query, n *plan.Join, next operator) *joiner {
	j := &joiner{q: q, n: n, next: next, name: q.name(), panes: newPanes[*pair](n.Window)}
	j.sides[0] = &side{j: j, which: 0, time: n.LeftTime, traced: n.LeftTraced, exprs: n.LeftKeys}
	j.sides[1] = &side{j: j, which: 1, time: n.RightTime, traced: n.RightTraced, exprs: n.RightKeys}
	for _, s := range j.sides {
		s.keys, s.moments, s.in = aggregate.NewKeys(), moments{}, newPieces(q, s.eval, s.use)
	}
	j.pairBytes = 256 + vectorBytes*len(n.Columns())
	for i, c := range n.Columns() {
		if c.Type.Kind == column.Text {
			j.texts = append(j.texts, i)
		}
	}
	if n.On != nil {
		j.on = newFilter(q, n.On, next)
		j.next = j.on
	}
	return j
}

func (s *side) push(from int, b *column.Batch) error {
	s.seen = false
	if err := s.in.push(b); err != nil {
		return err
	}
	latest, seen := s.moments.of(from, s.latest, s.seen, b.More)
	if s.traced || !seen {
		return nil
	}
	s.observe(from, latest)
	return s.j.close()
}

func (s *side) eval(rows *column.Batch) (err error) {
	if s.times, err = s.time.Eval(rows, s.in.memory); err != nil {
		return err
	}
	s.cols = s.cols[:0]
	for _, x := range s.exprs {
		v, err := x.Eval(rows, s.in.memory)
		if err != nil {
			return err
		}
		s.cols = append(s.cols, v)
	}
	return nil
}

func (s *side) use(b *column.Batch, _ bool) error {
	j, t := s.j, s.times
	s.keys.Encode(s.cols, b.N)
	if err := s.buffers.set(j.q, s.keys.Size(), "keys of a join"); err != nil {
		return err
	}
	bounds := j.q.bounds(t.Type)
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
		if !s.seen || t.Ints[i] > s.latest {
			s.latest, s.seen = t.Ints[i], true
		}
		if err := s.keep(t.Ints[i], b, i); err != nil {
			return err
		}
	}
	return nil
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
	key := string(s.keys.Key(i))
	to.keys = append(to.keys, key)
	to.keyBytes += len(key)
	to.unmeasured += len(key) + 16
	for c := range b.Cols {
		if to.unmeasured += 9; b.Cols[c].Type.Kind == column.Text && !b.Cols[c].Null[i] {
			to.unmeasured += len(b.Cols[c].Text(i))
		}
	}
	to.rows.N++
	if to.rows.N&(to.rows.N-1) != 0 && to.unmeasured < unmeasuredBytes {
		return nil
	}
	to.unmeasured = 0
	size := to.rows.Size() + 16*cap(to.keys) + to.keyBytes
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
	if err := j.panes.close(watermark, j.emit, j.drop); err != nil {
		return err
	}
	if t, ok := j.panes.earliestPending(); ok && watermark != math.MinInt64 {
		return j.next.advance(j.name, t)
	}
	return nil
}

// drop lets the rows of a part of a window go.
func (j *joiner) drop(p *pair) { _ = j.q.addState(-p[0].size-p[1].size-j.pairBytes, "") }

func (j *joiner) open() bool  { return j.panes.open() }
func (j *joiner) isFed() bool { return j.sides[0].fed || j.sides[1].fed }

// idle implements windowed.
func (j *joiner) idle(now time.Time) error {
	quiet := time.Duration(math.MaxInt64)
	latest, known := int64(math.MinInt64), false
	for _, s := range j.sides {
		if len(s.at) == 0 {
			continue // it has ended
		}
		quiet = min(quiet, s.idleFor(now))
		if t, ok := s.clock.latest(); ok {
			latest, known = max(latest, t), true
		}
	}
	if quiet == 0 || quiet == math.MaxInt64 || !known {
		return nil
	}
	given, err := j.panes.idle(latest, quiet, j.q.bounds(j.n.LeftTime.Type).scale, j.emit, j.drop)
	if err != nil || !given {
		return err
	}
	if t, ok := j.panes.earliestPending(); ok {
		if err := j.next.advance(j.name, t); err != nil {
			return err
		}
	}
	return j.next.pause(j.name)
}

// place is a row in one of a window's panes. next is the number of the next one with the same key, -1 for none.
type place struct {
	pane, i, next int32
}

// entryBytes is about what a key takes in the index of a join, and placeBytes a row.
const (
	entryBytes = 64
	placeBytes = 12
)

// index is where rows of the right side are by their keys.
type index struct {
	first  map[string]int32
	places []place
}

// index makes the index of a window, from the last row to the first, so that rows of a key follow each other in their
// order. What it takes is counted before.
func (j *joiner) index(panes []*pair, taken *held) (index, error) {
	rows := 0
	for _, p := range panes {
		rows += len(p[1].keys)
	}
	x := index{first: map[string]int32{}, places: make([]place, 0, rows)}
	for n, p := range slices.Backward(panes) {
		for i := len(p[1].keys) - 1; i >= 0; i-- {
			if len(x.places)%checkRows == 0 {
				if err := j.grow(taken, placeBytes*rows+entryBytes*(len(x.first)+checkRows)); err != nil {
					return x, err
				}
			}
			k := p[1].keys[i]
			next, there := x.first[k]
			if !there {
				next = -1
			}
			x.first[k] = int32(len(x.places))
			x.places = append(x.places, place{int32(n), int32(i), next})
		}
	}
	return x, nil
}

// grow counts the index of a window, and asks whether the query has to end.
func (j *joiner) grow(taken *held, bytes int) error {
	if err := taken.set(j.q, bytes, "a join compares the rows of a window"); err != nil {
		return err
	}
	return j.q.o.Ended()
}

// emit pairs the rows of a window.
func (j *joiner) emit(start int64, panes []*pair) error {
	var taken held
	defer func() { j.q.memory.Free(int(taken)) }()
	right, err := j.index(panes, &taken)
	if err != nil {
		return err
	}
	j.out.Reset(j.n.Columns())
	for _, p := range panes {
		for i, k := range p[0].keys {
			at, there := right.first[k]
			for ; there && at >= 0; at = right.places[at].next {
				r := right.places[at]
				if err := j.pair(start, &p[0].rows, i, &panes[r.pane][1].rows, int(r.i)); err != nil {
					return err
				}
			}
		}
	}
	return j.flush()
}

// pair adds a pair of rows, and passes on what there is when it is enough.
func (j *joiner) pair(start int64, left *column.Batch, l int, right *column.Batch, r int) error {
	j.out.Cols[0].AppendInt(start)
	j.out.Cols[1].AppendInt(start + j.n.Window.Span)
	for c := range left.Cols {
		j.out.Cols[2+c].AppendFrom(&left.Cols[c], l)
	}
	for c := range right.Cols {
		j.out.Cols[2+len(left.Cols)+c].AppendFrom(&right.Cols[c], r)
	}
	if j.out.N++; j.out.N < maxOutRows && !j.longTexts() {
		return nil
	}
	return j.flush()
}

// longTexts reports whether texts of pairs are to be passed on, though there are few.
func (j *joiner) longTexts() bool {
	bytes := 0
	for _, c := range j.texts {
		bytes += len(j.out.Cols[c].Bytes)
	}
	return bytes >= maxOutTextBytes
}

func (j *joiner) flush() error {
	if err := j.q.o.Ended(); err != nil {
		return err
	}
	if j.out.N == 0 {
		return nil
	}
	if err := j.buffers.set(j.q, j.out.Size(), "pairs of a join that are given out"); err != nil {
		return err
	}
	if err := j.next.push(j.name, &j.out); err != nil {
		return err
	}
	j.out.Reset(j.n.Columns())
	return nil
}
