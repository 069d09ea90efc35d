package findmax

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
)

// queueModel is a queueing model of a database in virtual time: so many servers, each
// with exponential service times, one queue in order of arrival.
type queueModel struct {
	servers int
	mean    float64 // service time, seconds
	state   *uint64 // of the model's own generator, SplitMix64
}

// exponential is an exponentially distributed number with that mean. The
// library's would be instrumented by the race detector.
//
//go:norace
func (f queueModel) exponential(mean float64) float64 {
	*f.state += 0x9e3779b97f4a7c15
	z := *f.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return -mean * math.Log((float64(z>>11)+0.5)*0x1p-53)
}

// job is one operation in service.
type job struct{ end, arrived float64 }

// jobs is a heap by the end of service.
type jobs []job

//go:norace
func (h jobs) down() {
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h); c++ {
			if h[c].end < h[least].end {
				least = c
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// The model's inner loops are one goroutine's and are run some hundred million
// times: they are kept from the race detector's instrumentation, which would
// triple what the trials take. The search itself is not.

// closed runs n connections without think time and measures that many operations after a warm-up.
//
//go:norace
func (f queueModel) closed(n, operations int) Observation {
	busy := make(jobs, min(n, f.servers))
	for i := range busy {
		busy[i].end = f.exponential(f.mean)
	}
	slices.SortFunc(busy, func(a, b job) int { return cmp.Compare(a.end, b.end) })
	// The queue is a ring: who ends joins its tail and its head is served.
	waiting, head := make([]float64, max(n-f.servers, 0)), 0
	warm := operations / 5
	seen := make([]int32, bucketCount)
	var begin, now float64
	for i := range warm + operations {
		now = busy[0].end
		if i == warm {
			begin = now
		} else if i > warm {
			seen[bucket((now-busy[0].arrived)*1000)]++
		}
		next := now
		if len(waiting) > 0 {
			next, waiting[head] = waiting[head], now
			head = (head + 1) % len(waiting)
		}
		busy[0] = job{now + f.exponential(f.mean), next}
		busy.down()
	}
	return observed(seen, now-begin)
}

// open offers a Poisson stream of that rate.
//
//go:norace
func (f queueModel) open(rate float64, operations int) Observation {
	free := make(jobs, f.servers)
	seen := make([]int32, bucketCount)
	var now float64
	for range operations {
		now += f.exponential(1 / rate)
		free[0].end = max(now, free[0].end) + f.exponential(f.mean)
		seen[bucket((free[0].end-now)*1000)]++
		free.down()
	}
	return observed(seen, now)
}

// The model counts latencies in buckets that are found from the bits of the
// number: 1024 in each doubling, so one is at most 1.001 times as wide as it
// begins, far finer than what the search must tell apart. They begin at 2⁻¹⁴ ms
// and end at 2¹⁶ ms.
const (
	bucketShift = 52 - 10
	minBucket   = (1023 - 14) << 10
	bucketCount = 30 << 10
)

//go:norace
func bucket(ms float64) int {
	return min(max(int(math.Float64bits(ms)>>bucketShift)-minBucket, 0), bucketCount-1)
}

// observed takes latencies in milliseconds, counted in buckets.
func observed(counts []int32, seconds float64) Observation {
	total := 0
	for _, n := range counts {
		total += int(n)
	}
	at := func(q float64) *float64 {
		left := int(q * float64(total))
		for i, n := range counts {
			if left -= int(n); left < 0 {
				v := math.Float64frombits(uint64(i+minBucket) << bucketShift)
				return &v
			}
		}
		return nil
	}
	return Observation{Operations: int64(total), QPS: float64(total) / seconds, P50: at(0.50), P95: at(0.95),
		P99: at(0.99)}
}

func drive(t testing.TB, s *Search, run func(level float64) Observation) *engine.FindMaxResult {
	t.Helper()
	for range 10_000 {
		level, _, ok := s.Next()
		if !ok {
			return s.Result()
		}
		s.Observe(run(level))
	}
	t.Fatal("the search does not end")
	return nil
}

func config() Config {
	return Config{Unit: engine.FindMaxConnections, Start: 4, Increment: 8, Max: 1000, QPSStabilityPct: 5,
		LatencyStabilityPct: 20, MaxErrorRatePct: 1}
}

// closedP95 is the 95th percentile, in mean service times, of an operation in a
// closed system with n connections: it waits for n − servers departures, which
// come at the servers' joint rate, and is then served. Found by integrating the
// distribution, not by simulation.
func closedP95(servers, n int) float64 {
	waits := max(n-servers, 0)
	const dt = 0.01
	// The waiting time is Erlang(waits, servers): its density by the recursion of the Poisson process.
	below := func(x float64) float64 {
		// P(W + S ≤ x) = P(W ≤ x) − ∫ w(u) e^−(x−u) du
		total := 0.0
		if waits == 0 {
			return 1 - math.Exp(-x)
		}
		logGamma, _ := math.Lgamma(float64(waits))
		c := float64(servers)
		for u := dt / 2; u < x; u += dt {
			w := math.Exp(float64(waits)*math.Log(c) + float64(waits-1)*math.Log(u) - c*u - logGamma)
			total += w * (1 - math.Exp(-(x - u))) * dt
		}
		return total
	}
	lo, hi := 0.0, 30.0
	for hi-lo > 0.001 {
		if mid := (lo + hi) / 2; below(mid) < 0.95 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// TestFindsTheLatencyKnee: within 5 % of the analytic limit in every trial.
func TestFindsTheLatencyKnee(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := queueModel{servers: 30 + rng.IntN(70), mean: 0.002 + 0.01*rng.Float64(), state: new(rng.Uint64())}
		cfg := config()
		cfg.QPSStabilityPct = -100 // the latency rule alone
		r := drive(t, New(cfg), func(level float64) Observation { return f.closed(int(level), 40_000) })
		limit := closedP95(f.servers, 1) * 1.2
		knee := f.servers + sort.Search(2*f.servers,
			func(more int) bool { return closedP95(f.servers, f.servers+more+1) > limit })
		t.Logf("seed %d: %d servers: the knee is at %d, found %d in %d steps", seed, f.servers, knee, *r.MaxConnections,
			r.Steps)
		if !r.Found || !r.Confirmed || r.Limit != engine.OutcomeDegraded ||
			math.Abs(float64(*r.MaxConnections-knee)) > 0.05*float64(knee) {
			t.Errorf("seed %d: %d servers: the knee is at %d, the search says %+v (%v)", seed, f.servers, knee, r,
				r.MaxConnections)
		}
	}
}

// TestFindsTheRate: an M/M/1 target keeps a P99 objective up to a load that is known exactly.
func TestFindsTheRate(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t) {
		rng := rand.New(rand.NewPCG(seed, 3))
		f := queueModel{servers: 1, mean: 0.001 + 0.004*rng.Float64(), state: new(rng.Uint64())}
		// P99 of M/M/1 is ln 100 ÷ (µ − λ).
		objective := 1000 * math.Log(100) * f.mean * 4
		knee := (1 - 1.0/4) / f.mean
		cfg := Config{Unit: engine.FindMaxRate, Start: 0.1 / f.mean, Increment: 0.15 / f.mean, Max: 1e6,
			SLO: &engine.SLO{P99Ms: &objective}, MaxErrorRatePct: 1}
		r := drive(t, New(cfg), func(level float64) Observation { return f.open(level, 60_000) })
		if !r.Found || math.Abs(*r.MaxQPSTarget-knee) > 0.05*knee {
			t.Errorf("seed %d: the limit is %.1f/s, the search says %+v", seed, knee, r)
		}
	}
}

func ms(v float64) *float64 { return &v }

func steady(level float64) Observation {
	return Observation{Operations: 1000, QPS: level * 100, P50: ms(1), P95: ms(2), P99: ms(3)}
}

func TestAnswers(t *testing.T) {
	errorsAbove := func(limit float64) func(float64) Observation {
		return func(level float64) Observation {
			o := steady(level)
			if level > limit {
				o.Errors = 200
			}
			return o
		}
	}
	tests := []struct {
		name   string
		change func(*Config)
		run    func(level float64) Observation
		want   string // found level, outcome and a part of the reason
	}{
		{"errors begin above 37", nil, errorsAbove(37), "37 ERROR_THRESHOLD 20 % of the operations failed; 1 % are allowed"},
		{"errors begin below the first step", nil, errorsAbove(2), "2 ERROR_THRESHOLD At 3 connections"},
		{"no level holds", nil, errorsAbove(0), "none ERROR_THRESHOLD No level that was tried is sustained. At 1 connection"},
		{"an objective that nothing meets", func(c *Config) { c.SLO = &engine.SLO{P99Ms: ms(0.5)} }, steady,
			"none DEGRADED P99 was 3 ms; the objective is 0.5 ms"},
		{"the upper bound", func(c *Config) { c.Max = 50 }, steady, "50  the limit lies above 50 connections"},
		{"a start above the upper bound", func(c *Config) { c.Start, c.Max = 60, 50 }, steady, "60  the limit lies above"},
		{"the warehouse queues", nil, func(level float64) Observation {
			o := steady(level)
			o.Queued = level >= 24
			return o
		}, "23 QUEUE_DETECTED the warehouse had queries waiting"},
		{"a target that answers nothing", nil, func(float64) Observation { return Observation{} },
			"none DEGRADED no operation ended within the step"},
		{"an objective on errors", func(c *Config) { c.SLO = &engine.SLO{ErrorRatePct: ms(30)} }, errorsAbove(3),
			"1000  the limit lies above"},
		{"a rate that drops", func(c *Config) { c.Unit, c.Start, c.Increment = engine.FindMaxRate, 100, 100 },
			func(level float64) Observation {
				o := Observation{Operations: 10_000, QPS: level, P50: ms(1), P95: ms(2), P99: ms(3)}
				if level > 512 {
					o.Dropped = 100
				}
				return o
			}, "512 PLATEAU were dropped, because too many were waiting"},
		{"a rate that is not reached", func(c *Config) { c.Unit, c.Start, c.Increment = engine.FindMaxRate, 100, 100 },
			func(level float64) Observation {
				return Observation{Operations: 10_000, QPS: min(level, 512), P50: ms(1), P95: ms(2), P99: ms(3)}
			}, "512 PLATEAU only 512/s were done"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config()
			if tt.change != nil {
				tt.change(&cfg)
			}
			r := drive(t, New(cfg), tt.run)
			got := "none"
			if r.Found {
				var level float64
				if r.MaxConnections != nil {
					level = float64(*r.MaxConnections)
				} else {
					level = *r.MaxQPSTarget
				}
				got = fmt.Sprintf("%.0f", level)
			}
			want := strings.SplitN(tt.want, " ", 3)
			near := got == want[0]
			if cfg.Unit == engine.FindMaxRate {
				var a, b float64
				_, _ = fmt.Sscan(got, &a)
				_, _ = fmt.Sscan(want[0], &b)
				near = math.Abs(a-b) <= 0.025*b
			}
			if !near || string(r.Limit) != want[1] || !strings.Contains(r.Reason, want[2]) {
				t.Errorf("got %s %s %q, want %q", got, r.Limit, r.Reason, tt.want)
			}
		})
	}
}

// TestARefutedAnswerIsNotGiven: a level that was stable once and not again is not the answer.
func TestARefutedAnswerIsNotGiven(t *testing.T) {
	tried := map[float64]int{}
	r := drive(t, New(config()), func(level float64) Observation {
		tried[level]++
		o := steady(level)
		if level > 40 || level > 30 && tried[level] > 1 {
			o.P95 = ms(9)
		}
		return o
	})
	if !r.Found || !r.Confirmed || *r.MaxConnections > 30 || *r.MaxConnections < 28 {
		t.Errorf("%+v after %v", r, tried)
	}
}

// TestTheFirstLevelIsRepeated: where only the first level holds, one repeated step that is slower than the
// baseline is noise, because both are of one level; three are told.
func TestTheFirstLevelIsRepeated(t *testing.T) {
	slowAgain := func(times int) *engine.FindMaxResult {
		cfg, tried := config(), 0
		cfg.Start, cfg.Increment = 1, 1
		s := New(cfg)
		return drive(t, s, func(level float64) Observation {
			o := steady(level)
			if _, stage, _ := s.Next(); stage == engine.StageRecovering {
				return o
			}
			if level == 1 {
				tried++
			}
			if level > 1 || tried > 1 && tried <= 1+times {
				o.P95 = ms(9)
			}
			return o
		})
	}
	for times := range 3 {
		if r := slowAgain(times); !r.Found || !r.Confirmed || *r.MaxConnections != 1 || *r.P95LatencyMs != *r.BaselineP95Ms {
			t.Errorf("slower %d times: %+v", times, r)
		}
	}
	if r := slowAgain(3); r.Found ||
		!strings.HasSuffix(r.Reason,
			"3 repeated steps of the first level were slower than the baseline, which is its own, so the target or its "+
				"machine is not steady.") {
		t.Errorf("slower 3 times: %+v", r)
	}
}

func TestASearchThatIsCutShort(t *testing.T) {
	s := New(config())
	s.End("The run was stopped")
	if r := s.Result(); r.Found || r.Reason != "The run was stopped. No step was finished, so there is no answer." {
		t.Errorf("%+v", r)
	}
	s = New(config())
	s.Observe(steady(4))
	s.Observe(steady(12))
	s.End("The run was stopped")
	s.End("again")
	if r := s.Result(); !r.Found || *r.MaxConnections != 12 || r.Confirmed ||
		!strings.HasPrefix(r.Reason, "The run was stopped. The target sustains 12 connections.") {
		t.Errorf("%+v", r)
	}
}

// TestEverySearchEnds: whatever a target answers, the search ends, stays within
// its bounds and never answers with a level that was last seen unstable.
func TestEverySearchEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := config()
		cfg.Start = float64(rapid.IntRange(1, 50).Draw(t, "start"))
		cfg.Increment = float64(rapid.IntRange(1, 50).Draw(t, "increment"))
		cfg.Max = float64(rapid.IntRange(1, 400).Draw(t, "max"))
		if rapid.Bool().Draw(t, "rate") {
			cfg.Unit = engine.FindMaxRate
		}
		s := New(cfg)
		last := map[float64]engine.StepOutcome{}
		for n := 0; ; n++ {
			level, _, ok := s.Next()
			if !ok {
				break
			}
			if n > 1000 {
				t.Fatal("the search does not end")
			}
			if level <= 0 || level > max(cfg.Max, cfg.Start) || cfg.Unit == engine.FindMaxConnections &&
				level != math.Trunc(level) {
				t.Fatalf("level %v", level)
			}
			o := Observation{Operations: rapid.Int64Range(0, 1000).Draw(t, "operations"),
				QPS: rapid.Float64Range(0, 500).Draw(t, "qps"), Queued: rapid.IntRange(0, 9).Draw(t, "queued") == 0}
			if o.Operations > 0 {
				o.Errors = rapid.Int64Range(0, o.Operations/20).Draw(t, "errors")
				o.P95 = ms(rapid.Float64Range(0, 10).Draw(t, "p95"))
			}
			step, again := s.Observe(o)
			if again == "" {
				last[level] = step.Outcome
			}
		}
		r := s.Result()
		if r.Found != (r.MaxConnections != nil || r.MaxQPSTarget != nil) || r.Reason == "" || r.Steps != len(s.Steps()) {
			t.Fatalf("%+v", r)
		}
		if r.Found && r.Confirmed {
			if out := last[s.answer()]; out != engine.OutcomeStable && out != engine.OutcomePlateau {
				t.Fatalf("the confirmed answer %v was last %s", s.answer(), out)
			}
		}
	})
}

// TestWhatTheLastLevelSays: a last step at the highest level that brings nothing is no reason to say that the limit lies
// above it, and neither is the first of two.
func TestWhatTheLastLevelSays(t *testing.T) {
	for _, c := range []struct {
		slots, start, increment, most float64
	}{{6, 4, 4, 8}, {8, 2, 4, 10}, {8, 4, 8, 12}, {5, 1, 1, 6}, {8, 8, 4, 12}, {8, 4, 4, 8}} {
		cfg := config()
		cfg.Start, cfg.Increment, cfg.Max, cfg.LatencyStabilityPct = c.start, c.increment, c.most, 1000
		r := drive(t, New(cfg), func(level float64) Observation {
			o := steady(level)
			o.QPS = min(level, c.slots) * 100
			return o
		})
		above := c.slots >= c.most
		if r.MaxConnections == nil || float64(*r.MaxConnections) != c.slots || !r.Confirmed ||
			strings.Contains(r.Reason, "the limit lies above") != above {
			t.Errorf("%+v: %s", c, r.Reason)
		}
	}
}

// TestThePeakIsReachedByTheLowestLevel: throughput that falls behind its peak, by little or much.
func TestThePeakIsReachedByTheLowestLevel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		peak := float64(rapid.IntRange(3, 60).Draw(t, "peak"))
		fall := rapid.Float64Range(0, 0.05).Draw(t, "fall")
		cfg := config()
		cfg.Start, cfg.LatencyStabilityPct = float64(rapid.IntRange(1, 4).Draw(t, "start")), 1e6
		cfg.Increment = float64(rapid.IntRange(1, 12).Draw(t, "increment"))
		s := New(cfg)
		for level, _, ok := s.Next(); ok; level, _, ok = s.Next() {
			o := steady(level)
			o.QPS = 100 * min(level, peak) * max(1-fall*max(level-peak, 0), 0.1)
			s.Observe(o)
		}
		if r := s.Result(); r.MaxConnections == nil || math.Abs(float64(*r.MaxConnections)-peak) > 0.05*peak ||
			r.Hysteresis != nil || !r.Confirmed {
			t.Fatalf("the peak is at %v: %s (%d steps)", peak, r.Reason, r.Steps)
		}
	})
}

// TestAStepIsLongEnough: a step in which too few operations end is measured again and longer, the next ones at once,
// and an answer whose steps cannot be long enough says so.
func TestAStepIsLongEnough(t *testing.T) {
	for _, c := range []struct {
		each   float64 // operations a second and connection
		enough bool
	}{{50, true}, {5, true}, {0.1, false}} {
		cfg := config()
		cfg.StepSeconds, cfg.Max, cfg.LatencyStabilityPct = 10, 20, 1000
		s := New(cfg)
		again := 0
		for level, _, ok := s.Next(); ok; level, _, ok = s.Next() {
			o := steady(level)
			o.P99 = o.P95
			o.QPS = level * c.each
			o.Operations = int64(o.QPS * cfg.StepSeconds * s.Lengthening())
			if _, why := s.Observe(o); strings.Contains(why, "operations ended in it") {
				again++
			}
		}
		r := s.Result()
		if r.NotEnoughOperations == c.enough || strings.Contains(r.Reason, "which is not enough") == c.enough || again > 1 {
			t.Errorf("%v: %d lengthened: %s", c.each, again, r.Reason)
		}
		for _, step := range r.History {
			if c.enough && step.TotalQueries < MinOperations {
				t.Errorf("%v: a step with %d operations was judged", c.each, step.TotalQueries)
			}
		}
	}
}

// TestAFailingStepIsMeasuredAgain: one failure of a level does not count, whatever it shows; two do.
func TestAFailingStepIsMeasuredAgain(t *testing.T) {
	for name, fail := range map[string]func(*Observation){
		"errors": func(o *Observation) { o.Errors = o.Operations }, "too slow": func(o *Observation) { o.P95 = ms(50) },
		"queued": func(o *Observation) { o.Queued = true }, "missing": func(o *Observation) { o.Missing = 1 },
		"nothing": func(o *Observation) { o.Operations, o.QPS = 0, 0 },
	} {
		for failures, want := range map[int]int{1: 30, 2: 11} {
			cfg := config()
			cfg.Max = 30
			left := failures
			r := drive(t, New(cfg), func(level float64) Observation {
				o := steady(level)
				if level == 12 && left > 0 {
					left--
					fail(&o)
				}
				return o
			})
			if r.MaxConnections == nil || *r.MaxConnections != want {
				t.Errorf("%s, %d times: %s", name, failures, r.Reason)
			}
		}
	}
}

// TestALateGeneratorNeverCountsAgainstTheTarget: whenever it is late, the answer is right, or there is none.
func TestALateGeneratorNeverCountsAgainstTheTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := float64(rapid.IntRange(5, 40).Draw(t, "limit"))
		late := rapid.IntRange(0, 9).Draw(t, "late")
		s := New(config())
		for n := 0; ; n++ {
			level, _, ok := s.Next()
			if !ok {
				break
			}
			o := holding(level, limit)
			if rapid.IntRange(0, 9).Draw(t, "x") < late {
				o.P95, o.QPS, o.GeneratorLate = ms(500), o.QPS/3, "used all of its CPU"
			}
			s.Observe(o)
		}
		r := s.Result()
		if r.Found && float64(*r.MaxConnections) != limit || r.Found && !r.Confirmed ||
			!r.Found && (r.LateSteps < maxLate || !strings.Contains(r.Reason, "The generator was late")) {
			t.Fatalf("the limit is %v: %s", limit, r.Reason)
		}
	})
}

// TestALateGeneratorKeepsAConfirmedAnswer: throughput collapses above the answer, so that the search overloads the target
// once more when the answer is confirmed. A generator that is late then, or at whatever moment behind a confirmation,
// takes nothing away.
func TestALateGeneratorKeepsAConfirmedAnswer(t *testing.T) {
	collapses := func(level float64) Observation {
		o := steady(level)
		if level > 20 {
			o.QPS = 500
		}
		return o
	}
	overloading := false
	for lateFrom := 0; ; lateFrom++ {
		s, confirmed, stage := New(config()), false, engine.SearchStage("")
		n := 0
		for level, now, ok := s.Next(); ok; level, now, ok = s.Next() {
			o := collapses(level)
			if n++; n > lateFrom {
				if n == lateFrom+1 {
					confirmed, stage = s.at(s.answer()).confirmed(), now
				}
				o.GeneratorLate = "used all of its CPU"
			}
			s.Observe(o)
		}
		if n <= lateFrom {
			break // it was over before
		}
		r := s.Result()
		if r.Found != confirmed || r.Confirmed != confirmed || confirmed && *r.MaxConnections != 20 ||
			!strings.HasPrefix(r.Reason, "The generator was late in 5 steps in a row") || r.LateSteps != maxLate {
			t.Errorf("late from step %d (%s) on: %+v", lateFrom+1, stage, r)
		}
		if stage == engine.StageOverloading {
			overloading = true
			if !strings.Contains(r.Reason, "(hysteresis) could not be looked at. The target sustains 20") {
				t.Error(r.Reason)
			}
		}
	}
	if !overloading {
		t.Error("the search has not overloaded the target")
	}
}
