package findmax

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/findmax/findmaxtest"
)

// runSeries runs a series on targets that hold so many connections, one for each search.
func runSeries(t testing.TB, s *Series, holds ...float64) *engine.FindMaxResult {
	t.Helper()
	for range 10_000 {
		level, _, ok := s.Next()
		if !ok {
			return s.Result()
		}
		s.Observe(holding(level, holds[s.Repetition()-1]))
		s.SetTimes(time.Unix(int64(len(s.Steps())), 0), time.Unix(int64(len(s.Steps())+1), 0), time.Second)
	}
	t.Fatal("the series does not end")
	return nil
}

// holding is a step on a target that is fast up to a level, and slow above it.
func holding(level, limit float64) Observation {
	p := 5.0
	if level > limit {
		p = 50
	}
	return Observation{Operations: int64(100 * level), QPS: 100 * level, P50: &p, P95: &p, P99: &p}
}

func TestASeriesTellsHowFarItsAnswersLieApart(t *testing.T) {
	s := NewSeries(config(), 3)
	r := runSeries(t, s, 22, 18, 20)
	if r.MaxConnections == nil || *r.MaxConnections != 20 || !r.Confirmed {
		t.Fatalf("the middle answer is 20, not %+v", r)
	}
	sp := r.Spread
	if sp == nil || sp.Requested != 3 || sp.Finished != 3 || sp.Found != 3 || sp.Level == nil || sp.Level.Median != 20 ||
		sp.Level.Min != 18 || sp.Level.Max != 22 {
		t.Fatalf("spread %+v", sp)
	}
	if cv := *sp.Level.CVPct; math.Abs(cv-10) > 1e-9 {
		t.Errorf("18, 20 and 22 have a coefficient of variation of 10 %%, not %v", cv)
	}
	if len(r.Repetitions) != 3 || *r.Repetitions[0].Level != 22 || *r.Repetitions[1].Level != 18 ||
		*r.Repetitions[2].QPS != 2000 {
		t.Errorf("repetitions %+v", r.Repetitions)
	}
	total := 0
	for _, x := range r.Repetitions {
		total += x.Steps
	}
	if r.Steps != total || len(r.History) != total {
		t.Errorf("%d steps, %d in the history, %d in the repetitions", r.Steps, len(r.History), total)
	}
	for i, step := range r.History {
		if step.StepNumber != i+1 || step.StepEndTime.IsZero() {
			t.Errorf("step %d is number %d, ended %v", i+1, step.StepNumber, step.StepEndTime)
		}
		if first := i == 0 || r.History[i-1].Repetition != step.Repetition; first &&
			(step.TotalTargetConnections != 4 || step.QPSVsPriorPct != nil || *step.P95VsBaselinePct != 0) {
			t.Errorf("search %d does not begin anew: %+v", step.Repetition, step)
		}
	}
	if !strings.Contains(r.Reason, "found 22, 18, 20 connections (median 20, coefficient of variation 10 %)") {
		t.Errorf("reason %q", r.Reason)
	}
}

// TestASeriesOfOneIsASearch: a plain search has no spread, and the same answer and steps.
func TestASeriesOfOneIsASearch(t *testing.T) {
	one := drive(t, New(config()), func(level float64) Observation { return holding(level, 21) })
	r := runSeries(t, NewSeries(config(), 0), 21)
	if r.Spread != nil || r.Repetitions != nil || *r.MaxConnections != *one.MaxConnections || r.Reason != one.Reason ||
		len(r.History) != len(one.History) {
		t.Errorf("%+v\n%+v", r, one)
	}
}

func TestASeriesThatIsEnded(t *testing.T) {
	s := NewSeries(config(), 5)
	for s.Repetition() < 3 || len(s.Steps()) == 0 || s.Steps()[len(s.Steps())-1].Repetition < 3 {
		level, _, _ := s.Next()
		s.Observe(holding(level, 20+float64(s.Repetition()))) // 21, 22, and one that is not over
	}
	s.End("The run was stopped before the search was over")
	s.End("again")
	r := s.Result()
	if r.MaxConnections == nil || *r.MaxConnections != 21 || r.Spread.Finished != 2 || r.Spread.Requested != 5 ||
		r.Spread.Level.Median != 21.5 {
		t.Fatalf("%+v, %+v", r, r.Spread)
	}
	if !strings.HasPrefix(r.Reason, "The run was stopped before the search was over. 2 of 5 searches were finished") {
		t.Errorf("reason %q", r.Reason)
	}
	if _, _, ok := s.Next(); ok {
		t.Error("an ended series goes on")
	}
	// One that is ended within its first search answers with what that knew.
	s = NewSeries(config(), 2)
	s.Observe(holding(4, 20))
	s.End("It was stopped")
	if r := s.Result(); !r.Found || *r.MaxConnections != 4 || r.Confirmed || r.Spread.Finished != 1 ||
		!strings.Contains(r.Reason, "It was stopped") {
		t.Errorf("%+v", r)
	}
	// And one without a step has no answer.
	s = NewSeries(config(), 2)
	s.End("It was stopped")
	if r := s.Result(); r.Found || r.Spread.Level != nil {
		t.Errorf("%+v", r)
	}
}

// TestASeriesWithoutAnAnswer: searches that find nothing are below all others.
func TestASeriesWithoutAnAnswer(t *testing.T) {
	broken := func(level, limit float64) Observation {
		o := holding(level, limit)
		if limit == 0 {
			o.Errors = o.Operations
		}
		return o
	}
	run := func(holds ...float64) *engine.FindMaxResult {
		s := NewSeries(config(), len(holds))
		for {
			level, _, ok := s.Next()
			if !ok {
				return s.Result()
			}
			s.Observe(broken(level, holds[s.Repetition()-1]))
		}
	}
	if r := run(0, 20, 20); !r.Found || *r.MaxConnections != 20 || r.Spread.Found != 2 {
		t.Errorf("two of three found 20: %+v", r)
	}
	if r := run(0, 20, 0); r.Found || r.Spread.Found != 1 || r.Spread.Level.Median != 20 || r.Spread.Level.CVPct != nil {
		t.Errorf("most found nothing: %+v", r)
	}
}

// TestANoisySearchIsReplayed: where steps scatter the answer lies on a line that is fitted to all of them. Whoever goes
// on behind any step wants the same next as the search that went on by itself, and knows how often the generator was
// late. Steps of which no error is known end no search that had gone on.
func TestANoisySearchIsReplayed(t *testing.T) {
	fitted := false
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 11))
		target := findmaxtest.Kinds()["M/M/c"](12, atLimit, rng)
		cfg := Config{Unit: engine.FindMaxConnections, Start: 2, Increment: 8, Max: 200, QPSStabilityPct: 5,
			LatencyStabilityPct: 20, MaxErrorRatePct: 1, StepSeconds: stepSeconds, SLO: &engine.SLO{P95Ms: ms(1e6)}}
		s := New(cfg)
		for level, stage, ok := s.Next(); ok; level, stage, ok = s.Next() {
			if stage != engine.StageRecovering && stage != engine.StageOverloading && len(s.Steps()) > 0 {
				again := Replay(cfg, slices.Clone(s.Steps()))
				wants, next, more := again.Next()
				if wants != level || next != stage || !more || again.late != s.late || again.answer() != s.answer() {
					t.Fatalf("seed %d, behind step %d: %v %s instead of %v %s, late %d of %d", seed, len(s.Steps()), wants, next,
						level, stage, again.late, s.late)
				}
				ok, _ := s.holding()
				_, fits := fitHinge(ok)
				fitted = fitted || fits
			}
			o := observation(target.Closed(int(level), stepSeconds*s.Lengthening()))
			o.QPSError = max(o.QPSError, 0.01)
			if rng.IntN(8) == 0 {
				late := o
				late.GeneratorLate = "used all of its CPU"
				s.Observe(late)
				_, _ = s.Observe(o)
				continue
			}
			s.Observe(o)
		}
		unknown := slices.Clone(s.Steps())
		for i := range unknown {
			unknown[i].QPSError = 0
		}
		if again := Replay(cfg, unknown); len(again.Steps()) != len(unknown) {
			t.Errorf("seed %d: %d of %d steps", seed, len(again.Steps()), len(unknown))
		}
	}
	if !fitted {
		t.Error("no line was fitted")
	}
}

// TestASeriesIsReplayed: wherever a process ends, its successor knows the same.
func TestASeriesIsReplayed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		repeat := rapid.IntRange(1, 4).Draw(t, "repeat")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		limits := make([]float64, repeat)
		for i := range limits {
			limits[i] = 15 + rng.Float64()*20
		}
		s := NewSeries(config(), repeat)
		steps := rapid.IntRange(0, 60).Draw(t, "steps")
		for range steps {
			level, _, ok := s.Next()
			if !ok {
				break
			}
			s.Observe(holding(level, limits[s.Repetition()-1]))
		}
		kept := slices.Clone(s.Steps())
		again := ReplaySeries(config(), repeat, kept)
		for _, x := range []*Series{s, again} {
			x.End("It ended")
		}
		a, b := s.Result(), again.Result()
		la, _ := a.Level()
		lb, _ := b.Level()
		if a.Found != b.Found || la != lb || a.Reason != b.Reason || len(a.History) != len(b.History) ||
			len(a.Repetitions) != len(b.Repetitions) {
			t.Fatalf("%+v\n%+v", a, b)
		}
	})
}
