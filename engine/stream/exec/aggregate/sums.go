package aggregate

import (
	"math"
	"math/bits"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/expression"
)

// grown is s with n values at least; new ones are zero.
func grown[T any](s []T, n int) []T {
	s = column.GrowSlice(s, n-len(s))
	for len(s) < n {
		var zero T
		s = append(s, zero)
	}
	return s
}

type count struct{ n []int64 }

func (s *count) Grow(n int) { s.n = grown(s.n, n) }
func (s *count) Reset()     { s.n = s.n[:0] }
func (s *count) Size() int  { return 8 }

func (s *count) Add(r Rows) {
	if r.Arg == nil {
		for _, g := range r.Groups {
			s.n[g]++
		}
		return
	}
	null := r.Arg.Null[r.From:]
	for i, g := range r.Groups {
		if !null[i] {
			s.n[g]++
		}
	}
}

func (s *count) Merge(group int, o State, other int) { s.n[group] += o.(*count).n[other] }

func (s *count) Append(to *column.Vec, group int) { to.AppendInt(s.n[group]) }

// int128Sum is a whole number of 128 bits and how many were added: the sum does not depend on the order.
type int128Sum struct {
	hi int64
	lo uint64
	n  int64
}

func (w *int128Sum) add(hi int64, lo uint64) {
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, lo, 0)
	w.hi += hi + int64(carry)
}

func (w *int128Sum) float() float64 { return float64(w.hi)*(1<<64) + float64(w.lo) }

// sumInt is SUM and AVG of integers and decimals.
type sumInt struct {
	sums    []int128Sum
	average bool
	scale   float64
	faults  *expression.Faults
}

func (s *sumInt) Grow(n int) { s.sums = grown(s.sums, n) }
func (s *sumInt) Reset()     { s.sums = s.sums[:0] }
func (s *sumInt) Size() int  { return 24 }

func (s *sumInt) Add(r Rows) {
	null, values := r.Arg.Null[r.From:], r.Arg.Ints[r.From:]
	for i, g := range r.Groups {
		if !null[i] {
			w := &s.sums[g]
			w.add(values[i]>>63, uint64(values[i]))
			w.n++
		}
	}
}

func (s *sumInt) Merge(group int, o State, other int) {
	from := o.(*sumInt).sums[other]
	s.sums[group].add(from.hi, from.lo)
	s.sums[group].n += from.n
}

func (s *sumInt) Append(to *column.Vec, group int) {
	w := s.sums[group]
	switch {
	case w.n == 0:
		to.AppendNull()
	case s.average && w.hi == int64(w.lo)>>63:
		to.AppendFloat(float64(int64(w.lo)) / float64(w.n) / s.scale)
	case s.average:
		to.AppendFloat(w.float() / float64(w.n) / s.scale)
	case w.hi != int64(w.lo)>>63 || !to.Type.Holds(int64(w.lo)):
		s.faults.Overflow++
		to.AppendNull()
	default:
		to.AppendInt(int64(w.lo))
	}
}

// compensatedSum is a sum of floats with what rounding lost (Neumaier).
type compensatedSum struct{ sum, lost float64 }

func (e *compensatedSum) add(x float64) {
	t := e.sum + x
	if math.Abs(e.sum) >= math.Abs(x) {
		e.lost += (e.sum - t) + x
	} else {
		e.lost += (x - t) + e.sum
	}
	e.sum = t
}

// merge adds what another has.
func (e *compensatedSum) merge(o compensatedSum) {
	e.add(o.sum)
	if o.lost-o.lost == 0 {
		e.add(o.lost)
	}
}

func (e *compensatedSum) value() float64 {
	if e.sum-e.sum != 0 {
		return e.sum
	}
	return e.sum + e.lost
}

// floatSum is a sum of floats that has room for any number of them on the way: great ones are added up apart, as parts.
type floatSum struct {
	small compensatedSum
	// great is of values that are not small, divided by 2 to the power of greatShift.
	great    compensatedSum
	n        int64
	infinite bool // a value was, or was no number
}

// smallValue is what values are below whose sum always has room: there are less than 2^63 of them. The great ones have
// room once they are divided.
const (
	smallValue = 0x1p960
	greatShift = 64
)

func (e *floatSum) add(x float64) {
	e.n++
	switch {
	case math.Abs(x) < smallValue:
		e.small.add(x)
	case x-x == 0:
		e.great.add(math.Ldexp(x, -greatShift))
	default:
		e.infinite = true
		e.small.add(x)
	}
}

func (e *floatSum) merge(o *floatSum) {
	e.small.merge(o.small)
	e.great.merge(o.great)
	e.n += o.n
	e.infinite = e.infinite || o.infinite
}

// value is the sum divided by a number of values; it is infinite where that has no room.
func (e *floatSum) value(divisor float64) float64 {
	if e.infinite || e.great.value() == 0 {
		return e.small.value() / divisor
	}
	all := e.great
	all.merge(compensatedSum{math.Ldexp(e.small.sum, -greatShift), math.Ldexp(e.small.lost, -greatShift)})
	return math.Ldexp(all.value()/divisor, greatShift)
}

// whole is the sum as one with what rounding lost. Where that has no room it is infinite, with what is great of it as
// lost.
func (e *floatSum) whole() compensatedSum {
	if e.infinite || e.great.value() == 0 {
		return e.small
	}
	great := e.great.sum + e.great.lost
	lost := e.great.lost - (great - e.great.sum) // exact: what is lost is small
	if v := math.Ldexp(great, greatShift); v-v == 0 {
		return compensatedSum{v, math.Ldexp(lost, greatShift) + e.small.value()}
	}
	return compensatedSum{math.Copysign(math.Inf(1), great), great}
}

// setWhole takes what whole has given, or an earlier version.
func (e *floatSum) setWhole(w compensatedSum) {
	switch {
	case e.infinite:
		e.small = w
	case math.IsInf(w.sum, 0) && w.lost-w.lost == 0 && math.Abs(w.lost) >= smallValue/2:
		e.great.sum = w.lost
	case math.Abs(w.sum) >= smallValue && w.sum-w.sum == 0:
		e.great.sum = math.Ldexp(w.sum, -greatShift)
		if math.Abs(w.lost) >= smallValue {
			e.great.add(math.Ldexp(w.lost, -greatShift))
		} else if w.lost-w.lost == 0 {
			e.small.sum = w.lost
		}
	default:
		e.small = w
	}
}

// sumFloat is SUM and AVG of floats.
type sumFloat struct {
	sums    []floatSum
	average bool
	faults  *expression.Faults
}

func (s *sumFloat) Grow(n int) { s.sums = grown(s.sums, n) }
func (s *sumFloat) Reset()     { s.sums = s.sums[:0] }
func (s *sumFloat) Size() int  { return 48 }

func (s *sumFloat) Add(r Rows) {
	null, values := r.Arg.Null[r.From:], r.Arg.Floats[r.From:]
	for i, g := range r.Groups {
		if !null[i] {
			s.sums[g].add(values[i])
		}
	}
}

func (s *sumFloat) Merge(group int, o State, other int) {
	s.sums[group].merge(&o.(*sumFloat).sums[other])
}

func (s *sumFloat) Append(to *column.Vec, group int) {
	e, divisor := &s.sums[group], 1.0
	if s.average {
		divisor = float64(e.n)
	}
	v := e.value(divisor)
	switch {
	case e.n == 0:
		to.AppendNull()
	case v-v != 0 && !e.infinite:
		s.faults.Overflow++
		to.AppendNull()
	default:
		to.AppendFloat(v)
	}
}

// moments are Welford's: how many, their mean, and the sum of squared distances from it.
type moments struct{ n, mean, m2 float64 }

// deviation is STDDEV, of a sample: NULL of less than two values. Of finite values whose squares have no room it is
// NULL, and counted as an overflow, where Postgres refuses.
type deviation struct {
	groups []moments
	ints   bool
	scale  float64
	faults *expression.Faults
}

func (s *deviation) Grow(n int) { s.groups = grown(s.groups, n) }
func (s *deviation) Reset()     { s.groups = s.groups[:0] }
func (s *deviation) Size() int  { return 24 }

func (s *deviation) Add(r Rows) {
	null := r.Arg.Null[r.From:]
	for i, g := range r.Groups {
		if null[i] {
			continue
		}
		var x float64
		if s.ints {
			x = float64(r.Arg.Ints[r.From+i]) / s.scale
		} else {
			x = r.Arg.Floats[r.From+i]
		}
		m := &s.groups[g]
		m.n++
		d := x - m.mean
		m.mean = interpolate(m.mean, x, d, 1/m.n)
		m.m2 += d * (x - m.mean)
	}
}

// interpolate is a + d·part, where d is b - a: that it is infinite, or no number, says that one of them is.
func interpolate(a, b, d, part float64) float64 {
	if math.IsInf(d, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		return a*(1-part) + b*part
	}
	return a + d*part
}

func (s *deviation) Merge(group int, o State, other int) {
	to, from := &s.groups[group], o.(*deviation).groups[other]
	switch {
	case from.n == 0:
		return
	case to.n == 0:
		*to = from // squares of great means have no room
		return
	}
	n := to.n + from.n
	d := from.mean - to.mean
	to.mean = interpolate(to.mean, from.mean, d, from.n/n)
	if d != 0 {
		to.m2 += d * (d * (to.n * from.n / n))
	}
	to.m2 += from.m2
	to.n = n
}

func (s *deviation) Append(to *column.Vec, group int) {
	m := s.groups[group]
	if m.n < 2 {
		to.AppendNull()
		return
	}
	v := math.Sqrt(max(m.m2, 0) / (m.n - 1))
	if v-v != 0 && m.mean-m.mean == 0 {
		s.faults.Overflow++
		to.AppendNull()
		return
	}
	to.AppendFloat(v)
}
