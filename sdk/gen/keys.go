package gen

// Scramble maps ranks onto [0, n) one to one, so that neighbouring ranks lie far
// apart: a skewed workload then touches the whole table instead of its first pages.
type Scramble struct {
	n, step, offset uint64
}

// NewScramble returns a permutation of [0, n).
func NewScramble(n int64) Scramble {
	s := Scramble{n: uint64(max(n, 1))}
	if s.n < 1<<31 {
		// The golden section of n spreads consecutive ranks most evenly.
		s.step = uint64(float64(s.n)*0.6180339887498949) | 1
		for gcd(s.step, s.n) != 1 {
			s.step += 2
		}
		s.step %= s.n
		if s.n == 1 {
			s.step = 0
		}
		s.offset = Mix(s.n) % s.n
	}
	return s
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// At returns the place of a rank in [0, n). From 2^31 on places may coincide.
func (s *Scramble) At(rank int64) int64 {
	if s.n < 1<<31 {
		return int64((uint64(rank)*s.step + s.offset) % s.n)
	}
	return int64(Mix(uint64(rank)) % s.n)
}

// Sequential counts 0 … n-1 and starts again.
type Sequential struct {
	next, n int64
}

// NewSequential starts at the given place of [0, n).
func NewSequential(n, start int64) *Sequential {
	n = max(n, 1)
	return &Sequential{next: start % n, n: n}
}

// Next returns the next number.
func (s *Sequential) Next() int64 {
	v := s.next
	if s.next++; s.next >= s.n {
		s.next = 0
	}
	return v
}
