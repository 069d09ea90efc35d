package expression

import (
	"bytes"
	"cmp"
	"math"
	"math/bits"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// columnRef is the column itself: nothing is copied.
type columnRef int

func (c columnRef) eval(in *input, _ []bool) *column.Vec { return &in.Cols[c] }

// constant repeats one value as often as a batch has rows.
type constant struct {
	one  column.Vec
	all  result
	view column.Vec
}

func (c *constant) eval(in *input, _ []bool) *column.Vec {
	if c.one.Type.Kind == column.Text && !c.one.Null[0] {
		if c.all.Len() < in.N { // as long as it is, it is there once
			in.room(&c.all, len(c.one.Bytes))
			c.all.SetSame(c.one.Bytes, 2*in.N)
		}
		c.view = *in.done(&c.all, 0)
		c.view.Null = c.all.Null[:in.N]
		return &c.view
	}
	if c.all.Len() == 0 {
		c.all.Reset(c.one.Type)
	}
	for c.all.Len() < in.N {
		c.all.AppendFrom(&c.one, 0)
	}
	c.view = *in.done(&c.all, 0)
	c.view.Null = c.all.Null[:in.N]
	switch c.one.Type.Kind {
	case column.Float:
		c.view.Floats = c.all.Floats[:in.N]
	case column.Boolean, column.Unknown:
		c.view.Bools = c.all.Bools[:in.N]
	case column.Text:
		c.view.Ends = c.all.Ends[:in.N]
	default:
		c.view.Ints = c.all.Ints[:in.N]
	}
	return &c.view
}

// nulls sets out's to NULL where one of the operands is.
func nulls(out, l, r *column.Vec) {
	ln, rn := l.Null, r.Null[:len(l.Null)]
	to := out.Null[:len(l.Null)]
	for i := range to {
		to[i] = ln[i] || rn[i]
	}
}

// isActive reports whether a row's fault is one.
func isActive(on []bool, i int) bool { return on == nil || on[i] }

// intArith reckons with integers, and with decimals of one scale, whose products have the sum of the scales.
type intArith struct {
	l, r   node
	op     byte
	t      column.Type
	out    result
	faults *Faults
}

func (n *intArith) eval(in *input, on []bool) *column.Vec {
	l, r := n.l.eval(in, on), n.r.eval(in, on)
	n.out.ResetSized(n.t, in.N)
	nulls(&n.out.Vec, l, r)
	a, b, to := l.Ints[:in.N], r.Ints[:in.N], n.out.Ints[:in.N]
	for i := range to {
		x, y := a[i], b[i]
		var z int64
		ok := true
		switch n.op {
		case '+':
			z = x + y
			ok = (x^z)&(y^z) >= 0
		case '-':
			z = x - y
			ok = (x^y)&(x^z) >= 0
		case '*':
			z, ok = multiply(x, y)
		default:
			if y == 0 {
				n.fault(i, on, true)
				continue
			}
			if y == -1 && x == math.MinInt64 {
				ok = n.op == '%'
			} else if n.op == '/' {
				z = x / y
			} else {
				z = x % y
			}
		}
		if to[i] = z; !ok || n.t.Kind == column.Decimal && !n.t.Holds(z) {
			n.fault(i, on, false)
		}
	}
	return in.done(&n.out, 0)
}

func (n *intArith) fault(i int, on []bool, zero bool) {
	if !n.out.Null[i] && isActive(on, i) {
		if zero {
			n.faults.DivisionByZero++
		} else {
			n.faults.Overflow++
		}
	}
	n.out.Null[i] = true
}

// multiply returns the product, and false if it has no room.
func multiply(x, y int64) (int64, bool) {
	ux, uy := uint64(x), uint64(y)
	if x < 0 {
		ux = -ux
	}
	if y < 0 {
		uy = -uy
	}
	hi, lo := bits.Mul64(ux, uy)
	if (x < 0) != (y < 0) {
		return int64(-lo), hi == 0 && lo <= 1<<63
	}
	return int64(lo), hi == 0 && lo < 1<<63
}

// floatArith reckons with floats. What is finite does not become infinite, and nothing is divided by zero.
type floatArith struct {
	l, r   node
	op     byte
	out    result
	faults *Faults
}

func (n *floatArith) eval(in *input, on []bool) *column.Vec {
	l, r := n.l.eval(in, on), n.r.eval(in, on)
	n.out.ResetSized(column.Float64Type, in.N)
	nulls(&n.out.Vec, l, r)
	a, b, to := l.Floats[:in.N], r.Floats[:in.N], n.out.Floats[:in.N]
	for i := range to {
		x, y := a[i], b[i]
		var z float64
		switch n.op {
		case '+':
			z = x + y
		case '-':
			z = x - y
		case '*':
			z = x * y
		default:
			if y == 0 && x == x {
				if !n.out.Null[i] && isActive(on, i) {
					n.faults.DivisionByZero++
				}
				n.out.Null[i] = true
				continue
			}
			if n.op == '/' {
				z = x / y
			} else {
				z = math.Mod(x, y)
			}
		}
		if to[i] = z; z-z != 0 && x-x == 0 && y-y == 0 { // not finite, of finite ones
			if !n.out.Null[i] && isActive(on, i) {
				n.faults.Overflow++
			}
			n.out.Null[i] = true
		}
	}
	return in.done(&n.out, 0)
}

// timeDifference is milliseconds between two times.
type timeDifference struct {
	l, r node
	out  result
}

func (n *timeDifference) eval(in *input, on []bool) *column.Vec {
	l, r := n.l.eval(in, on), n.r.eval(in, on)
	n.out.ResetSized(column.Float64Type, in.N)
	nulls(&n.out.Vec, l, r)
	for i := range in.N {
		n.out.Floats[i] = float64(l.Ints[i]-r.Ints[i]) / 1000
	}
	return in.done(&n.out, 0)
}

// timeShift is a time and milliseconds before or after it.
type timeShift struct {
	l, r   node
	minus  bool
	out    result
	faults *Faults
}

func (n *timeShift) eval(in *input, on []bool) *column.Vec {
	l, r := n.l.eval(in, on), n.r.eval(in, on)
	n.out.ResetSized(column.TimestampType, in.N)
	nulls(&n.out.Vec, l, r)
	for i := range in.N {
		d := math.RoundToEven(r.Floats[i] * 1000)
		if n.minus {
			d = -d
		}
		t := float64(l.Ints[i]) + d
		if !n.out.Null[i] && !(t >= column.MinTime && t <= column.MaxTime) {
			if isActive(on, i) {
				n.faults.Overflow++
			}
			n.out.Null[i] = true
			continue
		}
		n.out.Ints[i] = l.Ints[i] + int64(d)
	}
	return in.done(&n.out, 0)
}

// comparison is true where less, equal or greater is wanted.
type comparison struct {
	l, r node
	kind column.Kind
	want [3]bool
	out  result
}

func (n *comparison) eval(in *input, on []bool) *column.Vec {
	l, r := n.l.eval(in, on), n.r.eval(in, on)
	n.out.ResetSized(column.BooleanType, in.N)
	nulls(&n.out.Vec, l, r)
	to := n.out.Bools[:in.N]
	switch n.kind {
	case column.Float:
		for i := range to {
			to[i] = n.want[compareFloats(l.Floats[i], r.Floats[i])+1]
		}
	case column.Boolean:
		for i := range to {
			to[i] = n.want[truth(l.Bools[i])-truth(r.Bools[i])+1]
		}
	case column.Text:
		for i := range to {
			in.check()
			to[i] = n.want[bytes.Compare(l.Text(i), r.Text(i))+1]
		}
	case column.Unknown:
	default:
		a, b := l.Ints[:in.N], r.Ints[:in.N]
		for i := range to {
			to[i] = n.want[cmp.Compare(a[i], b[i])+1]
		}
	}
	return in.done(&n.out, 0)
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compareFloats has NaN equal to itself and above everything, so that there is an order.
func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	return truth(a != a) - truth(b != b)
}

// logic is AND or OR in three values. The right side matters only where the left does not decide.
type logic struct {
	l, r node
	or   bool
	out  result
	on   []bool
}

func (n *logic) eval(in *input, on []bool) *column.Vec {
	l := n.l.eval(in, on)
	n.on = append(n.on[:0], l.Null...)
	for i := range n.on {
		n.on[i] = isActive(on, i) && (l.Null[i] || l.Bools[i] != n.or)
	}
	r := n.r.eval(in, n.on)
	n.out.ResetSized(column.BooleanType, in.N)
	for i := range in.N {
		decided := !l.Null[i] && l.Bools[i] == n.or || !r.Null[i] && r.Bools[i] == n.or
		n.out.Bools[i] = decided == n.or
		n.out.Null[i] = !decided && (l.Null[i] || r.Null[i])
	}
	return in.done(&n.out, cap(n.on))
}

type not struct {
	x   node
	out result
}

func (n *not) eval(in *input, on []bool) *column.Vec {
	x := n.x.eval(in, on)
	n.out.ResetSized(column.BooleanType, in.N)
	for i := range in.N {
		n.out.Bools[i], n.out.Null[i] = !x.Bools[i], x.Null[i]
	}
	return in.done(&n.out, 0)
}

type isNull struct {
	x   node
	not bool
	out result
}

func (n *isNull) eval(in *input, on []bool) *column.Vec {
	x := n.x.eval(in, on)
	n.out.ResetSized(column.BooleanType, in.N)
	for i := range in.N {
		n.out.Bools[i] = x.Null[i] != n.not
	}
	return in.done(&n.out, 0)
}

// in is true where one of the comparisons is, and NULL where none is but one is NULL.
type in struct {
	equal []node
	not   bool
	out   result
}

func (n *in) eval(b *input, on []bool) *column.Vec {
	n.out.ResetSized(column.BooleanType, b.N)
	clear(n.out.Bools)
	for _, e := range n.equal {
		v := e.eval(b, on)
		for i := range b.N {
			switch {
			case v.Null[i]:
				n.out.Null[i] = n.out.Null[i] || !n.out.Bools[i]
			case v.Bools[i]:
				n.out.Bools[i], n.out.Null[i] = true, false
			}
		}
	}
	if n.not {
		for i := range n.out.Bools {
			n.out.Bools[i] = !n.out.Bools[i]
		}
	}
	return b.done(&n.out, 0)
}

// caseOf takes of each row the result of the first test that is true; the last result is that of none.
type caseOf struct {
	tests, results []node
	t              column.Type
	open           []bool // rows for which no test was true yet
	chosen         []int32
	on             []bool
	values         []*column.Vec
	out            result
	faults         *Faults
}

func (n *caseOf) eval(in *input, on []bool) *column.Vec {
	n.open, n.chosen, n.values = n.open[:0], n.chosen[:0], n.values[:0]
	for i := range in.N {
		n.open, n.chosen = append(n.open, isActive(on, i)), append(n.chosen, int32(len(n.tests)))
	}
	for t, test := range n.tests {
		v := test.eval(in, n.open)
		for i := range in.N {
			if n.open[i] && !v.Null[i] && v.Bools[i] {
				n.open[i], n.chosen[i] = false, int32(t)
			}
		}
	}
	for r, result := range n.results {
		n.on = n.on[:0]
		for i := range in.N {
			n.on = append(n.on, n.chosen[i] == int32(r) && isActive(on, i))
		}
		n.values = append(n.values, result.eval(in, n.on))
	}
	n.out.Reset(n.t)
	for i := range in.N {
		v := n.values[n.chosen[i]]
		if n.t.Kind == column.Text && !v.Null[i] {
			in.room(&n.out, len(v.Text(i)))
		}
		if n.out.AppendFrom(v, i); n.out.Null[i] && !v.Null[i] && isActive(on, i) {
			n.faults.Overflow++ // a text for which there is no room
		}
	}
	return in.done(&n.out, cap(n.open)+cap(n.on)+4*cap(n.chosen))
}

// like compares with a pattern of % and _.
type like struct {
	l, r   node
	out    result
	faults *Faults
}

func (n *like) eval(in *input, on []bool) *column.Vec {
	l, r := n.l.eval(in, on), n.r.eval(in, on)
	n.out.ResetSized(column.BooleanType, in.N)
	nulls(&n.out.Vec, l, r)
	for i := range in.N {
		if n.out.Bools[i] = false; n.out.Null[i] || !isActive(on, i) {
			continue
		}
		in.check()
		var known bool
		if n.out.Bools[i], known = matches(l.Text(i), r.Text(i), in.check); !known {
			n.out.Null[i] = true
			n.faults.Overflow++
		}
	}
	return in.done(&n.out, 0)
}

// maxSteps is how far two texts are compared, which takes about a tenth of a second: two of 1 MiB that repeat
// themselves would take half an hour. After each checkSteps of them it is asked whether the query has to end.
const (
	maxSteps   = 1 << 26
	checkSteps = 1 << 20
)

// matches goes back to the last % only, so that its steps are at most the product of the lengths; it is not known after
// maxSteps. _ is one character.
func matches(s, pattern []byte, check func()) (does, known bool) {
	i, j, star, from := 0, 0, -1, 0
	for steps := 0; i < len(s); steps++ {
		if steps%checkSteps == checkSteps-1 {
			check()
		}
		switch {
		case steps == maxSteps:
			return false, false
		case j < len(pattern) && pattern[j] == '%':
			star, from = j, i
			j++
		case j < len(pattern) && pattern[j] == '_':
			i++
			for i < len(s) && s[i]&0xc0 == 0x80 {
				i++
			}
			j++
		case j+1 < len(pattern) && pattern[j] == '\\' && pattern[j+1] == s[i]:
			i, j = i+1, j+2
		case j < len(pattern) && pattern[j] != '\\' && pattern[j] == s[i]:
			i, j = i+1, j+1
		case star >= 0:
			from++
			i, j = from, star+1
		default:
			return false, true
		}
	}
	for j < len(pattern) && pattern[j] == '%' {
		j++
	}
	return j == len(pattern), true
}
