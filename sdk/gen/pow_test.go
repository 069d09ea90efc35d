package gen

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestPowIsCloseToTheTrueValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(1e-19, 1e19).Draw(t, "x")
		y := rapid.Float64Range(-4, 4).Draw(t, "y")
		got, want := pow(x, y), math.Pow(x, y)
		// The error of y·ln x is magnified by its size.
		if math.Abs(got-want) > 4e-16*want*(2+math.Abs(y*math.Log(x))) {
			t.Fatalf("%v^%v is %v, expected %v", x, y, got, want)
		}
	})
}

// TestKnownPowers pins the bits, which the SDKs of other languages compute too.
func TestKnownPowers(t *testing.T) {
	for _, c := range []struct {
		x, y float64
		bits uint64
	}{{1, 5, 0x3ff0000000000000}, {7, 0, 0x3ff0000000000000}, {2, -0.99, 0x3fe01c7d6c404f0c},
		{65, -0.99, 0x3f906ce6777a3b4a},
		{1e6, -0.5, 0x3f50624dd2f1a9fd}, {8.0 / 9, 1.3, 0x3feb74f8371b3546}, {1e18, -100, 0}} {
		if got := math.Float64bits(pow(c.x, c.y)); got != c.bits {
			t.Errorf("%v^%v has the bits %#x, expected %#x", c.x, c.y, got, c.bits)
		}
	}
}
