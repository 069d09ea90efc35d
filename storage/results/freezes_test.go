package results

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// closedLoop plays connections that ask again at once. took says how long an operation takes that begins then, and
// frozen lets none end within a freeze.
func closedLoop(connections int, length time.Duration, took func(connection int) time.Duration,
	frozen []interval) (recs []engine.Execution) {
	for c := range connections {
		for at := int64(0); at < int64(length); {
			end := at + int64(took(c))
			for _, f := range frozen {
				if end > f.from && at < f.to {
					end = max(end, f.to+rand.Int64N(3e6))
				}
			}
			recs = append(recs, engine.Execution{DueAt: testBase + at, StartedAt: testBase + at, Elapsed: end - at,
				ConnectionID: uint32(c), Seq: uint32(len(recs)), Rows: 1, Success: true})
			at = end
		}
	}
	slices.SortFunc(recs, func(a, b engine.Execution) int { return int((a.DueAt + a.Elapsed) - (b.DueAt + b.Elapsed)) })
	return recs
}

// every lists so many freezes of a length, one each so often.
func every(n int, period, length time.Duration) (out []interval) {
	for i := range n {
		from := int64(500*time.Millisecond) + int64(i)*int64(period)
		out = append(out, interval{from, from + int64(length)})
	}
	return out
}

// TestFreezesUnderASecondAreFound: twelve stops of 0.25 s, five freezes of 0.9 s in 14 s, table locks of 0.9 s: each run
// was VALID without a word.
func TestFreezesUnderASecondAreFound(t *testing.T) {
	fixed := func(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }
	around := func(d time.Duration) func(int) time.Duration {
		return func(int) time.Duration { return time.Duration((0.5 + rand.Float64()) * float64(d)) }
	}
	ms := time.Millisecond
	for name, c := range map[string]struct {
		connections int
		length      time.Duration
		took        func(int) time.Duration
		frozen      []interval
		want        int
	}{
		"twelve of 0.25 s":        {8, 20 * time.Second, around(2 * ms), every(12, 1500*ms, 250*ms), 12},
		"five of 0.9 s":           {8, 14 * time.Second, around(5 * ms), every(5, 2500*ms, 900*ms), 5},
		"on two connections":      {2, 14 * time.Second, around(5 * ms), every(5, 2500*ms, 900*ms), 5},
		"on many":                 {200, 10 * time.Second, around(20 * ms), every(3, 2500*ms, 400*ms), 3},
		"with longer ones":        {8, 14 * time.Second, around(5 * ms), append(every(2, 2*time.Second, 400*ms), interval{8e9, 9.5e9}), 3},
		"a single one":            {8, 14 * time.Second, around(5 * ms), every(1, time.Second, 900*ms), 0},
		"none":                    {8, 20 * time.Second, around(5 * ms), nil, 0},
		"slow operations":         {4, 20 * time.Second, fixed(300 * ms), nil, 0},
		"slow ones, at random":    {8, 20 * time.Second, around(200 * ms), nil, 0},
		"few take very long":      {4, 30 * time.Second, seldom(0.01, 500*ms, ms), nil, 0},
		"one connection in turns": {1, 30 * time.Second, seldom(0.01, 500*ms, ms), nil, 0},
		"two of them":             {2, 30 * time.Second, seldom(0.01, 500*ms, ms), nil, 0},
	} {
		f := open(t)
		putOf(t, f, false, "worker-0", closedLoop(c.connections, c.length, c.took, c.frozen))
		w := engine.Window{From: after(0), To: after(0).Add(c.length), Connections: c.connections}
		fig, err := f.FiguresIn(context.Background(), "run", "", w)
		if err != nil {
			t.Fatal(err)
		}
		switch got := fig.Freezes; {
		case c.want == 0 && got != nil:
			t.Errorf("%s: %+v", name, got)
		case c.want == 0:
		case got == nil || got.Count != int64(c.want):
			t.Errorf("%s: %+v", name, got)
		default:
			sum := 0.0
			for _, z := range c.frozen {
				sum += time.Duration(z.to - z.from).Seconds()
			}
			if math.Abs(got.Seconds-sum) > 0.06*float64(c.want) {
				t.Errorf("%s: %.2f s of %.2f", name, got.Seconds, sum)
			}
		}
		w.Varies = true
		if fig, err = f.FiguresIn(context.Background(), "run", "", w); err != nil || fig.Freezes != nil {
			t.Errorf("%s, with connections that vary: %+v, %v", name, fig.Freezes, err)
		}
	}
}

// seldom takes long for a share of the operations, each connection by itself.
func seldom(share float64, long, short time.Duration) func(int) time.Duration {
	r := rand.New(rand.NewPCG(7, 7))
	return func(int) time.Duration {
		if r.Float64() < share {
			return time.Duration((0.8 + 0.4*r.Float64()) * float64(long))
		}
		return time.Duration((0.5 + r.Float64()) * float64(short))
	}
}

// TestFineTimesOfALongRunAreBounded: a week is counted in pieces that are as many as those of seven hours.
func TestFineTimesOfALongRunAreBounded(t *testing.T) {
	week := newFineTimes(int64(7 * 24 * time.Hour))
	if n := len(week.ended); n > maxFineBins+1 || week.length < int64(500*time.Millisecond) {
		t.Errorf("%d pieces of %d", n, week.length)
	}
	if saturated(math.MaxUint16, 1) != math.MaxUint16 {
		t.Error("a count begins anew")
	}
}
