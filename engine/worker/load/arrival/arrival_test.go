package arrival

import (
	"math"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
)

// arrivals are the due times of all workers before the end, in order.
func arrivals(of int, end time.Duration, make func(Share) *Schedule) []time.Duration {
	var all []time.Duration
	for i := range of {
		s := make(Share{i, of})
		for {
			due, ok := s.Next()
			if !ok || due >= end {
				break
			}
			all = append(all, due)
			s.Take()
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	return all
}

func TestConstantScheduleIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.OneOf(rapid.Float64Range(0.1, 20_000),
			rapid.Map(rapid.IntRange(1, 20_000), func(n int) float64 { return float64(n) })).Draw(t, "rate")
		of := rapid.IntRange(1, 7).Draw(t, "workers")
		all := arrivals(of, time.Duration(2000/rate*1e9),
			func(s Share) *Schedule { return New(rate, engine.ArrivalConstant, s, 1) })
		if len(all) < 1999 || len(all) > 2001 {
			t.Fatalf("%d arrivals in the time of 2000", len(all))
		}
		for n, due := range all {
			if want := float64(n) / rate * 1e9; math.Abs(float64(due)-want) > 0.51 {
				t.Fatalf("arrival %d of %v/s is due at %d ns, %.1f wanted", n, rate, due, want)
			}
		}
	})
}

func TestConstantScheduleDoesNotDrift(t *testing.T) {
	s := New(30_000, engine.ArrivalConstant, Share{2, 3}, 1)
	s.n, s.x = 1e9, 2+3e9
	// The 3 000 000 003rd arrival of the run, after more than a day.
	if due, _ := s.Next(); due != time.Duration(math.Round(3_000_000_002.0/30_000*1e9)) {
		t.Errorf("due at %v", due)
	}
}

func TestStagesAreIntegratedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type stage struct {
			from, to, length float64
		}
		of := rapid.IntRange(1, 4).Draw(t, "workers")
		level := rapid.Float64Range(1, 500).Draw(t, "start")
		start := level
		begin := rapid.Float64Range(0, 3).Draw(t, "warm-up")
		stages := []stage{{level, level, begin}}
		var ls []Leg
		for range rapid.IntRange(1, 5).Draw(t, "stages") {
			to := rapid.Float64Range(0.5, 500).Draw(t, "level")
			length := time.Duration(rapid.Int64Range(1e6, 5e9).Draw(t, "length"))
			step := rapid.Bool().Draw(t, "step")
			if step {
				level = to
			}
			stages = append(stages, stage{level, to, length.Seconds()})
			ls = append(ls, Leg{Level: to, Length: length, step: step})
			level = to
		}
		total, area := 0.0, 0.0
		for _, s := range stages {
			total += s.length
			area += (s.from + s.to) / 2 * s.length
		}
		all := arrivals(of, time.Duration(total*1e9), func(share Share) *Schedule {
			s := New(start, engine.ArrivalConstant, share, 1)
			s.curve.Change(time.Duration(begin*1e9), ls)
			return s
		})
		if want := math.Ceil(area); math.Abs(float64(len(all))-want) > 1 {
			t.Fatalf("%d arrivals under an area of %.2f", len(all), area)
		}
		// The n-th arrival is due when the area is n.
		for n, due := range all {
			at, sum := due.Seconds(), 0.0
			for _, s := range stages {
				if at <= 0 {
					break
				}
				if s.length == 0 {
					continue
				}
				part := min(at, s.length)
				sum += s.from*part + (s.to-s.from)/(2*s.length)*part*part
				at -= part
			}
			if math.Abs(sum-float64(n)) > 1e-4 {
				t.Fatalf("arrival %d is due at %v, where the area is %v", n, due, sum)
			}
		}
	})
}

func TestChangeKeepsWhatWasDue(t *testing.T) {
	s := New(10, engine.ArrivalConstant, Share{0, 1}, 1)
	for range 5 {
		s.Take() // four tenths of a second are over
	}
	s.curve.Change(450*time.Millisecond, []Leg{{Level: 100}})
	// Half an arrival was due between 450 ms and 500 ms; the rest comes ten times as fast.
	if due, ok := s.Next(); !ok || due != 455*time.Millisecond {
		t.Errorf("the next is due at %v", due)
	}
	if r := s.Rate(time.Second); r != 100 {
		t.Errorf("rate %v", r)
	}
	if r := s.Rate(time.Millisecond); r != 10 {
		t.Errorf("rate before the change %v", r)
	}
}

func TestScheduleEndsWithItsRate(t *testing.T) {
	s := New(10, engine.ArrivalConstant, Share{0, 1}, 1)
	s.curve.Change(0, []Leg{{Level: 0, Length: 2 * time.Second}})
	n, last := 0, time.Duration(0)
	for {
		due, ok := s.Next()
		if !ok {
			break
		}
		if due < last || due > 2*time.Second {
			t.Fatalf("arrival %d is due at %v after %v", n, due, last)
		}
		last = due
		n++
		s.Take()
	}
	if n != 10 {
		t.Errorf("%d arrivals under a triangle of 10", n)
	}
}

func TestPoissonSchedule(t *testing.T) {
	const rate, seconds = 1000.0, 100
	make := func(s Share) *Schedule { return New(rate, engine.ArrivalPoisson, s, 7) }
	all := arrivals(3, seconds*time.Second, make)
	// Five standard deviations of the count.
	if mean := rate * seconds; math.Abs(float64(len(all))-mean) > 5*math.Sqrt(mean) {
		t.Errorf("%d arrivals, %.0f expected", len(all), mean)
	}
	// The gaps are exponential: their deviation is their mean, and e^-1 of them are longer than it.
	var sum, squares float64
	long := 0
	for i := 1; i < len(all); i++ {
		gap := (all[i] - all[i-1]).Seconds()
		sum += gap
		squares += gap * gap
		if gap > 1/rate {
			long++
		}
	}
	n := float64(len(all) - 1)
	mean := sum / n
	if cv := math.Sqrt(squares/n-mean*mean) / mean; math.Abs(cv-1) > 0.02 {
		t.Errorf("coefficient of variation %.3f", cv)
	}
	if p := float64(long) / n; math.Abs(p-1/math.E) > 0.01 {
		t.Errorf("%.3f of the gaps are longer than the mean", p)
	}
	again := arrivals(3, seconds*time.Second, make)
	for i := range all {
		if all[i] != again[i] {
			t.Fatal("the same seed gave another schedule")
		}
	}
}

func TestPoissonFollowsRamps(t *testing.T) {
	all := arrivals(1, 20*time.Second, func(s Share) *Schedule {
		made := New(100, engine.ArrivalPoisson, s, 3)
		made.curve.Change(0, []Leg{{Level: 2000, Length: 20 * time.Second}})
		return made
	})
	first := sort.Search(len(all), func(i int) bool { return all[i] >= 10*time.Second })
	if math.Abs(float64(first)-5750) > 400 || math.Abs(float64(len(all))-21_000) > 750 {
		t.Errorf("%d arrivals in the first half and %d in all, 5750 and 21000 expected", first, len(all))
	}
}
