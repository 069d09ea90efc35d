package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
)

// gateRound is a round whose metrics scatter by a deviation; B is slower by a factor.
func gateRound(rng *rand.Rand, deviation, slower float64) Round {
	side := func(factor float64) engine.Figures {
		// What slows a run slows its operations and lessens their number, and the tail scatters more.
		common, tail := deviation*rng.NormFloat64(), deviation*rng.NormFloat64()
		qps := 800 * math.Exp(-common) / factor
		return engine.Figures{QPS: &qps, Operations: 8000, LatencyMs: &engine.LatencyMs{P50: 2 * math.Exp(common) * factor,
			P95: 5 * math.Exp(common+tail) * factor, P99: 9 * math.Exp(common+2*tail) * factor}}
	}
	return Round{A: side(1), B: side(slower)}
}

// gate measures until the verdict is sure, or for so many rounds.
func gate(rng *rand.Rand, most int, round func(n int) Round) Rounds {
	var rounds []Round
	for n := range most {
		rounds = append(rounds, round(n))
		if r := JudgeRounds(rounds, DefaultRoundOptions()); r.Verdict != Unclear {
			return r
		}
	}
	return JudgeRounds(rounds, DefaultRoundOptions())
}

// TestGatesAreSeldomWrong simulates gates that look after each round: identical sides are worse in at most 1 %, a side
// that is slower by the limit is the same in at most 5 %, and one that is 5 % slower is found where runs scatter little.
func TestGatesAreSeldomWrong(t *testing.T) {
	t.Parallel()
	gates := 1000
	if testing.Short() {
		gates = 200
	}
	for _, c := range []struct {
		name      string
		deviation float64
		slower    float64
		most      int
		worse     [2]float64 // shares of gates, least and most
		same      [2]float64
	}{
		{"identical, quiet", 0.01, 1, 25, [2]float64{0, 0.01}, [2]float64{0.9, 1}},
		{"identical, noisy", 0.08, 1, 25, [2]float64{0, 0.01}, [2]float64{0, 1}},
		{"identical, for long", 0.05, 1, 100, [2]float64{0, 0.01}, [2]float64{0, 1}},
		{"slower by half of the limit, quiet", 0.01, 1.015, 60, [2]float64{0, 0.01}, [2]float64{0, 1}},
		{"slower by half of the limit, noisy", 0.05, 1.015, 60, [2]float64{0, 0.01}, [2]float64{0, 1}},
		{"slower by five sixths of the limit", 0.01, 1.025, 60, [2]float64{0, 0.35}, [2]float64{0, 1}},
		{"slower by the limit", 0.01, 1.03, 25, [2]float64{0, 1}, [2]float64{0, 0.05}},
		{"slower by 5 %, quiet", 0.015, 1.05, 25, [2]float64{0.9, 1.001}, [2]float64{0, 0.01}},
		{"slower by 5 %, noisy", 0.08, 1.05, 25, [2]float64{0, 1}, [2]float64{0, 0.01}},
		{"slower by 30 %, noisy", 0.08, 1.3, 25, [2]float64{0.9, 1.001}, [2]float64{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(7, 46))
			count, rounds := map[Verdict]float64{}, 0
			for range gates {
				r := gate(rng, c.most, func(int) Round { return gateRound(rng, c.deviation, c.slower) })
				count[r.Verdict] += 1 / float64(gates)
				rounds += r.Count
			}
			t.Logf("worse %.3f, same %.3f, better %.3f, cannot tell %.3f; %.1f rounds", count[Worse], count[Same], count[Better],
				count[Unclear], float64(rounds)/float64(gates))
			for v, bounds := range map[Verdict][2]float64{Worse: c.worse, Same: c.same} {
				if count[v] < bounds[0] || count[v] > bounds[1] {
					t.Errorf("%s in %.3f of the gates", v, count[v])
				}
			}
		})
	}
}

// TestTheIntervalsHoldAtAllRoundsTogether: of sequences of 200 values at most the part alpha leaves the interval at any
// time, for heavy tails too. A fixed interval fails this by far.
func TestTheIntervalsHoldAtAllRoundsTogether(t *testing.T) {
	t.Parallel()
	const alpha, sequences, length = 0.05, 1000, 200
	left := func(draw func(*rand.Rand) float64, half func(n int) float64) (n int) {
		rng := rand.New(rand.NewPCG(3, 46))
		for range sequences {
			var values []float64
			sum, squares := 0.0, 0.0
			for range length {
				v := draw(rng)
				values = append(values, v)
				sum, squares = sum+v, squares+v*v
				k := float64(len(values))
				if len(values) < MinRounds {
					continue
				}
				deviation := math.Sqrt(max(squares-sum*sum/k, 0) / (k - 1))
				if math.Abs(sum/k) > deviation/math.Sqrt(k)*half(len(values)) {
					n++
					break
				}
			}
		}
		return n
	}
	sequential := func(n int) float64 { return sequentialT(n, alpha) }
	normal := func(r *rand.Rand) float64 { return r.NormFloat64() }
	heavy := func(r *rand.Rand) float64 { return r.NormFloat64() / math.Sqrt((r.ExpFloat64()+r.ExpFloat64())/2) }
	for name, draw := range map[string]func(*rand.Rand) float64{"normal": normal, "heavy tails": heavy} {
		if n := left(draw, sequential); n > alpha*sequences {
			t.Errorf("%s: %d of %d sequences leave the interval", name, n, sequences)
		}
	}
	if n := left(normal, func(int) float64 { return 2 }); n < 3*alpha*sequences {
		t.Errorf("an interval of two standard errors is left by %d only: the check cannot fail", n)
	}
}

// TestRoundsThatAreNotAlike: a difference that grows from round to round is no difference to judge.
func TestRoundsThatAreNotAlike(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 46))
	var rounds []Round
	for n := range 12 {
		rounds = append(rounds, gateRound(rng, 0.005, 1+0.02*float64(n)))
	}
	r := JudgeRounds(rounds, DefaultRoundOptions())
	if r.Drift == "" || r.Verdict != Unclear {
		t.Errorf("%+v", r)
	}
	alike := 0
	for range 300 {
		rounds = rounds[:0]
		for range 12 {
			rounds = append(rounds, gateRound(rng, 0.03, 1))
		}
		if JudgeRounds(rounds, DefaultRoundOptions()).Drift == "" {
			alike++
		}
	}
	if alike < 298 {
		t.Errorf("%d of 300 gates are alike", alike)
	}
}

// TestRoundsOfConstants: metrics that never change are known, and so are those that change by a constant.
func TestRoundsOfConstants(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for slower, want := range map[float64]Verdict{1: Same, 1.01: Same, 1.2: Worse, 0.8: Better} {
		if r := gate(rng, MinRounds, func(int) Round { return gateRound(rng, 0, slower) }); r.Verdict != want {
			t.Errorf("%v: %s", slower, r.Verdict)
		}
	}
	// Without latencies, and without anything.
	qps := 5.0
	none := gate(rng, 6, func(int) Round { return Round{} })
	some := gate(rng, 6, func(int) Round { return Round{A: engine.Figures{QPS: &qps}, B: engine.Figures{QPS: &qps}} })
	if none.Verdict != Unclear || some.Verdict != Same {
		t.Errorf("%s, %s", none.Verdict, some.Verdict)
	}
}

// TestWhatMoreRoundsShow: as many more as advised are enough where they scatter as the others do.
func TestWhatMoreRoundsShow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(MinRounds, 60).Draw(t, "n")
		deviation := rapid.Float64Range(0.0001, 0.3).Draw(t, "deviation")
		alpha := rapid.Float64Range(0.001, 0.05).Draw(t, "alpha")
		more := moreRounds(n, deviation, 0.03, alpha)
		half := func(k int) float64 { return halfWidth(k, deviation, alpha) }
		switch {
		case more == nil:
			if half(n+maxMoreRounds) <= 0.03 {
				t.Fatal("500 more would show it")
			}
		case half(n+*more) > 0.03, *more > 0 && half(n+*more-1) <= 0.03:
			t.Fatalf("%d more", *more)
		}
	})
}
