package column

import (
	"slices"
	"testing"
)

// TestRoomierKeepsWhatIsThere: whatever the pieces in which values are moved; where there is room nothing is moved.
func TestRoomierKeepsWhatIsThere(t *testing.T) {
	for _, n := range []int{0, 1, 7, growStep - 1, growStep, growStep + 1, 3*growStep + 5} {
		var s []int
		for i := range n {
			s = append(GrowSlice(s, 1), i)
		}
		s = slices.Clip(s)
		for _, more := range []int{0, 1, growStep, 5 * growStep} {
			to := GrowSlice(s, more)
			if !slices.Equal(to, s) || cap(to)-len(to) < more {
				t.Errorf("%d values and %d more: %d with room for %d", n, more, len(to), cap(to))
			}
			if again := GrowSlice(to, more); n > 0 && &again[0] != &to[0] {
				t.Errorf("%d values and %d more are moved though there is room", n, more)
			}
		}
	}
}

// TestReservedVectors take as many values as was said without moving any.
func TestReservedVectors(t *testing.T) {
	for _, kind := range []Type{Int64Type, Float64Type, BooleanType, TextType, TimestampType} {
		var v, from Vec
		v.Reset(kind)
		from.Reset(kind)
		switch kind.Kind {
		case Float:
			from.AppendFloat(1.5)
		case Boolean:
			from.AppendBool(true)
		case Text:
			from.AppendText([]byte("text"))
		default:
			from.AppendInt(7)
		}
		const n = 1000
		v.Reserve(n, 4*n)
		if moved := testing.AllocsPerRun(1, func() {
			v.Reset(kind)
			for range n {
				v.AppendFrom(&from, 0)
			}
		}); moved > 0 || v.Len() != n {
			t.Errorf("%s: %d values, %v allocations", kind, v.Len(), moved)
		}
	}
}
