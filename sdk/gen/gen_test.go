package gen

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestInt64nStaysInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, math.MaxInt64).Draw(t, "n")
		r := NewRand(rapid.Int64().Draw(t, "seed"), rapid.Int().Draw(t, "stream"))
		for range 50 {
			if v := r.Int64n(n); v < 0 || v >= n {
				t.Fatalf("%d is not in [0, %d)", v, n)
			}
		}
	})
}

func TestInt64nIsUniform(t *testing.T) {
	const n, draws = 10, 200_000
	r := NewRand(1, 0)
	var counts [n]int
	for range draws {
		counts[r.Int64n(n)]++
	}
	for v, got := range counts {
		// Five standard deviations.
		if d := math.Abs(float64(got) - draws/n); d > 5*math.Sqrt(draws/n) {
			t.Errorf("%d was drawn %d times, expected about %d", v, got, draws/n)
		}
	}
}

func TestStreamsAreRepeatableAndDiffer(t *testing.T) {
	a, b, c := NewRand(42, 1), NewRand(42, 1), NewRand(42, 2)
	same := 0
	for range 1000 {
		x := a.Uint64()
		if x != b.Uint64() {
			t.Fatal("the same seed and stream gave other numbers")
		}
		if x == c.Uint64() {
			same++
		}
	}
	if same > 0 {
		t.Errorf("%d of 1000 numbers of two streams are equal", same)
	}
}

// TestKnownNumbers pins the stream: a change of it changes every recorded run.
func TestKnownNumbers(t *testing.T) {
	r := NewRand(42, 0)
	want := [...]uint64{7794619869296795162, 9636102945179860311, 1191359932119263091}
	for i, w := range want {
		if got := r.Uint64(); got != w {
			t.Errorf("number %d is %d, expected %d", i, got, w)
		}
	}
}

func TestLetters(t *testing.T) {
	r := NewRand(1, 0)
	for n := range 40 {
		b := make([]byte, n)
		r.Letters(b)
		for _, c := range b {
			if (c < 'a' || c > 'p') && (c < 'A' || c > 'P') {
				t.Fatalf("%q has the letter %q", b, c)
			}
		}
	}
}

// TestZipfFrequencies compares draws with the exact probabilities, by chi-squared.
func TestZipfFrequencies(t *testing.T) {
	for _, c := range []struct {
		n     int64
		theta float64
	}{{1, 0.99}, {2, 0.99}, {10, 0}, {63, 0.5}, {64, 0.99}, {65, 0.99}, {100, 1}, {500, 0.99}, {500, 2}, {5000, 0.7},
		{5000, 1.3}} {
		const draws = 400_000
		z, r := NewZipf(c.n, c.theta), NewRand(7, 0)
		counts := make([]float64, c.n)
		for range draws {
			rank := z.Next(r)
			if rank < 0 || rank >= c.n {
				t.Fatalf("n %d, theta %v: rank %d", c.n, c.theta, rank)
			}
			counts[rank]++
		}
		sum := 0.0
		for i := range counts {
			sum += math.Pow(float64(i+1), -c.theta)
		}
		// Ranks that are expected fewer than 20 times are judged together.
		chi, degrees, restGot, restWant := 0.0, -1.0, 0.0, 0.0
		for i, got := range counts {
			want := draws * math.Pow(float64(i+1), -c.theta) / sum
			if want < 20 {
				restGot, restWant = restGot+got, restWant+want
				continue
			}
			chi += (got - want) * (got - want) / want
			degrees++
		}
		if restWant > 0 {
			chi += (restGot - restWant) * (restGot - restWant) / restWant
			degrees++
		}
		if limit := degrees + 6*math.Sqrt(2*degrees+1) + 6; chi > limit {
			t.Errorf("n %d, theta %v: chi-squared %.1f over %.0f degrees, limit %.1f", c.n, c.theta, chi, degrees, limit)
		}
	}
}

func TestZipfHugeRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, math.MaxInt64).Draw(t, "n")
		z := NewZipf(n, rapid.Float64Range(0, 5).Draw(t, "theta"))
		r := NewRand(1, 0)
		for range 100 {
			if rank := z.Next(r); rank < 0 || rank >= n {
				t.Fatalf("rank %d of %d", rank, n)
			}
		}
	})
}

func TestScrambleIsOneToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 3000).Draw(t, "n")
		s := NewScramble(n)
		seen := make([]bool, n)
		for rank := range n {
			at := s.At(rank)
			if at < 0 || at >= n || seen[at] {
				t.Fatalf("rank %d of %d is at %d, which is taken or none", rank, n, at)
			}
			seen[at] = true
		}
	})
}

func TestScrambleSpreads(t *testing.T) {
	const n = 1_000_000
	s := NewScramble(n)
	// The ten hottest ranks lie at least 2 % of the table apart from one another.
	for i := range int64(10) {
		for j := range i {
			if d := s.At(i) - s.At(j); d < n/50 && d > -n/50 {
				t.Errorf("ranks %d and %d are %d places apart", j, i, d)
			}
		}
	}
	big := NewScramble(1 << 40)
	for rank := range int64(1000) {
		if at := big.At(rank); at < 0 || at >= 1<<40 {
			t.Fatalf("rank %d is at %d", rank, at)
		}
	}
}

func TestSequential(t *testing.T) {
	s := NewSequential(5, 3)
	for i, want := range []int64{3, 4, 0, 1, 2, 3} {
		if got := s.Next(); got != want {
			t.Errorf("number %d is %d, expected %d", i, got, want)
		}
	}
}

func BenchmarkZipf(b *testing.B) {
	z, r := NewZipf(1_000_000, 0.99), NewRand(1, 0)
	b.ReportAllocs()
	for range b.N {
		z.Next(r)
	}
}

// TestLettersAreOfTheSameNumbers: Letters writes the generator out, and has to stay
// what Uint64 gives.
func TestLettersAreOfTheSameNumbers(t *testing.T) {
	for n := range 40 {
		r, same := NewRand(9, n), NewRand(9, n)
		b := make([]byte, n)
		r.Letters(b)
		for i := range b {
			if i%8 == 0 {
				x := same.Uint64()
				for j := i; j < min(i+8, n); j++ {
					c := byte(x >> (8 * (j - i)))
					if want := 'a' + c&0x0f - c&0x20; b[j] != want {
						t.Fatalf("letter %d of %d is %q, expected %q", j, n, b[j], want)
					}
				}
			}
		}
		if r.Uint64() != same.Uint64() {
			t.Fatalf("after %d letters the streams part", n)
		}
	}
}
