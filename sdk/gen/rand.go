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

// Letters fills b with the letters a–p and A–P, five random bits each.
func (r *Rand) Letters(b []byte) {
	// Uint64 written out, with its state in variables: where guests run, the call
	// costs more than the number.
	s0, s1, s2, s3 := r.a, r.b, r.c, r.d
	for len(b) >= 8 {
		x := bits.RotateLeft64(s0+s3, 23) + s0
		t := s1 << 17
		s2 ^= s0
		s3 ^= s1
		s1 ^= s2
		s0 ^= s3
		s2 ^= t
		s3 = bits.RotateLeft64(s3, 45)
		store(b, letters(x))
		b = b[8:]
	}
	r.a, r.b, r.c, r.d = s0, s1, s2, s3
	if len(b) > 0 {
		for x, i := letters(r.Uint64()), 0; i < len(b); i++ {
			b[i] = byte(x)
			x >>= 8
		}
	}
}

// letters turns each byte into a letter: the low four bits choose it, bit 5 its case.
func letters(x uint64) uint64 {
	const each = 0x0101010101010101
	return x&(0x0f*each) + 'a'*each - x&(0x20*each)
}

// store writes eight bytes, least significant first. One store matters: compiled
// to WebAssembly, eight cost eight bounds checks.
func store(b []byte, x uint64) {
	_ = b[7]
	b[0], b[1], b[2], b[3] = byte(x), byte(x>>8), byte(x>>16), byte(x>>24)
	b[4], b[5], b[6], b[7] = byte(x>>32), byte(x>>40), byte(x>>48), byte(x>>56)
}

// Bytes fills b with random bytes.
func (r *Rand) Bytes(b []byte) {
	for len(b) >= 8 {
		store(b, r.Uint64())
		b = b[8:]
	}
	if len(b) > 0 {
		for x, i := r.Uint64(), 0; i < len(b); i++ {
			b[i] = byte(x)
			x >>= 8
		}
	}
}
