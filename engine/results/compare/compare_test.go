package compare

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// noisy makes a run whose seconds are not independent: a disturbance lasts for a
// few of them, as checkpoints do.
func noisy(rng *rand.Rand, seconds int, qps, meanMs, errorRate float64) Run {
	run := make(Run, seconds)
	slow := 1.0
	for i := range run {
		slow = 1 + 0.8*(slow-1) + 0.05*rng.NormFloat64()
		h := histogram.New()
		n := int(qps / max(slow, 0.3))
		for range n {
			h.Record(int64(rng.ExpFloat64()*meanMs*slow*1e6) + 1000)
			if rng.Float64() < errorRate {
				run[i].Errors++
			}
		}
		run[i].Operations, run[i].Latency = int64(n), h.Data()
	}
	return run
}

func of(c Comparison, name string) Metric {
	i := slices.IndexFunc(c.Metrics, func(m Metric) bool { return m.Name == name })
	return c.Metrics[i]
}

// TestTheSameIsNotDifferent: of many comparisons of a target with itself, hardly any may say
// that it became worse in any metric, in short runs too, whose seconds resemble each other; and
// one that became slower by a tenth is seen where the machine lets it be seen.
func TestTheSameIsNotDifferent(t *testing.T) {
	for seconds, times := range map[int]int{5: 30, 60: 12} {
		wrong := 0
		for seed := range uint64(times) {
			rng := rand.New(rand.NewPCG(seed, 1))
			a := noisy(rng, seconds, 400, 2, 0)
			c, err := compareSides([]Run{a}, []Run{noisy(rng, seconds, 400, 2, 0)}, [2][]float64{}, nil, Defaults())
			if err != nil {
				t.Fatal(err)
			}
			if c.Verdict == Worse {
				wrong++
			}
		}
		if wrong > 3 {
			t.Errorf("%d s: %d of %d comparisons of a target with itself found it worse", seconds, wrong, times)
		}
	}
	steady := func(rng *rand.Rand, scale float64) Run {
		run := make(Run, 5)
		for i := range run {
			h := histogram.New()
			for range 240 {
				h.Record(int64((21 + 4*rng.Float64()) * scale * 1e6))
			}
			run[i].Operations, run[i].Latency = int64(240/scale), h.Data()
		}
		return run
	}
	rng := rand.New(rand.NewPCG(3, 3))
	several := func(scale float64) []Run {
		return []Run{steady(rng, scale), steady(rng, scale), steady(rng, scale)}
	}
	if c, err := compareSides(several(1), several(1.1), [2][]float64{}, nil, Defaults()); err != nil ||
		of(c, "p50_ms").Verdict != Worse {
		t.Errorf("a tenth slower: %+v %v", c, err)
	}
}

// TestABacklogOfTheWarmUpIsInTheRateAlone: what was due in the warm-up and ended in the measurement makes a run faster,
// and changes neither its errors nor its latencies.
func TestABacklogOfTheWarmUpIsInTheRateAlone(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	a := noisy(rng, 60, 400, 2, 0.2)
	b := slices.Clone(a)
	for i := range b {
		b[i].CarriedOver = b[i].Operations / 2
	}
	for _, most := range []int{len(b), len(b) / 2} {
		thinA, errA := a.Downsample(most)
		thinB, errB := b.Downsample(most)
		c, err := compareSides([]Run{thinA}, []Run{thinB}, [2][]float64{}, nil, Defaults())
		if err := cmp.Or(errA, errB, err); err != nil {
			t.Fatal(err)
		}
		for _, m := range c.Metrics {
			switch want := (m.Name == "qps"); {
			case want && (m.Verdict != Better || math.Abs(*m.Difference-50) > 0.5):
				t.Errorf("in %d pieces %s is %s by %v", most, m.Name, m.Verdict, *m.Difference)
			case !want && *m.Difference != 0:
				t.Errorf("in %d pieces %s differs by %v", most, m.Name, *m.Difference)
			}
		}
	}
}

// TestABacklogDoesNotMakeSecondsResembleEachOther: seconds in which only what was carried over ended have no latency,
// which is not one of 0, and others have the latency of what was measured in them.
func TestABacklogDoesNotMakeSecondsResembleEachOther(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	run := make(Run, 60)
	for i := range run {
		h := histogram.New()
		for range 100 {
			h.Record(int64((2 + 0.2*rng.Float64()) * 1e6))
		}
		run[i] = Second{Operations: 100, Latency: h.Data()}
	}
	length, phi := blockLength(run)
	for i := range 12 {
		if i < 6 {
			run[i] = Second{}
		}
		run[i].CarriedOver = 100
	}
	if l, p := blockLength(run); l > length+1 || p > phi+0.15 {
		t.Errorf("blocks of %d s that resemble each other by %.2f, without the backlog %d s and %.2f", l, p, length, phi)
	}
	values, _ := meanLatencies(Run{{Operations: 500, Latency: run[59].Latency}, {}})
	if math.Abs(values[0]-2.1e6) > 0.1e6 || values[1] != values[0] {
		t.Errorf("mean latencies of %v", values)
	}
}

func TestADifferenceIsFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var fast, slow []Run
	for range 3 {
		fast, slow = append(fast, noisy(rng, 60, 500, 2, 0)), append(slow, noisy(rng, 60, 350, 3, 0.02))
	}
	alternating := [2][]float64{{0, 3, 4}, {1, 2, 5}}
	c, err := compareSides(fast, slow, alternating, nil, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"qps", "error_rate", "avg_ms", "p50_ms", "p95_ms", "p99_ms"} {
		if m := of(c, name); m.Verdict != Worse || *m.Low > *m.Difference || *m.High < *m.Difference {
			t.Errorf("%+v", m)
		}
	}
	if c.Verdict != Worse || *c.SlowerProbability < 0.55 {
		t.Errorf("%s, %v", c.Verdict, *c.SlowerProbability)
	}
	back, err := compareSides(slow, fast, alternating, nil, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	if back.Verdict != Better || math.Abs(*back.SlowerProbability+*c.SlowerProbability-1) > 1e-9 {
		t.Errorf("%s, %v and %v", back.Verdict, *back.SlowerProbability, *c.SlowerProbability)
	}
}

func TestTheIdenticalIsTheSame(t *testing.T) {
	run := noisy(rand.New(rand.NewPCG(1, 1)), 120, 300, 2, 0)
	for i := range run {
		run[i] = run[0]
	}
	c, err := compareSides([]Run{run, run, run, run}, []Run{run, run, run, run}, [2][]float64{}, nil, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	if of(c, "qps").Verdict != Same || of(c, "p50_ms").Verdict != Same || *c.SlowerProbability != 0.5 {
		t.Errorf("%+v", c)
	}
}

// TestRunsDifferMoreThanSeconds: with several runs on a side, what differs between them widens the interval.
func TestRunsDifferMoreThanSeconds(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	var a, b []Run
	for _, speed := range []float64{1.8, 2.4, 2, 2.2} {
		a = append(a, noisy(rng, 40, 300, speed, 0))
		b = append(b, noisy(rng, 40, 300, speed+0.1, 0))
	}
	many, err := compareSides(a, b, [2][]float64{{0, 3, 4, 7}, {1, 2, 5, 6}}, nil, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	one, err := compareSides(a[:1], b[:1], [2][]float64{}, nil, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	var same [2][]Run
	for range 4 {
		same[0], same[1] = append(same[0], noisy(rng, 40, 300, 2, 0)), append(same[1], noisy(rng, 40, 300, 2, 0))
	}
	alike, err := compareSides(same[0], same[1], [2][]float64{{0, 3, 4, 7}, {1, 2, 5, 6}}, nil, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	width := func(c Comparison) float64 { m := of(c, "p50_ms"); return *m.High - *m.Low }
	if width(many) <= 1.5*width(alike) || width(alike) >= width(one) ||
		!strings.Contains(strings.Join(one.Notes, " "), "One run on each side") ||
		len(many.Notes) != 0 {
		t.Errorf(
			"%.2f for several, %.2f for such that are alike, %.2f for one; %v",
			width(many),
			width(alike),
			width(one),
			one.Notes,
		)
	}
}

func TestWhatCannotBeCompared(t *testing.T) {
	good := noisy(rand.New(rand.NewPCG(1, 2)), 20, 100, 2, 0)
	for name, bad := range map[string][]Run{"no run": nil, "no second": {{}}} {
		if _, err := compareSides(bad, []Run{good}, [2][]float64{}, nil, Defaults()); err == nil {
			t.Errorf("%s is compared", name)
		}
	}
	c, err := compareSides([]Run{{{}, {}}}, []Run{good}, [2][]float64{}, nil, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	if m := of(c, "p95_ms"); m.Verdict != Unclear || m.Difference != nil || c.SlowerProbability != nil ||
		!strings.Contains(strings.Join(c.Notes, " "), "only 2 seconds") {
		t.Errorf("%+v %v", m, c.Notes)
	}
	if m := of(c, "qps"); m.Verdict != Unclear {
		t.Errorf("%+v", m)
	}
}

// TestSlowerAgainstPairs: the effect size equals counting all pairs.
func TestSlowerAgainstPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := func(name string) ([]int, *side) {
			values := rapid.SliceOfN(rapid.IntRange(1, 30), 1, 40).Draw(t, name)
			h := histogram.New()
			for _, v := range values {
				h.Record(int64(v) * 1_000_000)
			}
			s, err := newSide([]Run{{{Operations: int64(len(values)), Latency: h.Data()}}})
			if err != nil {
				t.Fatal(err)
			}
			return values, s
		}
		a, sideA := list("a")
		b, sideB := list("b")
		u := 0.0
		for _, x := range a {
			for _, y := range b {
				u += float64(1+cmp.Compare(y, x)) / 2
			}
		}
		if got := *slowerProbability(sideA.pooled(), sideB.pooled()); math.Abs(got-u/float64(len(a)*len(b))) > 1e-9 {
			t.Fatalf("%v, by pairs %v", got, u/float64(len(a)*len(b)))
		}
	})
}

func BenchmarkCompareAnHour(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 3))
	x, y := noisy(rng, 3600, 100, 2, 0), noisy(rng, 3600, 100, 2, 0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := compareSides([]Run{x}, []Run{y}, [2][]float64{}, nil, Defaults()); err != nil {
			b.Fatal(err)
		}
	}
}

// TestErrorRatesAloneMakeNothingTheSame: runs that are too short for all other metrics.
func TestErrorRatesAloneMakeNothingTheSame(t *testing.T) {
	zero := 0.0
	none := Metric{Name: "qps", Verdict: Unclear}
	if got := overall([]Metric{none, {Name: "error_rate", Difference: &zero, Verdict: Same}}); got != Unclear {
		t.Errorf("%s", got)
	}
	if got := overall([]Metric{none, {Name: "p95_ms", Difference: &zero, Verdict: Same}}); got != Same {
		t.Errorf("%s", got)
	}
}

// TestThin holds that merged seconds say the same, and that the rate stays one per second.
func TestThin(t *testing.T) {
	var run Run
	for i := range 1000 {
		h := histogram.New()
		for range 10 + i%3 {
			h.Record(int64(1_000_000 + i*1000))
		}
		run = append(run, Second{Operations: h.Count(), Errors: int64(i % 2), Latency: h.Data()})
	}
	thin, err := run.Downsample(150)
	if err != nil {
		t.Fatal(err)
	}
	if len(thin) != 143 || thin[0].Seconds != 7 || thin[142].Seconds != 6 {
		t.Fatalf("%d elements, the first of %v s, the last of %v s", len(thin), thin[0].Seconds, thin[len(thin)-1].Seconds)
	}
	c, err := compareSides([]Run{run}, []Run{thin}, [2][]float64{}, nil, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Metrics {
		if *m.A != *m.B {
			t.Errorf("%s is %v, and %v when merged", m.Name, *m.A, *m.B)
		}
	}
	if same, err := run.Downsample(1000); err != nil || len(same) != 1000 || same[0].Seconds != 0 {
		t.Errorf("a run that fits: %d elements, %v", len(same), err)
	}
}
