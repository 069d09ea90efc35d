package gen

import "math"

// The constants of pow: ln 2, split so that a whole multiple of the first part is exact.
const (
	ln2High = 0x1.62e42feep-1
	ln2Low  = 0x1.a39ef35793c76p-33
	log2E   = 0x1.71547652b82fep+0
)

// pow returns x^y for x > 0, within a few parts in 10^15 for results near 1.
// Unlike math.Pow it is made of sums, products and quotients alone, each rounded
// by itself, so that every processor and every SDK computes the same bits: what a
// generator draws may depend on the last of them. The conversions to float64
// keep the compiler from fusing a product with a sum. The series are written
// out: their quotients are constants then, and a skewed draw takes half the time.
func pow(x, y float64) float64 {
	switch {
	case y == 0 || x == 1:
		return 1
	case !(x > 0):
		return 0
	}
	return exp(float64(y * ln(x)))
}

// ln returns the natural logarithm of a normal x > 0: x = m·2^e with m near 1,
// and ln m = 2·artanh((m-1)/(m+1)) by its series.
func ln(x float64) float64 {
	b := math.Float64bits(x)
	e := int64(b>>52) - 1023
	m := math.Float64frombits(b&(1<<52-1) | 1023<<52)
	if m > 0x1.6a09e667f3bcdp+0 {
		m *= 0.5
		e++
	}
	s := float64(m-1) / float64(m+1)
	z := float64(s * s)
	sum := 1.0 / 23
	sum = float64(sum*z) + 1.0/21
	sum = float64(sum*z) + 1.0/19
	sum = float64(sum*z) + 1.0/17
	sum = float64(sum*z) + 1.0/15
	sum = float64(sum*z) + 1.0/13
	sum = float64(sum*z) + 1.0/11
	sum = float64(sum*z) + 1.0/9
	sum = float64(sum*z) + 1.0/7
	sum = float64(sum*z) + 1.0/5
	sum = float64(sum*z) + 1.0/3
	sum = float64(sum*z) + 1
	f := float64(e)
	return float64(f*ln2High) + float64(float64(f*ln2Low)+float64(float64(2*s)*sum))
}

// exp returns e^t; below 2^-1000 that is 0, above 2^1000 it is 2^1000.
func exp(t float64) float64 {
	n := float64(t * log2E)
	switch {
	case !(n > -1000):
		return 0
	case n > 1000:
		return 0x1p1000
	}
	k := int64(n + 2048.5) // counted from -2048, so that cutting off rounds to the nearest
	f := float64(k - 2048)
	r := float64(t-float64(f*ln2High)) - float64(f*ln2Low)
	sum := 1.0 / 87178291200
	sum = float64(sum*r) + 1.0/6227020800
	sum = float64(sum*r) + 1.0/479001600
	sum = float64(sum*r) + 1.0/39916800
	sum = float64(sum*r) + 1.0/3628800
	sum = float64(sum*r) + 1.0/362880
	sum = float64(sum*r) + 1.0/40320
	sum = float64(sum*r) + 1.0/5040
	sum = float64(sum*r) + 1.0/720
	sum = float64(sum*r) + 1.0/120
	sum = float64(sum*r) + 1.0/24
	sum = float64(sum*r) + 1.0/6
	sum = float64(sum*r) + 1.0/2
	sum = float64(sum*r) + 1
	sum = float64(sum*r) + 1
	return float64(sum * math.Float64frombits(uint64(k-2048+1023)<<52))
}
