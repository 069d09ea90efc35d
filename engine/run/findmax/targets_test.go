package findmax

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/findmax/findmaxtest"
)

// The targets serve 200/s at their limit.
const atLimit = 200.0

func observation(s *findmaxtest.Seen) Observation {
	return Observation{Operations: int64(len(s.Took)), QPS: float64(len(s.Took)) / s.Seconds(), Dropped: s.Dropped,
		Due: s.Due, QPSError: StandardError(s.PerSecond), P50: s.At(0.5), P95: s.At(0.95), P99: s.At(0.99)}
}

const stepSeconds = 30

// overConnections is a search of a target over connections.
func overConnections(t *findmaxtest.Target, slo *engine.SLO) *Search {
	s := New(Config{Unit: engine.FindMaxConnections, Start: 2, Increment: 8, Max: 200, QPSStabilityPct: 5,
		LatencyStabilityPct: 20, MaxErrorRatePct: 1, StepSeconds: stepSeconds, SLO: slo})
	for level, _, ok := s.Next(); ok; level, _, ok = s.Next() {
		s.Observe(observation(t.Closed(int(level), stepSeconds*s.Lengthening())))
	}
	return s
}

// overRate is a search of a target over the rate.
func overRate(t *findmaxtest.Target) *Search {
	s := New(Config{Unit: engine.FindMaxRate, Start: atLimit / 5, Increment: atLimit / 5, Max: 1e6, QPSStabilityPct: 5,
		LatencyStabilityPct: 20, MaxErrorRatePct: 1, StepSeconds: stepSeconds})
	for level, _, ok := s.Next(); ok; level, _, ok = s.Next() {
		s.Observe(observation(t.Open(level, stepSeconds*s.Lengthening(), t.Random)))
	}
	return s
}

// seeds are 20, or LOADSTONE_SEEDS; a few in make test.
func seeds(t *testing.T) uint64 {
	t.Helper()
	if asked := os.Getenv("LOADSTONE_SEEDS"); asked != "" {
		n, err := strconv.ParseUint(asked, 10, 32)
		if err != nil || n == 0 {
			t.Fatalf("LOADSTONE_SEEDS is %q, and not a number of searches", asked)
		}
		return n
	}
	if testing.Short() {
		return 4
	}
	return 20
}

// TestTheSearchFindsTheLimit: 20 of 20 searches are within 5 % of the limit, for each kind of target and of search, and
// hysteresis is named where there is some.
func TestTheSearchFindsTheLimit(t *testing.T) {
	t.Parallel()
	kinds, each := findmaxtest.Kinds(), seeds(t)
	if names := slices.Sorted(maps.Keys(kinds)); !slices.Equal(names, []string{"M/M/c", "cliff", "constant slots",
		"falling after the peak", "hysteresis", "noise of 20 %"}) {
		t.Fatalf("%q are the kinds of targets", names)
	}
	for name, kind := range kinds {
		build := func(size int, rng *rand.Rand) *findmaxtest.Target { return kind(size, atLimit, rng) }
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := map[int]float64{}
			for seed := range each {
				rng := rand.New(rand.NewPCG(seed, 11))
				size := 8 + 4*rng.IntN(8)
				s := overConnections(build(size, rng), nil)
				check(t, fmt.Sprintf("seed %d, %d connections", seed, size), s, float64(size))
				checkHysteresis(t, name, s, name == "hysteresis")
				if build(size, rng).Slower != nil {
					size += 40 // what a step leaves behind is in the next one for a moment, and may be too much
				}
				if limits[size] == 0 {
					limits[size] = findmaxtest.RateLimit(build(size, rand.New(rand.NewPCG(1, 1))), atLimit, stepSeconds)
				}
				s = overRate(build(size, rng))
				check(t, fmt.Sprintf("seed %d, %.1f/s on %d slots", seed, limits[size], size), s, limits[size])
				// Where operations take longer the more there are, a schedule that goes on keeps the overload alive.
				checkHysteresis(t, name, s, build(size, rng).Slower != nil)
			}
		})
	}
}

func checkHysteresis(t *testing.T, name string, s *Search, may bool) {
	t.Helper()
	if has := s.Result().Hysteresis != nil; has && !may || !has && name == "hysteresis" {
		t.Errorf("hysteresis %+v: %s", s.Result().Hysteresis, s.Result().Reason)
	}
}

func check(t *testing.T, what string, s *Search, limit float64) {
	t.Helper()
	r := s.Result()
	level, ok := r.Level()
	if !ok || math.Abs(level-limit) > 0.05*limit || !r.Confirmed {
		t.Errorf("%s: found %v, confirmed %v in %d steps: %s", what, level, r.Confirmed, r.Steps, r.Reason)
		for _, x := range s.steps {
			t.Logf("  %s %v: %.1f/s P95 %.1f %s", x.Stage, x.Level(), x.QPS, *x.P95LatencyMs, x.Outcome)
		}
	}
	t.Logf("%s: found %.4g in %d steps", what, level, r.Steps)
}

// TestAGeneratorThatStandsStillIsNoLimit: what is due while the generator stands still comes at once, and a target that
// stays overloaded behind such a burst is told to sustain what it does, or nothing. Who recovers is judged as ever.
func TestAGeneratorThatStandsStillIsNoLimit(t *testing.T) {
	t.Parallel()
	for name, kind := range findmaxtest.Kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			right, none, limit := 0, 0, 0.0
			for seed := range seeds(t) {
				rng := rand.New(rand.NewPCG(seed, 12))
				const size = 80 // 0.4 s in service
				if limit == 0 {
					limit = findmaxtest.RateLimit(kind(size, atLimit, rand.New(rand.NewPCG(1, 1))), atLimit, stepSeconds)
				}
				target := kind(size, atLimit, rng)
				// It stands still in each tenth of the seconds, for 30 to 150 ms.
				stood := map[float64]float64{}
				target.Begins = func(due float64) float64 {
					second := math.Floor(due)
					if _, drawn := stood[second]; !drawn {
						stood[second] = 0
						if rng.IntN(10) == 0 {
							stood[second] = 0.03 + 0.12*rng.Float64()
						}
					}
					return max(due, min(second+stood[second], second+1))
				}
				s := New(Config{Unit: engine.FindMaxRate, Start: atLimit / 5, Increment: atLimit / 5, Max: 1e6, QPSStabilityPct: 5,
					LatencyStabilityPct: 20, MaxErrorRatePct: 1, StepSeconds: stepSeconds})
				for level, _, ok := s.Next(); ok; level, _, ok = s.Next() {
					clear(stood)
					o := observation(target.Open(level, stepSeconds*s.Lengthening(), target.Random))
					for _, seconds := range stood {
						o.StoodStillMs = max(o.StoodStillMs, seconds*1000)
					}
					s.Observe(o)
				}
				r := s.Result()
				switch level, found := r.Level(); {
				case !found && target.Slower != nil && strings.Contains(r.Reason, "the generator stood still"):
					none++
				case found && math.Abs(level-limit) <= 0.05*limit:
					right++
				default:
					t.Errorf("seed %d: %.4g of %.4g: %s", seed, level, limit, r.Reason)
					for _, x := range s.steps {
						t.Logf("  %s %v: %.1f/s P95 %.1f %s, stood still for %.0f ms", x.Stage, x.Level(), x.QPS, *x.P95LatencyMs,
							x.Outcome, x.StoodStillMs)
					}
				}
			}
			t.Logf("%d right, %d without an answer", right, none)
		})
	}
}
