package aggregate

import (
	"math"
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
