package results

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// errorID is the id of an error of the class in the dictionary of tests.
func errorID(t *testing.T, class engine.ErrorClass) uint32 {
	t.Helper()
	id := slices.IndexFunc(dictionary, func(e engine.ExecutionError) bool { return e.Class == class })
	if id < 0 {
		t.Fatalf("the dictionary has no error of class %s", class)
	}
	return uint32(id)
}

// halfLockedLoop is a closed loop of which half of the rows are locked for a time: what meets
// one ends by its timeout, the others are answered.
type halfLockedLoop struct {
	connections       int
	seconds           int64
	from, to, timeout int64 // ms
	took              func(r *rand.Rand, conn int, at int64) int64
	begins            func(conn int) int64
	noise             float64 // the share of timeouts at any time
}

func (h halfLockedLoop) records(r *rand.Rand, timeout uint32) (recs []engine.Execution) {
	for c := range h.connections {
		at := int64(0)
		if h.begins != nil {
			at = h.begins(c) * 1e6
		}
		for at < h.seconds*1e9 {
			rec := engine.Execution{DueAt: testBase + at, StartedAt: testBase + at, Elapsed: h.took(r, c, at),
				ConnectionID: uint32(c), Success: true}
			if r.Float64() < h.noise {
				rec.Elapsed, rec.Success, rec.ErrorID = h.timeout*1e6, false, timeout
			}
			if at >= h.from*1e6 && at < h.to*1e6 && r.IntN(2) == 0 {
				rec.Elapsed, rec.Success, rec.ErrorID = min(h.timeout*1e6, h.to*1e6-at), false, timeout
			}
			recs = append(recs, rec)
			at += rec.Elapsed
		}
	}
	return recs
}

func alike(ns int64) func(*rand.Rand, int, int64) int64 {
	return func(*rand.Rand, int, int64) int64 { return ns }
}

func figuresOver(t *testing.T, recs []engine.Execution, w engine.Window) *engine.Figures {
	t.Helper()
	f := open(t)
	putOf(t, f, false, "worker-0", recs)
	fig, err := f.FiguresIn(context.Background(), "run", "", w)
	if err != nil {
		t.Fatal(err)
	}
	return fig
}

// seeds are so many, of which the race detector gets a quarter.
func seeds(all uint64) uint64 {
	if raceEnabled {
		return all / 4
	}
	return all
}

// A few answers between timeouts are no target that works: half of the rows are locked for 3 s.
func TestAFewAnswersBetweenTimeoutsAreAStall(t *testing.T) {
	ids := []uint32{errorID(t, engine.ErrClassTimeout), errorID(t, engine.ErrClassLock)}
	for seed := range seeds(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		from := 5000 + r.Int64N(10_000)
		h := halfLockedLoop{connections: 2 + r.IntN(15), seconds: 20, from: from, to: from + 3000, timeout: 500,
			took: alike(200_000 + r.Int64N(1_000_000))}
		w := engine.Window{From: after(0), To: after(20_000), Connections: h.connections}
		if seed%2 == 1 { // stages, of which the first has one connection
			h.begins = func(conn int) int64 { return min(int64(conn), 1) * 2500 }
			w.Varies = true
		}
		fig := figuresOver(t, h.records(r, ids[seed/2%2]), w)
		if len(fig.Stalls) != 1 {
			t.Errorf("%d: locked at %d with %d connections: %+v", seed, from, h.connections, fig.Stalls)
			continue
		}
		s := fig.Stalls[0]
		if math.Abs(s.Seconds-3) > 0.4 || s.From.Sub(after(float64(from))).Abs().Milliseconds() > 300 ||
			s.AnsweredOperations == 0 || s.MissedOperations < 50*s.AnsweredOperations*9/10 {
			t.Errorf("%d: locked at %d: %+v", seed, from, s)
		}
	}
}

// Whatever way a run goes: where each second has a twentieth of the pace, none is a stall, and
// what is called one has missed nearly all of it.
func TestNoisyAndSlowRunsDoNotStandStill(t *testing.T) {
	for seed := range seeds(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		connections := 1 + r.IntN(12)
		median := math.Exp(math.Log(2e6) + r.Float64()*math.Log(500)) // 2 ms to 1 s
		spread := r.Float64() * 1.5
		slow := 1 + r.Float64()*6 // of some seconds
		h := halfLockedLoop{connections: connections, seconds: 30, timeout: 50 + r.Int64N(700), noise: float64(seed%5) * 0.1,
			took: func(r *rand.Rand, _ int, at int64) int64 {
				ns := median * math.Exp(spread*r.NormFloat64())
				if (at/1e9)%7 < int64(seed%4) {
					ns *= slow
				}
				return int64(min(max(ns, 1e5), 10*median))
			}}
		recs := h.records(r, errorID(t, engine.ErrClassTimeout))
		fig := figuresOver(t, recs, engine.Window{From: after(0), To: after(30_000), Connections: connections,
			Varies: seed%3 == 0})
		var slots [300]float64
		for _, rec := range recs {
			if i := (rec.DueAt + rec.Elapsed - testBase) / 1e8; i < int64(len(slots)) && rec.Success {
				slots[i]++
			}
		}
		minimum := math.Inf(1)
		for i := 0; i+10 <= len(slots); i++ {
			n := 0.0
			for _, c := range slots[i : i+10] {
				n += c
			}
			minimum = min(minimum, n)
		}
		pace := float64(len(recs)) / 30 // and more than what is answered
		if minimum >= pace/20 && minimum > 0 && len(fig.Stalls) > 0 {
			t.Errorf("%d: %d connections, %.1f ms, spread %.2f: each second has %.0f of %.0f: %+v", seed, connections,
				median/1e6, spread, minimum, pace, fig.Stalls)
		}
		for _, s := range fig.Stalls {
			if s.MissedOperations < 20 || float64(s.AnsweredOperations) > 0.021*float64(s.MissedOperations) || s.Seconds < 1 {
				t.Errorf("%d: %+v", seed, s)
			}
		}
	}
}

// Stages of few connections between those of many, and runs whose connections begin together, are no stalls.
func TestFewAnswersThatWereAllThatWasAskedAreNoStall(t *testing.T) {
	var staged []engine.Execution // 100 connections, one, 100: each of 10 s
	for c := range uint32(100) {
		for at := int64(0); at < 30_000; at += 5 {
			if c == 0 || at < 10_000 || at >= 20_000 {
				staged = append(staged, engine.Execution{DueAt: testBase + at*1e6, StartedAt: testBase + at*1e6, Elapsed: 5e6,
					ConnectionID: c, Success: true})
			}
		}
	}
	if fig := figuresOver(t, staged,
		engine.Window{From: after(0), To: after(30_000), Connections: 100, Varies: true}); len(fig.Stalls) > 0 {
		t.Errorf("a stage of one connection: %+v", fig.Stalls)
	}
	var together []engine.Execution // 50 connections that think for 1.5 s and end together, but for one
	for c := range uint32(50) {
		for at := int64(0); at < 30_000; at += 1500 {
			due := testBase + (at+int64(c)/49*700)*1e6
			together = append(together,
				engine.Execution{DueAt: due, StartedAt: due, Elapsed: 5e6, ConnectionID: c, Success: true})
		}
	}
	if fig := figuresOver(t, together, engine.Window{From: after(0), To: after(30_000), Connections: 50}); len(
		fig.Stalls) > 0 {
		t.Errorf("think times that end together: %+v", fig.Stalls)
	}
}
