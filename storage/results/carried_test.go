package results

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// TestARateCountsWhatEndedInTheWindow: whatever was due when, the rates of the run, its kinds, its statements and its
// seconds are those of what ended in the measurement; the latencies are those of what was due in it, and of what was
// begun while the STOP was on its way.
func TestARateCountsWhatEndedInTheWindow(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(base, "results")
		if err != nil {
			rt.Fatal(err)
		}
		f, err := Open(dir)
		if err != nil {
			rt.Fatal(err)
		}
		const seconds = 4
		from, to := testBase+2e9, testBase+2e9+seconds*1e9
		var recs []engine.Execution
		var ended, carried, late, after, lastDue, held, longest int64
		byKind, carriedOf := map[engine.Kind]int64{}, map[engine.Kind]int64{}
		var perSecond [seconds]engine.MeasuredSecond
		for i := range rapid.IntRange(1, 60).Draw(rt, "executions") {
			due := testBase + rapid.Int64Range(0, 7200).Draw(rt, "due")*1e6
			r := engine.Execution{DueAt: due, StartedAt: due, Seq: uint32(i), Rows: 1, Warmup: due < from,
				Success: rapid.IntRange(0, 2).Draw(rt, "fails") > 0,
				Elapsed: rapid.Int64Range(1, 5000).Draw(rt, "ms") * 1e6,
				Kind:    rapid.SampledFrom([]engine.Kind{engine.KindPointLookup, engine.KindUpdate}).Draw(rt, "kind")}
			recs = append(recs, r)
			if over := min(due+r.Elapsed, to) - from; r.Warmup && over > 0 {
				held, longest = held+over, max(longest, over)
			}
			switch end := due + r.Elapsed; {
			case due > to:
				after, lastDue = after+1, max(lastDue, due)
			case end > to:
				if !r.Warmup {
					late++
				}
			case !r.Warmup || end > from:
				ended++
				byKind[r.Kind]++
				s := &perSecond[min((end-from)/1e9, seconds-1)]
				switch {
				case r.Warmup:
					carried++
					carriedOf[r.Kind]++
					s.CarriedOver++
				case !r.Success:
					s.Errors++
					fallthrough
				default:
					s.Operations++
				}
			}
		}
		overran := int64(0)
		if lastDue > to+int64(overrun) {
			overran = after
		} else {
			late += after
		}
		put(t, f, "worker-0", recs)
		w := engine.Window{From: time.Unix(0, from), To: time.Unix(0, to)}
		fig, err := f.FiguresIn(context.Background(), "run", "", w)
		if err != nil {
			rt.Fatal(err)
		}
		if want := (engine.HeldOver{Seconds: float64(held) / 1e9, LongestSeconds: float64(longest) / 1e9}); fig.HeldOver != want {
			rt.Fatalf("held over %+v, want %+v", fig.HeldOver, want)
		}
		if *fig.QPS != float64(ended)/seconds || fig.CarriedOver != carried || fig.FinishedLate != late ||
			fig.Overran != overran {
			rt.Fatalf("%v/s, %d carried over, %d late: %d ended, %d and %d", *fig.QPS, fig.CarriedOver, fig.FinishedLate, ended,
				carried, late)
		}
		for k, n := range byKind {
			f := fig.ByKind[k]
			if f == nil || *f.QPS != float64(n)/seconds || f.CarriedOver != carriedOf[k] ||
				(f.Count > 0) != (f.LatencyMs != nil) {
				rt.Fatalf("%s: %+v, %d ended", k, f, n)
			}
			i := slices.IndexFunc(fig.ByStatement, func(f engine.StatementFigures) bool { return f.Kind == k })
			if i < 0 || *fig.ByStatement[i].QPS != *f.QPS || fig.ByStatement[i].CarriedOver != f.CarriedOver ||
				fig.ByStatement[i].Count != f.Count || (f.Count > 0) != (fig.ByStatement[i].LatencyMs != nil) {
				rt.Fatalf("%s: %+v, %d ended", k, fig.ByStatement, n)
			}
		}
		in, err := f.SecondsIn(context.Background(), "run", w)
		if err != nil {
			rt.Fatal(err)
		}
		for i, s := range in {
			want, latencies := perSecond[i], int64(0)
			if h, err := histogram.FromData(s.Latency); err == nil {
				latencies = h.Count()
			}
			if s.Operations != want.Operations || s.Errors != want.Errors || s.CarriedOver != want.CarriedOver ||
				latencies != want.Operations {
				rt.Fatalf("second %d is %+v of %+v, with %d latencies", i, s, want, latencies)
			}
		}
	})
}

// TestThePartsOfAMeasurementAddUpToIt: what ended between changes of the load is what the seconds of the measurement
// have, and what was due in the warm-up counts in the rate of its part alone.
func TestThePartsOfAMeasurementAddUpToIt(t *testing.T) {
	f := open(t)
	recs := steady(0, 6000, 0)
	for i := range recs {
		recs[i].Elapsed, recs[i].Success, recs[i].Warmup = 500e6, i%10 > 0, i < 1000 // each ends half a second after it was due
	}
	put(t, f, "worker-0", recs)
	from, to := after(1000), after(5000)
	got, err := f.Between(t.Context(), "run", []time.Time{from, after(3000), to})
	if err != nil || len(got) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	in, err := f.SecondsIn(t.Context(), "run", engine.Window{From: from, To: to})
	if err != nil {
		t.Fatal(err)
	}
	var sum [2]engine.MeasuredSecond
	for i, s := range in {
		part := &sum[i/2]
		part.Operations, part.Errors, part.CarriedOver = part.Operations+s.Operations, part.Errors+s.Errors,
			part.CarriedOver+s.CarriedOver
	}
	// Of those that were due in the warm-up, the one that ended as the measurement began is in none.
	if got[0].CarriedOver != 499 || got[0].Operations != 1500 || got[1].CarriedOver != 0 {
		t.Errorf("%+v", got)
	}
	for i, cut := range []int64{0, 1} { // what ended with the change is in the part that it begins
		if got[i].Operations+got[i].CarriedOver != 1999+2*cut {
			t.Errorf("part %d has %+v", i, got[i])
		}
	}
	if sum[0].Operations != got[0].Operations || sum[0].Errors != got[0].Errors || sum[0].CarriedOver != 499 ||
		sum[1].Operations != got[1].Operations || sum[1].Errors != got[1].Errors {
		t.Errorf("seconds: %+v, parts: %+v", sum, got)
	}
}

// TestABacklogOfTheWarmUpIsInTheThroughput: an open loop of 100/s on a target that does 80/s ends what was due in the
// warm-up first.
func TestABacklogOfTheWarmUpIsInTheThroughput(t *testing.T) {
	var recs []engine.Execution
	from, to := after(10_000), after(20_000)
	for i := range int64(2000) {
		due, ends := testBase+i*10e6, testBase+(i+1)*12_500_000
		recs = append(recs, engine.Execution{DueAt: due, StartedAt: due, Elapsed: ends - due, Seq: uint32(i), Success: true,
			Warmup: due < from.UnixNano()})
	}
	f := open(t)
	put(t, f, "worker-0", recs)
	fig, err := f.FiguresIn(context.Background(), "run", "", engine.Window{From: from, To: to})
	if err != nil || math.Abs(*fig.QPS-80) > 0.2 || fig.CarriedOver != 200 ||
		*fig.ByKind[engine.KindPointLookup].QPS != *fig.QPS {
		t.Errorf("%v/s, %d carried over: %v", *fig.QPS, fig.CarriedOver, err)
	}
	if fig.Operations != 1000 || fig.Accounting.Warmup != 1000 {
		t.Errorf("%d operations, %d of the warm-up", fig.Operations, fig.Accounting.Warmup)
	}
	// A workload that ended by itself, and whose end only the record knows.
	own, err := f.FiguresIn(context.Background(), "run", "", engine.Window{From: from})
	if err != nil || math.Abs(*own.QPS-80) > 0.2 || own.CarriedOver != 200 || !own.MeasuredFrom.Equal(from) {
		t.Errorf("by itself: %v/s, %d carried over, from %v: %v", *own.QPS, own.CarriedOver, own.MeasuredFrom, err)
	}
}

// TestAMixThatLosesATableNearTheEndIsSeen: a part of the operations goes on succeeding, at whatever rate, and what has
// always failed is nothing new.
func TestAMixThatLosesATableNearTheEndIsSeen(t *testing.T) {
	const runs, seconds = 200, 60
	for _, c := range []struct {
		rate                int
		before, gone, share float64
		last                float64 // seconds
		least, most         int     // of 100 runs
	}{
		{rate: 10, share: 0.6, last: 4, least: 85, most: 100},
		{rate: 20, share: 0.6, last: 4, least: 95, most: 100},
		{rate: 50, share: 0.6, last: 4, least: 99, most: 100},
		{rate: 100, share: 0.6, last: 4, least: 99, most: 100},
		{rate: 100, share: 0.8, last: 2, least: 99, most: 100},
		{rate: 50, before: 0.4, share: 0.8, last: 4, least: 95, most: 100},
		{rate: 10, before: 0.4, share: 0.4, most: 2},
		{rate: 50, before: 0.45, share: 0.45, most: 2},
		{rate: 100, before: 0.2, share: 0.2, most: 0},
		// Back again, half a second before the end.
		{rate: 100, share: 1, last: 2, gone: 0.5, most: 0},
	} {
		found := 0
		for seed := range uint64(runs) {
			r := rand.New(rand.NewPCG(seed, 7))
			e := newEndTimes(&window{from: 0, to: seconds * 1e9})
			for i := range c.rate * seconds {
				at, fails := (float64(i)+r.Float64())/float64(c.rate), c.before
				if at > seconds-c.last && at < seconds-c.gone {
					fails = c.share
				}
				e.addOutcome(nil, int64(at*1e9), r.Float64() >= fails)
			}
			times := e.failing()
			if n := len(times); n > 0 && times[n-1].ToTheEnd {
				found++
			}
		}
		if percent := 100 * found / runs; percent < c.least || percent > c.most {
			t.Errorf("%+v: found in %d %%", c, percent)
		}
	}
}

// TestATableThatGoesAwayNearTheEndIsSeen: whatever instant it goes at, and however long the measurement took.
func TestATableThatGoesAwayNearTheEndIsSeen(t *testing.T) {
	ends := func(w engine.Window, perSecond int, fails func(at time.Duration) bool) *endTimes {
		e := newEndTimes(&window{from: w.From.UnixNano(), to: w.To.UnixNano()})
		gap := time.Second / time.Duration(perSecond)
		for at := gap; at <= w.To.Sub(w.From); at += gap {
			e.addOutcome(nil, w.From.Add(at).UnixNano(), !fails(at))
		}
		return e
	}
	rapid.Check(t, func(rt *rapid.T) {
		length := time.Duration(rapid.IntRange(5_000, 120_000).Draw(rt, "length")) * time.Millisecond
		gone := time.Duration(rapid.IntRange(1_000, 4_000).Draw(rt, "gone")) * time.Millisecond
		rate := rapid.SampledFrom([]int{50, 100, 1000}).Draw(rt, "rate")
		w := engine.Window{From: after(0), To: after(0).Add(length)}
		found := ends(w, rate, func(at time.Duration) bool { return at > length-gone }).failing()
		if len(found) != 1 || !found[0].ToTheEnd || math.Abs(found[0].Seconds-gone.Seconds()) > 0.5 {
			rt.Fatalf("gone for the last %v of %v: %+v", gone, length, found)
		}
	})
	for name, c := range map[string]struct {
		rate     int
		from, to float64 // of 20 s
		times    int
		toTheEnd bool
	}{
		"few operations":         {1, 16, 20, 1, true},
		"a moment in between":    {100, 8, 10, 0, false},
		"back again":             {100, 8, 14, 1, false},
		"few, and back again":    {1, 8, 14, 0, false},
		"half a second":          {100, 19.5, 20, 0, false},
		"a healthy one":          {100, 20, 20, 0, false},
		"from the first instant": {100, 0, 20, 1, true},
	} {
		e := ends(engine.Window{From: after(0), To: after(20_000)}, c.rate, func(at time.Duration) bool {
			return at.Seconds() > c.from && at.Seconds() <= c.to
		})
		found := e.failing()
		if len(found) != c.times || c.times > 0 && found[0].ToTheEnd != c.toTheEnd {
			t.Errorf("%s: %+v", name, found)
		}
	}
	if newEndTimes(&window{from: math.MinInt64, to: math.MaxInt64}).failing() != nil {
		t.Error("what is not known is said")
	}
}
