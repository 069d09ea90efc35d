package series

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestNumbersComeOutAsTheyWentIn: to the bit, whatever they are.
func TestNumbersComeOutAsTheyWentIn(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 2))
	kinds := []func(before float64) float64{
		func(before float64) float64 { return before },
		func(before float64) float64 { return before + float64(r.IntN(2)) },
		func(before float64) float64 { return before + float64(r.IntN(400)) },
		func(before float64) float64 { return before + float64(r.IntN(1<<24)) },
		func(float64) float64 { return float64(r.IntN(1<<16)) - 1<<15 },
		func(float64) float64 { return math.Copysign(0, float64(r.IntN(2))-1) },
		func(float64) float64 { return r.Float64() },
		func(float64) float64 { return math.Float64frombits(r.Uint64()) },
		func(before float64) float64 { return before + float64(r.Uint64()>>40) },
		func(float64) float64 { return 1<<53 + float64(2*r.IntN(100)) },
		func(float64) float64 { return -math.MaxFloat64 * float64(r.IntN(2)) },
		func(float64) float64 { return math.Inf(1 - 2*r.IntN(2)) },
		func(float64) float64 { return math.NaN() },
		func(float64) float64 { return stale },
	}
	widths := map[uint8]bool{}
	for _, n := range []int{0, 1, 2, perBlock - 1, perBlock, perBlock + 1, 5*perBlock + 7} {
		for range 200 {
			values := make([]float64, n)
			kind, before := kinds[r.IntN(len(kinds))], float64(r.IntN(1000))
			for i := range values {
				if r.IntN(perBlock) == 0 {
					kind = kinds[r.IntN(len(kinds))]
				}
				before = kind(before)
				values[i] = before
			}
			p := pack(values)
			if p.n != n {
				t.Fatalf("%d numbers are %d", n, p.n)
			}
			for i, v := range values {
				if got := p.at(i); math.Float64bits(got) != math.Float64bits(v) {
					t.Fatalf("number %d is %v (%x), not %v (%x)", i, got, math.Float64bits(got), v, math.Float64bits(v))
				}
			}
			for _, b := range p.blocks {
				widths[b.width] = true
			}
		}
	}
	for _, w := range []uint8{0, 1, 2, 4, 8} {
		if !widths[w] {
			t.Errorf("none was kept in %d bytes", w)
		}
	}
}

// TestCountersTakeLittleMemory: an hour of one that counts a hundred a second, and of one that counts nothing.
func TestCountersTakeLittleMemory(t *testing.T) {
	values := make([]float64, 3601)
	if p := pack(values); p.bytes() > 600 {
		t.Errorf("an hour of nothing takes %d bytes", p.bytes())
	}
	for i := range values {
		values[i] = float64(100 * i)
	}
	if p := pack(values); p.bytes() > 3*3600 {
		t.Errorf("an hour of a hundred a second takes %d bytes", p.bytes())
	}
}
