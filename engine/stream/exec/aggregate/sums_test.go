package aggregate

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/expression"
)

// deviates is STDDEV of floats, in as many parts as are given, merged into one that is empty.
func deviates(t *testing.T, parts ...[]float64) (v float64, null bool, overflow int64) {
	t.Helper()
	f, err := New("STDDEV", column.Float64Type, 0)
	if err != nil {
		t.Fatal(err)
	}
	faults := &expression.Faults{}
	whole := f.state(faults)
	whole.Grow(1)
	for _, part := range parts {
		s := f.state(faults)
		s.Grow(1)
		var in column.Vec
		in.Reset(column.Float64Type)
		for _, x := range part {
			in.AppendFloat(x)
		}
		s.Add(Rows{Groups: make([]int32, len(part)), Arg: &in})
		whole.Merge(0, s, 0)
	}
	var to column.Vec
	to.Reset(column.Float64Type)
	whole.Append(&to, 0)
	return to.Floats[0], to.Null[0], faults.Overflow
}

// TestDeviationsOfGreatValues: values far from 0 deviate by as much as others; where their squares have no room the
// result is NULL and counted, however they were parted, and infinities are no numbers.
func TestDeviationsOfGreatValues(t *testing.T) {
	for name, c := range map[string]struct {
		parts    [][]float64
		want     float64
		null     bool
		overflow int64
	}{
		"the same":       {[][]float64{{1e200, 1e200}, {1e200}}, 0, false, 0},
		"the greatest":   {[][]float64{{math.MaxFloat64}, {math.MaxFloat64, math.MaxFloat64}}, 0, false, 0},
		"near":           {[][]float64{{1e150, 3e150}, {1e150}, {3e150}}, 2e150 / math.Sqrt(3), false, 0},
		"one part":       {[][]float64{{1e200, -1e200}}, 0, true, 1},
		"two parts":      {[][]float64{{1e200}, {-1e200}}, 0, true, 1},
		"ends":           {[][]float64{{math.MaxFloat64}, {-math.MaxFloat64}, {0}}, 0, true, 1},
		"an infinity":    {[][]float64{{1}, {math.Inf(1), 2}}, math.NaN(), false, 0},
		"no number":      {[][]float64{{1, math.NaN()}, {2}}, math.NaN(), false, 0},
		"one alone":      {[][]float64{{1e200}}, 0, true, 0},
		"an empty part":  {[][]float64{{}, {1, 2}, {}, {3}}, 1, false, 0},
		"small and many": {[][]float64{{1e-200, 1e-200}, {1e-200}}, 0, false, 0},
	} {
		v, null, overflow := deviates(t, c.parts...)
		same := null || v == c.want || math.Abs(v-c.want) <= 1e-12*c.want || math.IsNaN(v) && math.IsNaN(c.want)
		if null != c.null || overflow != c.overflow || !same {
			t.Errorf("%s: %g, NULL %t, %d overflows", name, v, null, overflow)
		}
	}
}

// sums adds floats up, in as many parts as are given: each travels as it would from a node, where wire is set, and all
// are merged.
func sums(t *testing.T, name string, wire bool, parts ...[]float64) (v float64, null bool, overflow int64) {
	t.Helper()
	f, err := New(name, column.Float64Type, 0)
	if err != nil {
		t.Fatal(err)
	}
	faults := &expression.Faults{}
	whole := f.state(faults)
	whole.Grow(1)
	for _, part := range parts {
		s := f.state(faults)
		s.Grow(1)
		var in column.Vec
		in.Reset(column.Float64Type)
		for _, x := range part {
			in.AppendFloat(x)
		}
		s.Add(Rows{Groups: make([]int32, len(part)), Arg: &in})
		if !wire {
			whole.Merge(0, s, 0)
			continue
		}
		w := column.NewWire(s.(portable).appendWire(nil, 0))
		if whole.(portable).mergeWire(0, w); w.Err() != nil || w.Len() > 0 {
			t.Fatalf("%d bytes are left, %v", w.Len(), w.Err())
		}
	}
	var to column.Vec
	to.Reset(column.Float64Type)
	whole.Append(&to, 0)
	return to.Floats[0], to.Null[0], faults.Overflow
}

// TestSumsHaveRoomOnTheWay: only a result without room is NULL and counted, in whatever order and parts values come.
func TestSumsHaveRoomOnTheWay(t *testing.T) {
	const great = math.MaxFloat64
	for name, c := range map[string]struct {
		values   []float64
		sum, avg float64
		overflow int64 // of the sum: an average of values that have room has it too
	}{
		"there and back":     {[]float64{1e308, 1e308, -1e308}, 1e308, 1e308 / 3, 0},
		"back and there":     {[]float64{-1e308, -1e308, 1e308, 1e308, 7}, 7, 1.4, 0},
		"small ones between": {[]float64{great, 1, great, 1e-300, -great, -great, 2}, 3, 3.0 / 7, 0},
		"nothing is left":    {[]float64{1e308, -1e308}, 0, 0, 0},
		"no room":            {[]float64{1e308, 1e308}, math.NaN(), 1e308, 1},
		"no room below":      {[]float64{-great, -great, -1}, math.NaN(), -great / 1.5, 1},
		"the least":          {[]float64{5e-324, 5e-324}, 1e-323, 5e-324, 0},
		"an infinity":        {[]float64{1e308, 1e308, math.Inf(1)}, math.Inf(1), math.Inf(1), 0},
		"both infinities":    {[]float64{math.Inf(-1), 1, math.Inf(1)}, math.NaN(), math.NaN(), 0},
		"no number":          {[]float64{1e308, math.NaN(), 1e308}, math.NaN(), math.NaN(), 0},
		"many": {append(slices.Repeat([]float64{1e308}, 1000), slices.Repeat([]float64{-1e308}, 999)...), 1e308,
			1e308 / 1999, 0},
		"what rounding lost": {[]float64{1e16, 1, -1e16, 1e300, 1, -1e300}, 2, 1.0 / 3, 0},
	} {
		var apart [][]float64
		for _, v := range c.values {
			apart = append(apart, []float64{v})
		}
		for _, parts := range [][][]float64{{c.values}, apart, {{}, c.values[:1], c.values[1:], {}}} {
			for _, wire := range []bool{false, true} {
				v, null, overflow := sums(t, "SUM", wire, parts...)
				if overflow != c.overflow || null != (c.overflow == 1) || !null && !near(v, c.sum) {
					t.Errorf("SUM, %s: %g, NULL %t, %d overflows, in %d parts", name, v, null, overflow, len(parts))
				}
				if v, null, overflow = sums(t, "AVG", wire, parts...); null || overflow > 0 || !near(v, c.avg) {
					t.Errorf("AVG, %s: %g, NULL %t, %d overflows, in %d parts", name, v, null, overflow, len(parts))
				}
			}
		}
	}
}

func near(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-15*math.Abs(b)
}

// before is a sum of floats of the version before, which had no great parts.
type before struct {
	compensatedSum
	n        int64
	infinite bool
}

func (b *before) add(x float64) {
	b.compensatedSum.add(x)
	b.n++
	b.infinite = b.infinite || x-x != 0
}

func (b *before) appendWire(to []byte) []byte {
	return appendBool(binary.AppendVarint(appendFloat(appendFloat(to, b.sum), b.lost), b.n), b.infinite)
}

func (b *before) mergeWire(w *column.Wire) {
	b.merge(compensatedSum{w.Float(), w.Float()})
	b.n += w.Varint()
	b.infinite = w.Byte() == 1 || b.infinite
}

// null reports whether the sum has no room.
func (b *before) null() bool { v := b.value(); return v-v != 0 && !b.infinite }

// TestSumsOfTwoVersions: a server of the version before reads of a node what comes to the same sum, or to NULL where
// the node's part has no room, and what follows it; and what such a node sends is read here as it was meant.
func TestSumsOfTwoVersions(t *testing.T) {
	f, err := New("SUM", column.Float64Type, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		parts [][]float64
		// sum is that of the version before, NaN where it is NULL, and now that of this one from parts of that one.
		sum, now float64
	}{
		"small":              {[][]float64{{1, 2}, {3}}, 6, 6},
		"great":              {[][]float64{{1e300, 1, 2e300}, {1e290}}, 3.0000000001e300, 3.0000000001e300},
		"great, then none":   {[][]float64{{1e300, 5}, {-1e300}}, 5, 5},
		"no room on the way": {[][]float64{{1e308, 1e308}, {-1e308}}, math.NaN(), math.NaN()},
		"room in each":       {[][]float64{{1e308}, {1e308, 0}, {-1e308}}, math.NaN(), 1e308},
		"an infinity":        {[][]float64{{1e308, 1e308, math.Inf(1)}, {1}}, math.Inf(1), math.Inf(1)},
		"no number":          {[][]float64{{math.NaN(), 1e300}, {1}}, math.NaN(), math.NaN()},
	} {
		var old before
		whole := f.state(&expression.Faults{}).(*sumFloat)
		whole.Grow(1)
		for _, part := range c.parts {
			s, of := f.state(&expression.Faults{}).(*sumFloat), &before{}
			s.Grow(1)
			for _, x := range part {
				s.sums[0].add(x)
				of.add(x)
			}
			w := column.NewWire(binary.AppendVarint(s.appendWire(nil, 0), 7))
			old.mergeWire(w)
			if next := w.Varint(); next != 7 || w.Len() > 0 || w.Err() != nil {
				t.Errorf("%s: what follows the sum is %d, %d bytes are left, %v", name, next, w.Len(), w.Err())
			}
			w = column.NewWire(of.appendWire(nil))
			if whole.mergeWire(0, w); w.Len() > 0 || w.Err() != nil {
				t.Errorf("%s: %d bytes are left, %v", name, w.Len(), w.Err())
			}
		}
		v := old.value()
		if old.null() {
			v = math.NaN()
		}
		if !near(v, c.sum) {
			t.Errorf("%s: the version before reads %g", name, v)
		}
		if v := whole.sums[0].value(1); !near(v, c.now) && !(math.IsNaN(c.now) && v-v != 0) {
			t.Errorf("%s: of the version before %g is read", name, v)
		}
	}
}
