package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestUncertaintyCoversWhatTheGeneratorAdds: operations take a time and are recorded late by another, and a thread that
// wakes at equal distances is late as they are. What is measured is too high by no more than is admitted.
func TestUncertaintyCoversWhatTheGeneratorAdds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		often := rapid.Float64Range(0, 1).Draw(rt, "late")
		mean := rapid.Float64Range(0.2, 50).Draw(rt, "ms late")
		middle := rapid.Float64Range(0.5, 100).Draw(rt, "ms")
		spread := rapid.Float64Range(0, 0.9).Draw(rt, "spread")
		late := func() float64 {
			if r.Float64() >= often {
				return 0
			}
			return mean * r.ExpFloat64()
		}
		const n = 20_000
		truth, measured := make([]float64, n), make([]float64, n)
		w := Witness{Known: rapid.Bool().Draw(rt, "schedstat"), RunNs: n * 30_000, Slices: n, Retransmits: -1}
		for i := range n {
			added := late()
			truth[i] = middle * (1 + spread*(2*r.Float64()-1))
			measured[i] = truth[i] + added
			w.WaitNs += int64(added*1e6) + 4000
			w.Late.Record(added) // drawn once: what is compared must not differ by chance
		}
		slices.Sort(truth)
		slices.Sort(measured)
		u := w.Uncertainty(0)
		for _, q := range []struct{ q, may float64 }{{0.5, u.P50}, {0.95, u.P95}, {0.99, u.P99}} {
			at := int(q.q * n)
			if high := measured[at] - truth[at]; high > 1.15*q.may+0.25 {
				rt.Fatalf("P%v is %.3f ms too high, and %.3f are admitted", 100*q.q, high, q.may)
			}
		}
		if u.P50 > u.P95 || u.P95 > u.P99 {
			rt.Fatalf("%+v", u)
		}
	})
}

// TestLateTimersAreNoStarvation: on an idle machine a thread that is to wake is late as well, as its timers are. Where
// threads did not wait for a processor, that adds nothing to what an operation takes.
func TestLateTimersAreNoStarvation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		slices := rapid.Int64Range(1, 1e6).Draw(rt, "slices")
		w := Witness{Known: true, Slices: slices, Retransmits: -1,
			RunNs:  slices * rapid.Int64Range(5_000, 200_000).Draw(rt, "ns that each runs"),
			WaitNs: slices * rapid.Int64Range(0, 10_000).Draw(rt, "ns that each waits")}
		for _, ms := range rapid.SliceOfN(rapid.Float64Range(0, 20), 1, 100).Draw(rt, "late") {
			w.Late.Record(ms)
		}
		if u := w.Uncertainty(0); u.P50 > 0.0101 || u.P95 > 0.0101 || u.P99 > 0.0101 {
			rt.Fatalf("%+v", u)
		}
	})
	few := Witness{Known: true, RunNs: 2e9, WaitNs: 1e7, Slices: 100}
	for range 1000 {
		few.Late.Record(0.2)
	}
	if u := few.Uncertainty(0); u.P99 > 0.101 {
		t.Errorf("threads waited in 0.5 %% of the time: %+v", u)
	}
}

func TestUncertaintyOfWitnesses(t *testing.T) {
	quiet := Witness{Known: true, RunNs: 2e9, WaitNs: 1e7, Slices: 10_000}
	for range 2000 {
		quiet.Late.Record(0.06)
	}
	starved, unknown, blind := quiet, quiet, quiet
	starved.WaitNs = 2e9
	for range 2000 {
		unknown.Late.Record(8)
	}
	unknown.Known, blind.Known = false, false
	for name, c := range map[string]struct {
		w        Witness
		decode   float64
		from, to float64 // of what P95 may be too high by
	}{
		"a quiet machine":                {quiet, 5, 0, 0.05},
		"threads wait":                   {starved, 0, 0.2, 0.21},
		"an answer is read between":      {starved, 128, 64, 64.5},
		"the system does not tell":       {unknown, 10, 18, 23},
		"a quiet one that does not tell": {blind, 128, 0, 0},
		"nothing is known":               {Witness{}, 128, 0, 0},
	} {
		if u := c.w.Uncertainty(c.decode); u.P95 < c.from || u.P95 > c.to {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

// TestLatenessIsCounted: every length is in a bucket that holds it, differences and sums are those of the counts, and a
// process that says less than before takes nothing away.
func TestLatenessIsCounted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lengths := rapid.SliceOfN(rapid.Float64Range(-1, 6000), 1, 100).Draw(rt, "lengths")
		var l Lateness
		for _, ms := range lengths {
			before := l
			l.Record(ms)
			for i := range l {
				if l[i] > before[i] &&
					(i < len(l)-1 && ms > LatenessBound(i)*(1+1e-6) || i > 0 && ms < LatenessBound(i-1)*(1-1e-6)) {
					rt.Fatalf("%v ms is in bucket %d, up to %v", ms, i, LatenessBound(i))
				}
			}
		}
		if l.Count() != int64(len(lengths)) || l.Minus(Lateness{}) != l || l.Plus(l).Minus(l) != l ||
			(Lateness{}).Minus(l) != (Lateness{}) {
			rt.Fatalf("%v of %d", l, len(lengths))
		}
		slices.Sort(lengths)
		if top := lengths[len(lengths)-1]; top > 0.1 && top < LatenessBound(len(l)-1) {
			if q := l.Quantile(1); q < top*(1-1e-6) || q > top*math.Sqrt2*(1+1e-6) {
				rt.Fatalf("the longest is %v, and said to be %v", top, q)
			}
		}
	})
	a := Witness{Known: true, RunNs: 10, Retransmits: 5}
	if d := (Witness{Known: true, RunNs: 3, Retransmits: 4}).Since(a); d.RunNs != 0 || d.Retransmits != 0 || !d.Known {
		t.Errorf("%+v", d)
	}
	if d := a.Since(Witness{Retransmits: -1}); d.Known || d.Retransmits != -1 {
		t.Errorf("%+v", d)
	}
}
