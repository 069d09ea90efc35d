package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// system is one whose runs differ: by what each of them happens to meet, and by what changes with time.
type system struct {
	deviation, tail, drift float64
}

// run measures the system: the later, the more of the drift it has. scale is how much slower it is than another.
func (s system) run(rng *rand.Rand, when int, scale float64) Run {
	slow := scale * math.Exp(s.deviation*rng.NormFloat64()+s.drift*float64(when))
	tail := math.Exp(s.tail * rng.NormFloat64())
	run := make(Run, 24)
	for i := range run {
		h := histogram.New()
		n := int(100 / slow * (1 + 0.02*rng.NormFloat64()))
		const values = 25 // few, so that thousands of comparisons take seconds
		for k := range n {
			part := math.Floor((float64(k) + rng.Float64()) / float64(n) * values)
			took := -math.Log(1-(part+0.5)/values) * slow
			if took > 2 {
				took *= tail
			}
			h.Record(int64(took*2e6) + 1000)
		}
		run[i].Operations, run[i].Latency = int64(n), h.Data()
	}
	return run
}

// verdicts counts the verdicts of comparisons of runs in that order.
func (s system) verdicts(t *testing.T, order string, scale float64, times int) map[Verdict]int {
	t.Helper()
	got := map[Verdict]int{}
	for seed := range uint64(times) {
		rng := rand.New(rand.NewPCG(seed, 5))
		var a, b []Run
		var begun [2][]float64
		for when, side := range order {
			if side == 'A' {
				a, begun[0] = append(a, s.run(rng, when, 1)), append(begun[0], float64(when))
			} else {
				b, begun[1] = append(b, s.run(rng, when, scale)), append(begun[1], float64(when))
			}
		}
		c, err := compareSides(a, b, begun, nil, Defaults())
		if err != nil {
			t.Fatal(err)
		}
		got[c.Verdict]++
		for _, m := range c.Metrics {
			if m.Verdict == Worse && m.Name != "error_rate" && math.Abs(*m.Difference) < Defaults().TolerancePct {
				t.Errorf("%s: %+v", order, m)
			}
		}
	}
	return got
}

// trials is how many comparisons a test makes: few in make test.
func trials(most int) int {
	if testing.Short() {
		return most / 25
	}
	return most
}

// atMost is how many of so many trials with a probability happen at most, but for a chance.
func atMost(trials int, probability, chance float64) int {
	more := 1.0
	for k := range trials {
		if more -= binomial(trials, k, probability); more < chance {
			return k
		}
	}
	return trials
}

func binomial(n, k int, p float64) float64 {
	factorial := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	return math.Exp(factorial(n) - factorial(k) - factorial(n-k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

// TestIdenticalSystemsAreHardlyEverWorse: in at most 1 % of comparisons of each kind of system and order, also in the
// unlucky one, in which all runs of A come first and the system becomes slower meanwhile. Each is held to what a binomial
// of 1 % reaches in all but one of a thousand tests.
func TestIdenticalSystemsAreHardlyEverWorse(t *testing.T) {
	t.Parallel()
	const cells = 20
	wrong, all := 0, 0
	for name, s := range map[string]system{
		"a steady machine": {0.01, 0.02, 0}, "a usual one": {0.025, 0.04, 0}, "a shared one": {0.04, 0.06, 0},
		"one that drifts": {0.015, 0.03, 0.005},
	} {
		for _, order := range []string{"AB", "AABB", "AAABBB", "ABABAB", "AAAAABBBBB"} {
			times := trials(500)
			got := s.verdicts(t, order, 1, times)
			t.Logf("%s, %s: %v", name, order, got)
			wrong, all = wrong+got[Worse], all+times
			if most := atMost(times, 0.01, 0.001/cells); got[Worse] > most {
				t.Errorf("%s, %s: %d of %d comparisons of a system with itself found it worse; with 1 %% there are more than %d "+
					"in less than one of %d such tests", name, order, got[Worse], times, most, 1000*cells)
			}
		}
	}
	if wrong > max(all/100, 1) {
		t.Errorf("%d of %d comparisons of a system with itself found it worse", wrong, all)
	}
}

// TestARegressionIsFoundWhenTheRunsCanShowIt: a tenth slower, where the comparison says that it can show less than that.
func TestARegressionIsFoundWhenTheRunsCanShowIt(t *testing.T) {
	t.Parallel()
	steady := system{0.01, 0.02, 0}
	for order, least := range map[string]float64{"ABABAB": 0.75, "ABABABABAB": 0.99} {
		times := trials(100)
		if got := steady.verdicts(t, order, 1.1, times); float64(got[Worse]) < least*float64(times) || got[Better] > 0 {
			t.Errorf("%s: %v of %d", order, got, times)
		}
	}
	// One run on each side cannot show it, and says so.
	rng := rand.New(rand.NewPCG(1, 1))
	c, err := compareSides(
		[]Run{steady.run(rng, 0, 1)},
		[]Run{steady.run(rng, 1, 1.1)},
		[2][]float64{{0}, {1}},
		nil,
		Defaults(),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"qps", "avg_ms", "p95_ms"} {
		m := of(c, name)
		if m.Verdict != Unclear || *m.Detectable < 10 || m.MoreRuns == nil || *m.MoreRuns < 2 {
			t.Errorf("%+v", m)
		}
	}
}

// TestARegressionIsFoundInTheUnluckyOrder: where all runs of A come first, five on each side show what is a fifth slower and
// three what is a third slower, also of a system that becomes slower meanwhile.
func TestARegressionIsFoundInTheUnluckyOrder(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]system{"a usual machine": {0.025, 0.04, 0}, "one that drifts": {0.015, 0.03, 0.005},
		"one that drifts much": {0.015, 0.03, 0.02}} {
		for order, scale := range map[string]float64{"AAAAABBBBB": 1.2, "AAABBB": 1.35} {
			times := trials(100)
			if got := s.verdicts(t, order, scale, times); float64(got[Worse]) < 0.95*float64(times) {
				t.Errorf("%s, %s, %v times as slow: %v of %d", name, order, scale, got, times)
			}
		}
	}
}

// TestMoreRunsAreAsManyAsItSays: with as many more runs the interval is within the tolerance.
func TestMoreRunsAreAsManyAsItSays(t *testing.T) {
	for _, deviation := range []float64{0.005, 0.02, 0.05} {
		for have := 1; have < 6; have++ {
			n := noise{deviation: deviation, free: usualRuns + 2*(have-1), a: have, b: have}
			more, ok := n.moreRuns(5, false)
			if !ok {
				t.Fatalf("%v, %d: too many", deviation, have)
			}
			at := func(k int) float64 {
				return noise{deviation: deviation, free: n.free + 2*k, a: have + k, b: have + k}.halfWidth(false)
			}
			if at(more) > 5 || more > 0 && at(more-1) <= 5 {
				t.Errorf("%v with %d runs: %d more show %.3g %%, one less %.3g %%", deviation, have, more, at(more), at(more-1))
			}
		}
	}
}

// TestLikeIsComparedWithLike: in what the sides differ is named, and where it is their workload, load or tables nothing
// is judged. Two runs of one template whose table has grown by their inserts are alike.
func TestLikeIsComparedWithLike(t *testing.T) {
	base := func() engine.Summary {
		return engine.Summary{Validity: engine.VerdictValid, Environment: engine.Environment{ServerVersion: "16.3",
			LoadstoneVersion: "1"}, Setup: engine.SetupOf(engine.Scenario{Workload: engine.Workload{Plugin: "mix",
			Params: json.RawMessage(`{"weights": {"INSERT": 1}, "keys": "zipfian"}`), LoadMode: engine.LoadConcurrency,
			ConcurrentConnections: 8}}, &engine.Plan{Tables: []engine.Table{{Name: "orders", Rows: 100_000}}})}
	}
	setup := func(change func(*engine.Scenario, *engine.Plan)) func(*engine.Summary) {
		return func(s *engine.Summary) {
			sc := engine.Scenario{Workload: engine.Workload{Plugin: "mix",
				Params:   json.RawMessage(`{"keys":"zipfian","weights":{"INSERT":1}}`), // the same, written otherwise
				LoadMode: engine.LoadConcurrency, ConcurrentConnections: 8}}
			plan := engine.Plan{Tables: []engine.Table{{Name: "orders", Rows: 100_000}}}
			change(&sc, &plan)
			s.Setup = engine.SetupOf(sc, &plan)
		}
	}
	rate := 500.0
	for name, c := range map[string]struct {
		change func(*engine.Summary)
		what   string
		judged bool
	}{
		"nothing":            {setup(func(*engine.Scenario, *engine.Plan) {}), "", true},
		"a table that grew":  {setup(func(_ *engine.Scenario, p *engine.Plan) { p.Tables[0].Rows += 5000 }), "", true},
		"an older version's": {func(s *engine.Summary) { s.Setup = nil }, "", true},
		"a larger table":     {setup(func(_ *engine.Scenario, p *engine.Plan) { p.Tables[0].Rows *= 2 }), "table orders", false},
		"another table":      {setup(func(_ *engine.Scenario, p *engine.Plan) { p.Tables[0].Name = "items" }), "table items", false},
		"another plugin":     {setup(func(sc *engine.Scenario, _ *engine.Plan) { sc.Workload.Plugin = "tpcb" }), "workload", false},
		"other parameters":   {setup(func(sc *engine.Scenario, _ *engine.Plan) { sc.Workload.Params = json.RawMessage(`{}`) }), "workload", false},
		"more connections":   {setup(func(sc *engine.Scenario, _ *engine.Plan) { sc.Workload.ConcurrentConnections = 9 }), "load", false},
		"think time":         {setup(func(sc *engine.Scenario, _ *engine.Plan) { sc.Workload.ThinkTimeMs = 5 }), "load", false},
		"a rate": {setup(func(sc *engine.Scenario, _ *engine.Plan) {
			sc.Workload.LoadMode, sc.Workload.TargetQPS = engine.LoadQPS, &rate
		}), "load", false},
		"another server":  {func(s *engine.Summary) { s.Environment.ServerVersion = "17.0" }, "server version", true},
		"another version": {func(s *engine.Summary) { s.Environment.LoadstoneVersion = "2" }, "Loadstone version", true},
	} {
		var a, b []MeasuredRun
		for i := range 4 {
			x, y := measured(fmt.Sprint("a", i), 1000, 5, 30), measured(fmt.Sprint("b", i), 600, 8, 30)
			id := [2]string{x.Summary.RunID, y.Summary.RunID}
			x.Summary, y.Summary = base(), base()
			c.change(&y.Summary)
			x.Summary.RunID, y.Summary.RunID = id[0], id[1]
			a, b = append(a, x), append(b, y)
		}
		got, err := Between(a, b, Defaults())
		if err != nil {
			t.Fatal(err)
		}
		named := slices.ContainsFunc(got.Unlike, func(u Unlike) bool { return u.What == c.what && u.Judged == c.judged })
		if named == (c.what == "") || c.what == "" && len(got.Unlike) > 0 || (got.Verdict == Worse) != c.judged ||
			c.what != "" && !strings.Contains(strings.Join(got.Notes, " "), c.what) {
			t.Errorf("%s: %s, %+v, %q", name, got.Verdict, got.Unlike, got.Notes)
		}
	}
}
