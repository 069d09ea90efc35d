package expression

import (
	"math"
	"strconv"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// cast makes values of one type from those of another; what has no room in it is NULL, and counted.
type cast struct {
	x        node
	from, to column.Type
	out      result
	scratch  []byte
	faults   *Faults
}

func (n *cast) eval(in *input, on []bool) *column.Vec {
	x := n.x.eval(in, on)
	if n.from.Kind == column.Int && n.to.Kind == column.Float && n.to.Bits == 64 {
		n.out.ResetSized(n.to, in.N)
		for i, v := range x.Ints[:in.N] {
			n.out.Floats[i], n.out.Null[i] = float64(v), x.Null[i]
		}
		return in.done(&n.out, 0)
	}
	n.out.Reset(n.to)
	for i := range in.N {
		if x.Null[i] {
			n.out.AppendNull()
			continue
		}
		in.check()
		if !n.one(in, x, i) {
			n.out.AppendNull()
			if isActive(on, i) {
				n.faults.Cast++
			}
		}
	}
	return in.done(&n.out, 0)
}

// one appends row i, or nothing and returns false.
func (n *cast) one(in *input, x *column.Vec, i int) bool {
	switch {
	case n.to.Kind == column.Text:
		n.scratch = x.AppendValue(n.scratch[:0], i)
		in.room(&n.out, len(n.scratch))
		n.out.AppendText(n.scratch)
		return true
	case n.from.Kind == column.Text:
		return n.out.AppendParsed(x.Text(i)) == nil
	case n.from.Kind == column.Unknown:
		n.out.AppendNull()
		return true
	case n.to.Kind == column.Float:
		return n.float(x, i)
	case n.from.Kind == column.Float && n.to.Kind == column.Decimal:
		return n.decimal(x.Floats[i])
	case n.to.Kind == column.Boolean:
		n.out.AppendBool(n.from.Kind == column.Boolean && x.Bools[i] || n.from.Kind == column.Int && x.Ints[i] != 0)
		return true
	}
	v, ok := n.whole(x, i)
	if ok = ok && n.to.Holds(v); ok {
		n.out.AppendInt(v)
	}
	return ok
}

func (n *cast) float(x *column.Vec, i int) bool {
	var f float64
	switch n.from.Kind {
	case column.Float:
		f = x.Floats[i]
	case column.Decimal:
		if v := x.Ints[i]; v >= -1<<53 && v <= 1<<53 {
			f = float64(v) / float64(column.Pow10[n.from.Scale])
		} else { // which is no float itself, and would be rounded twice
			n.scratch = x.AppendValue(n.scratch[:0], i)
			f, _ = strconv.ParseFloat(string(n.scratch), 64)
		}
	default:
		f = float64(x.Ints[i])
	}
	if n.to.Bits == 32 {
		g := float64(float32(f))
		if math.IsInf(g, 0) && !math.IsInf(f, 0) {
			return false
		}
		f = g
	}
	n.out.AppendFloat(f)
	return true
}

// decimal rounds a float half away from zero, by the digits that it is shown with: 1.005 becomes 1.01, though the float
// is a little less than that. Nearly all are as far from a half as no digit behind decides.
func (n *cast) decimal(f float64) bool {
	scaled := f * float64(column.Pow10[n.to.Scale])
	near := math.Ldexp(math.Abs(scaled), 4-52)
	if n.from.Bits == 32 {
		near = math.Ldexp(math.Abs(scaled), 4-23)
	}
	if _, part := math.Modf(math.Abs(scaled)); near < 0.01 && math.Abs(part-0.5) > near {
		v := int64(math.Round(scaled))
		if !n.to.Holds(v) {
			return false
		}
		n.out.AppendInt(v)
		return true
	}
	if f-f != 0 {
		return false
	}
	n.scratch = strconv.AppendFloat(n.scratch[:0], f, 'e', -1, int(n.from.Bits))
	return n.out.AppendParsed(n.scratch) == nil
}

// whole is the value of an integer, decimal or time.
func (n *cast) whole(x *column.Vec, i int) (int64, bool) {
	if n.from.Kind == column.Boolean {
		return int64(truth(x.Bools[i])), true
	}
	if n.from.Kind == column.Float {
		f := math.RoundToEven(x.Floats[i])
		if !(f >= -(1<<63) && f < 1<<63) {
			return 0, false
		}
		return int64(f), true
	}
	v := x.Ints[i]
	switch {
	case n.from.Kind == column.Timestamp && n.to.Kind == column.Int:
		ms := v / 1000
		if v%1000 < 0 {
			ms--
		}
		return ms, true
	case n.from.Kind == column.Int && n.to.Kind == column.Timestamp:
		return multiply(v, 1000)
	case n.to.Kind == column.Timestamp || n.from.Kind == column.Timestamp:
		return v, true
	}
	return column.Rescale(v, n.from.Scale, n.to.Scale)
}
