package aggregate

import (
	"bytes"
	"math"

	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/expression"
)

// extremeInt is MIN and MAX of integers, decimals and times.
type extremeInt struct {
	values []int64
	seen   []bool
	isMax  bool
}

func (s *extremeInt) Grow(n int) { s.values, s.seen = grown(s.values, n), grown(s.seen, n) }
func (s *extremeInt) Reset()     { s.values, s.seen = s.values[:0], s.seen[:0] }
func (s *extremeInt) Size() int  { return 9 }

func (s *extremeInt) Add(r Rows) {
	null, values := r.Arg.Null[r.From:], r.Arg.Ints[r.From:]
	for i, g := range r.Groups {
		if !null[i] {
			s.one(g, values[i])
		}
	}
}

func (s *extremeInt) one(g int32, x int64) {
	if !s.seen[g] || (x > s.values[g]) == s.isMax && x != s.values[g] {
		s.seen[g], s.values[g] = true, x
	}
}

func (s *extremeInt) Merge(group int, o State, other int) {
	if from := o.(*extremeInt); from.seen[other] {
		s.one(int32(group), from.values[other])
	}
}

func (s *extremeInt) Append(to *column.Vec, group int) {
	if !s.seen[group] {
		to.AppendNull()
		return
	}
	to.AppendInt(s.values[group])
}

// extremeFloat is MIN and MAX of floats; NaN is above everything.
type extremeFloat struct {
	values []float64
	seen   []bool
	isMax  bool
}

func (s *extremeFloat) Grow(n int) { s.values, s.seen = grown(s.values, n), grown(s.seen, n) }
func (s *extremeFloat) Reset()     { s.values, s.seen = s.values[:0], s.seen[:0] }
func (s *extremeFloat) Size() int  { return 9 }

func (s *extremeFloat) Add(r Rows) {
	null, values := r.Arg.Null[r.From:], r.Arg.Floats[r.From:]
	for i, g := range r.Groups {
		if !null[i] {
			s.one(g, values[i])
		}
	}
}

func (s *extremeFloat) one(g int32, x float64) {
	v := s.values[g]
	above := x > v || x != x && v == v
	below := x < v || v != v && x == x
	if !s.seen[g] || s.isMax && above || !s.isMax && below {
		s.seen[g], s.values[g] = true, x
	}
}

func (s *extremeFloat) Merge(group int, o State, other int) {
	if from := o.(*extremeFloat); from.seen[other] {
		s.one(int32(group), from.values[other])
	}
}

func (s *extremeFloat) Append(to *column.Vec, group int) {
	if !s.seen[group] {
		to.AppendNull()
		return
	}
	to.AppendFloat(s.values[group])
}

// extremeBool is MIN and MAX of truth values; false is below true.
type extremeBool struct {
	values, seen []bool
	isMax        bool
}

func (s *extremeBool) Grow(n int) { s.values, s.seen = grown(s.values, n), grown(s.seen, n) }
func (s *extremeBool) Reset()     { s.values, s.seen = s.values[:0], s.seen[:0] }
func (s *extremeBool) Size() int  { return 2 }

func (s *extremeBool) Add(r Rows) {
	for i, g := range r.Groups {
		if !r.Arg.Null[r.From+i] {
			s.one(g, r.Arg.Bools[r.From+i])
		}
	}
}

func (s *extremeBool) one(g int32, x bool) {
	if !s.seen[g] || x == s.isMax {
		s.seen[g], s.values[g] = true, x
	}
}

func (s *extremeBool) Merge(group int, o State, other int) {
	if from := o.(*extremeBool); from.seen[other] {
		s.one(int32(group), from.values[other])
	}
}

func (s *extremeBool) Append(to *column.Vec, group int) {
	if !s.seen[group] {
		to.AppendNull()
		return
	}
	to.AppendBool(s.values[group])
}

// extremeText is MIN and MAX of texts, byte by byte.
type extremeText struct {
	values    [][]byte
	seen      []bool
	isMax     bool
	heldBytes int // the capacities of values, also of groups that were there before
}

// Grow keeps the memory of texts that were there before.
func (s *extremeText) Grow(n int) {
	for len(s.values) < n {
		if len(s.values) < cap(s.values) {
			s.values = s.values[:len(s.values)+1]
		} else {
			s.values = append(s.values, nil)
		}
	}
	s.seen = grown(s.seen, n)
}
func (s *extremeText) Reset()         { s.values, s.seen = s.values[:0], s.seen[:0] }
func (s *extremeText) Size() int      { return 64 }
func (s *extremeText) TextBytes() int { return s.heldBytes }

func (s *extremeText) textBytes(g int) int { return len(s.values[g]) }

func (s *extremeText) Add(r Rows) {
	for i, g := range r.Groups {
		if !r.Arg.Null[r.From+i] {
			s.one(g, r.Arg.Text(r.From+i))
		}
	}
}

func (s *extremeText) one(g int32, x []byte) {
	if c := bytes.Compare(x, s.values[g]); !s.seen[g] || c != 0 && (c > 0) == s.isMax {
		s.heldBytes -= cap(s.values[g])
		s.seen[g], s.values[g] = true, append(s.values[g][:0], x...)
		s.heldBytes += cap(s.values[g])
	}
}

func (s *extremeText) Merge(group int, o State, other int) {
	if from := o.(*extremeText); from.seen[other] {
		s.one(int32(group), from.values[other])
	}
}

func (s *extremeText) Append(to *column.Vec, group int) {
	if !s.seen[group] {
		to.AppendNull()
		return
	}
	to.AppendText(s.values[group])
}

// last is the value in the row with the latest time; of several, in the one that came last.
type last struct {
	groups    []latest
	heldBytes int // the capacities of texts, also of groups that were there before
	// arg is the type of the values; read is one that came from another process.
	arg  column.Type
	read column.Vec
}

type latest struct {
	seen bool
	time int64
	v    column.Vec
}

// Grow keeps the memory of groups that were there before.
func (s *last) Grow(n int) {
	for len(s.groups) < n {
		if len(s.groups) == cap(s.groups) {
			s.groups = append(s.groups, latest{})
			continue
		}
		s.groups = s.groups[:len(s.groups)+1]
		s.groups[len(s.groups)-1].seen = false
	}
}
func (s *last) Reset()         { s.groups = s.groups[:0] }
func (s *last) Size() int      { return 192 }
func (s *last) TextBytes() int { return s.heldBytes }

func (s *last) textBytes(g int) int { return len(s.groups[g].v.Bytes) }

func (s *last) Add(r Rows) {
	for i, g := range r.Groups {
		s.one(int(g), r.Times[r.From+i], r.Arg, r.From+i)
	}
}

func (s *last) one(g int, t int64, v *column.Vec, row int) {
	l := &s.groups[g]
	if l.seen && t < l.time {
		return
	}
	l.seen, l.time = true, t
	s.heldBytes -= cap(l.v.Bytes)
	l.v.Reset(v.Type)
	l.v.AppendFrom(v, row)
	s.heldBytes += cap(l.v.Bytes)
}

func (s *last) Merge(group int, o State, other int) {
	if from := &o.(*last).groups[other]; from.seen {
		s.one(group, from.time, &from.v, 0)
	}
}

func (s *last) Append(to *column.Vec, group int) {
	if l := &s.groups[group]; l.seen {
		to.AppendFrom(&l.v, 0)
		return
	}
	to.AppendNull()
}

// quantileScale is how many parts of 1 a quantile of floats tells apart.
const quantileScale = 1e6

// quantile keeps magnitudes in histograms, those of negative values apart: within 0.55 % of the value, and of floats
// and decimals nothing below a millionth. NaN is left out.
type quantile struct {
	q              float64
	whole          bool
	scale          float64
	above, below   []*histogram.Compact
	scratch, other *histogram.Histogram
	faults         *expression.Faults
}

func (s *quantile) Grow(n int) { s.above, s.below = grown(s.above, n), grown(s.below, n) }

func (s *quantile) Reset() {
	clear(s.above)
	clear(s.below)
	s.above, s.below = s.above[:0], s.below[:0]
}

// Size is that of a few hundred buckets.
func (s *quantile) Size() int { return 4096 }

func (s *quantile) Add(r Rows) {
	null := r.Arg.Null[r.From:]
	for i, g := range r.Groups {
		if null[i] {
			continue
		}
		var x float64
		if s.whole {
			x = float64(r.Arg.Ints[r.From+i]) * s.unit() / s.scale
		} else {
			x = r.Arg.Floats[r.From+i] * quantileScale
		}
		switch {
		case x != x:
		case x < 0:
			s.record(s.below, int(g)).Record(s.clamped(-x))
		default:
			s.record(s.above, int(g)).Record(s.clamped(x))
		}
	}
}

// clamped is a magnitude as it is recorded. One without room is the largest, and counted as an overflow.
func (s *quantile) clamped(x float64) int64 {
	switch {
	case x < 1<<63:
		return int64(x)
	case !s.whole || s.scale != 1: // of integers only 2^63 itself, which rounding makes of those next to it
		s.faults.Overflow++
	}
	return math.MaxInt64
}

// unit is what a value of 1 is recorded as: 1 of integers, so that there is room for all of them.
func (s *quantile) unit() float64 {
	if s.whole && s.scale == 1 {
		return 1
	}
	return quantileScale
}

func (s *quantile) record(side []*histogram.Compact, g int) *histogram.Compact {
	if side[g] == nil {
		side[g] = &histogram.Compact{}
	}
	return side[g]
}

func (s *quantile) Merge(group int, o State, other int) {
	from := o.(*quantile)
	if h := from.above[other]; h != nil {
		s.record(s.above, group).Merge(h)
	}
	if h := from.below[other]; h != nil {
		s.record(s.below, group).Merge(h)
	}
}

func (s *quantile) Append(to *column.Vec, group int) {
	if s.scratch == nil {
		s.scratch, s.other = histogram.New(), histogram.New()
	}
	for _, side := range []struct {
		from *histogram.Compact
		to   *histogram.Histogram
	}{{s.above[group], s.scratch}, {s.below[group], s.other}} {
		side.to.Reset()
		if side.from == nil {
			continue
		}
		if d := side.from.Data(); side.to.MergeData(&d) != nil {
			to.AppendNull()
			return
		}
	}
	below, above := float64(s.other.Count()), float64(s.scratch.Count())
	if below+above == 0 {
		to.AppendNull()
		return
	}
	rank := s.q * (below + above - 1)
	var v float64
	switch {
	case rank <= below-1:
		v = -s.other.Quantile(1 - rank/max(below-1, 1))
	case rank >= below:
		v = s.scratch.Quantile((rank - below) / max(above-1, 1))
	default:
		low, high := -float64(s.other.Min()), float64(s.scratch.Min())
		v = low + (high-low)*(rank-(below-1))
	}
	to.AppendFloat(v / s.unit())
}
