package aggregate

import (
	"math"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/expression"
)

// TestKeptTextsCount: what MAX and LAST keep of texts is in the size of a table, also of one that was used before.
func TestKeptTextsCount(t *testing.T) {
	for _, name := range []string{"MAX", "LAST"} {
		f, err := New(name, column.TextType, 0)
		if err != nil {
			t.Fatal(err)
		}
		table, keys := NewTable(nil, []Function{f}, &expression.Faults{}), NewKeys()
		for range 2 {
			table.Reset()
			var v column.Vec
			v.Reset(column.TextType)
			v.AppendText([]byte(strings.Repeat("x", 100_000)))
			keys.Encode(nil, 1)
			g := table.Group(keys, nil, 0)
			table.States[0].Add(Rows{Groups: []int32{g}, Arg: &v, Times: []int64{1}})
			if n := table.Size(); n < 100_000 || n > 200_000 {
				t.Errorf("%s of 100 000 bytes takes %d", name, n)
			}
		}
	}
}

// TestQuantilesOfLargeValues: what is above the range is its end, and counted; integers have room.
func TestQuantilesOfLargeValues(t *testing.T) {
	for _, c := range []struct {
		x, want float64
		faults  int64
	}{{9e12, 9e12, 0}, {1e13, 9.22e12, 1}, {-1e300, -9.22e12, 1}, {math.Inf(1), 9.22e12, 1}} {
		faults := &expression.Faults{}
		f, err := New("QUANTILE", column.Float64Type, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		s := f.state(faults)
		s.Grow(1)
		var v, to column.Vec
		v.Reset(column.Float64Type)
		to.Reset(column.Float64Type)
		v.AppendFloat(c.x)
		s.Add(Rows{Groups: []int32{0}, Arg: &v})
		s.Append(&to, 0)
		if got := to.Floats[0]; to.Null[0] || math.Abs(got/c.want-1) > 0.006 || faults.Overflow != c.faults {
			t.Errorf("of %g: %g, %+v", c.x, got, *faults)
		}
	}
	f, err := New("QUANTILE", column.Int64Type, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	faults := &expression.Faults{}
	s := f.state(faults)
	s.Grow(1)
	var v, to column.Vec
	v.Reset(column.Int64Type)
	to.Reset(column.Float64Type)
	v.AppendInt(math.MaxInt64)
	s.Add(Rows{Groups: []int32{0}, Arg: &v})
	s.Append(&to, 0)
	if got := to.Floats[0]; math.Abs(got/math.MaxInt64-1) > 0.006 || faults.Overflow != 0 {
		t.Errorf("of the largest integer: %g, %+v", got, *faults)
	}
}
