package main

import (
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
)

// alphabet is the letters and digits that clause 4.3.2.2 asks for. Two of the 64
// places are taken twice, so that six random bits choose one.
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789Aa"

// alphanumeric fills s with random letters and digits.
func alphanumeric(s []byte, r *gen.Rand) {
	for len(s) >= 10 {
		x := r.Uint64()
		for i := range 10 {
			s[i] = alphabet[x&63]
			x >>= 6
		}
		s = s[10:]
	}
	x := r.Uint64()
	for i := range s {
		s[i] = alphabet[x&63]
		x >>= 6
	}
}

// aString writes a random a-string of lo to hi characters.
func aString(b *sdk.Batch, r *gen.Rand, lo, hi int64) {
	alphanumeric(b.TextSpace(int(r.Between(lo, hi))), r)
}

// digits fills s with the last digits of n.
func digits(s []byte, n uint64) {
	for i := len(s) - 1; i >= 0; i-- {
		q := n / 10
		s[i] = byte('0' + n - q*10)
		n = q
	}
}

// fixed writes n as a number with scale digits after the point. n is not negative.
func fixed(b *sdk.Batch, n int64, scale int) {
	size := scale + 2
	for x := pow10[scale] * 10; n >= x; x *= 10 {
		size++
	}
	s := b.TextSpace(size)
	digits(s[:size-scale-1], uint64(n/pow10[scale]))
	s[size-scale-1] = '.'
	digits(s[size-scale:], uint64(n%pow10[scale]))
}

var pow10 = [...]int64{1, 10, 100, 1_000, 10_000}

var syllables = [...]string{"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}

// lastName writes the name of a number below 1000 (clause 4.3.2.3).
func lastName(b *sdk.Batch, n int64) {
	x, y, z := syllables[n/100%10], syllables[n/10%10], syllables[n%10]
	s := b.TextSpace(len(x) + len(y) + len(z))
	copy(s, x)
	copy(s[len(x):], y)
	copy(s[len(x)+len(y):], z)
}

// nuRand is the non-uniform random number of clause 2.1.6 in [x, y].
func nuRand(r *gen.Rand, a, c, x, y int64) int64 {
	return ((r.Int64n(a+1)|r.Between(x, y))+c)%(y-x+1) + x
}

// loadC is C of the last names when tables are loaded. Runs use another one,
// whose distance clause 2.1.6.1 prescribes.
const loadC = 100

// constants are the Cs of a run; all its streams have the same.
type constants struct{ lastC, customerC, itemC int64 }

func newConstants(seed int64) constants {
	r := gen.NewRand(seed, -1)
	// The distance lies in 65 … 119 and is neither 96 nor 112.
	delta := 65 + r.Int64n(53)
	if delta >= 96 {
		delta++
	}
	if delta >= 112 {
		delta++
	}
	return constants{lastC: loadC + delta, customerC: r.Int64n(1024), itemC: r.Int64n(8192)}
}

// names is how many last names are in use: 1000, or one for each customer.
func (p *params) names() int64 { return min(1000, p.customers) }

// permutation shuffles [0, n) by a key, without memory: a Feistel network over
// the next power of 4, walked until it lands inside.
type permutation struct {
	n, mask uint64
	half    uint
}

func newPermutation(n int64) permutation {
	p := permutation{n: uint64(n), half: 1, mask: 1}
	for 1<<(2*p.half) < p.n {
		p.half++
		p.mask = 1<<p.half - 1
	}
	return p
}

func (p *permutation) at(key uint64, i int64) int64 {
	x := uint64(i)
	for {
		left, right := x>>p.half, x&p.mask
		for round := range uint64(4) {
			left, right = right, left^gen.Mix(right+key+round<<32)&p.mask
		}
		if x = left<<p.half | right; x < p.n {
			return int64(x)
		}
	}
}
