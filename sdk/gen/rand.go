// Package gen holds what workload generators need and a plugin cannot get from
// outside: a deterministic random source and the usual key distributions. Nothing
// here allocates after construction, and nothing depends on time or platform.
package gen

import "math/bits"

// Rand is xoshiro256++, seeded through splitmix64. Not safe for concurrent use.
type Rand struct {
	a, b, c, d uint64
}

// NewRand returns a source that depends on seed and stream only; streams of one seed are independent.
func NewRand(seed int64, stream int) *Rand {
	r := new(Rand)
	r.Seed(seed, int64(stream))
	return r
}

// Seed puts r where NewRand starts.
func (r *Rand) Seed(seed, stream int64) {
	x := Mix(uint64(seed)) ^ Mix(uint64(stream)+0x632be59bd9b4e019)
	for _, word := range [...]*uint64{&r.a, &r.b, &r.c, &r.d} {
		x += 0x9e3779b97f4a7c15
		*word = finish(x)
	}
}

func finish(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Mix is a bijection of 64-bit numbers that spreads near values apart.
func Mix(x uint64) uint64 { return finish(x + 0x9e3779b97f4a7c15) }

// Uint64 returns 64 random bits.
func (r *Rand) Uint64() uint64 {
	out := bits.RotateLeft64(r.a+r.d, 23) + r.a
	t := r.b << 17
	r.c ^= r.a
	r.d ^= r.b
	r.b ^= r.c
	r.a ^= r.d
	r.c ^= t
	r.d = bits.RotateLeft64(r.d, 45)
	return out
}

// Float64 returns a number in [0, 1).
func (r *Rand) Float64() float64 { return float64(r.Uint64()>>11) * (1.0 / (1 << 53)) }

// Int64n returns a number in [0, n), without bias. n must be positive.
func (r *Rand) Int64n(n int64) int64 {
	if n <= 0 {
		return 0
	}
	m := uint64(n)
	if m <= 1<<32 {
		for {
			x := (r.Uint64() >> 32) * m
			if low := uint64(uint32(x)); low >= m || low >= (1<<32)%m {
				return int64(x >> 32)
			}
		}
	}
	hi, lo := bits.Mul64(r.Uint64(), m)
	if lo < m {
		for threshold := -m % m; lo < threshold; {
			hi, lo = bits.Mul64(r.Uint64(), m)
		}
	}
	return int64(hi)
}

// Between returns a number in [lo, hi].
func (r *Rand) Between(lo, hi int64) int64 {
	if hi <= lo {
		return lo
	}
	return lo + r.Int64n(hi-lo+1)
}

const letters = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_"

// Letters fills b with letters, digits, '-' and '_'.
func (r *Rand) Letters(b []byte) {
	i := 0
	for ; i+10 <= len(b); i += 10 {
		x := r.Uint64()
		s := b[i : i+10 : i+10]
		for j := range s {
			s[j] = letters[x&63]
			x >>= 6
		}
	}
	for x := r.Uint64(); i < len(b); i++ {
		b[i] = letters[x&63]
		x >>= 6
	}
}

// Bytes fills b with random bytes.
func (r *Rand) Bytes(b []byte) {
	for i := 0; i < len(b); i += 8 {
		x := r.Uint64()
		for j := i; j < len(b) && j < i+8; j++ {
			b[j] = byte(x)
			x >>= 8
		}
	}
}
