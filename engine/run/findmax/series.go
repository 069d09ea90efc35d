package findmax

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Series is a search that is made several times, one after another, each from
// its first step and with a baseline of its own. How far the answers lie apart is
// how far one of them can be trusted. A series of one is a plain search.
//
// Steps are numbered through the whole series. It is not safe for concurrent use.
type Series struct {
	cfg     Config
	repeat  int
	current *Search
	// last is the search that observed the last step: now, or the one before it.
	last *Search
	// ended are the answers of the searches that are over.
	ended []*engine.FindMaxResult
	steps []engine.FindMaxStep
	// result is the answer of all, nil before.
	result *engine.FindMaxResult
}

// NewSeries begins a series; a repeat below 1 is taken as 1.
func NewSeries(cfg Config, repeat int) *Series {
	return &Series{cfg: cfg, repeat: max(repeat, 1), current: New(cfg)}
}

// ReplaySeries returns a series that has observed the given steps, as an earlier process judged them.
func ReplaySeries(cfg Config, repeat int, steps []engine.FindMaxStep) *Series {
	s := NewSeries(cfg, repeat)
	for len(steps) > 0 && s.result == nil {
		n := slices.IndexFunc(steps, func(x engine.FindMaxStep) bool { return x.Repetition != steps[0].Repetition })
		if n < 0 {
			n = len(steps)
		}
		s.current = Replay(cfg, steps[:n])
		s.last = s.current
		s.steps = append(s.steps, steps[:n]...)
		steps = steps[n:]
		if len(steps) > 0 {
			s.current.endReplayed()
		}
		s.advance()
	}
	return s
}

// Repetition is the number of the search under way, from 1.
func (s *Series) Repetition() int { return min(len(s.ended)+1, s.repeat) }

// Repeat is how many searches there are to be.
func (s *Series) Repeat() int { return s.repeat }

// Next returns the level to run and what for; ok is false when the last search is over.
func (s *Series) Next() (level float64, stage engine.SearchStage, ok bool) { return s.current.Next() }

// Describe names a level of the search.
func (s *Series) Describe(level float64) string { return s.current.describeLevel(level) }

// Max is the highest level that may be tried.
func (s *Series) Max() float64 { return s.current.Max() }

// Steps are the steps judged so far, of all searches. The slice is the series' own.
func (s *Series) Steps() []engine.FindMaxStep { return s.steps }

// Baseline is that of the search under way.
func (s *Series) Baseline() *float64 { return s.current.Baseline() }

// Bounds are those of the search under way.
func (s *Series) Bounds() (stable, unstable *float64) { return s.current.Bounds() }

// Result is the answer, nil until the last search is over.
func (s *Series) Result() *engine.FindMaxResult { return s.result }

// Ended are the answers of the searches that are over.
func (s *Series) Ended() []engine.FindMaxRepetition {
	var list []engine.FindMaxRepetition
	for i, r := range s.ended {
		list = append(list, repetition(i+1, r))
	}
	return list
}

// Lengthening is that of the next step.
func (s *Series) Lengthening() float64 { return s.current.Lengthening() }

// Observe takes what the step at the level that Next named gave; see Search.Observe.
func (s *Series) Observe(o Observation) (step engine.FindMaxStep, again string) {
	number := s.Repetition()
	step, again = s.current.Observe(o)
	if again != "" {
		s.advance()
		return step, again
	}
	s.last = s.current
	step.StepNumber, step.Repetition = len(s.steps)+1, number
	s.steps = append(s.steps, step)
	s.advance()
	return step, ""
}

// SetTimes fills in what the caller knows of the last observed step: its times.
func (s *Series) SetTimes(begun, ended time.Time, measured time.Duration) engine.FindMaxStep {
	noted := s.last.SetTimes(begun, ended, measured)
	step := &s.steps[len(s.steps)-1]
	step.StepStartTime, step.StepEndTime, step.StepDurationSeconds = noted.StepStartTime, noted.StepEndTime,
		noted.StepDurationSeconds
	if s.result != nil {
		s.result.History[len(s.result.History)-1] = *step
	}
	return *step
}

// SetStepID gives the last observed step the number and the id under which it was run:
// a step that was run again has left some numbers out.
func (s *Series) SetStepID(number int, id string) engine.FindMaxStep {
	step := &s.steps[len(s.steps)-1]
	step.StepNumber, step.StepID = number, id
	if s.result != nil {
		s.result.History[len(s.result.History)-1] = *step
	}
	return *step
}

// End closes the series before its time. A search that was not over tells its
// answer only when there is no other.
func (s *Series) End(why string) {
	if s.result != nil {
		return
	}
	if len(s.ended) == 0 {
		s.current.End(why)
		s.ended = append(s.ended, s.current.Result())
		s.conclude("")
		return
	}
	s.conclude(why + ". ")
}

// advance goes on to the next search when one is over.
func (s *Series) advance() {
	r := s.current.Result()
	if r == nil {
		return
	}
	s.ended = append(s.ended, r)
	if len(s.ended) == s.repeat {
		s.conclude("")
		return
	}
	s.current = New(s.cfg)
}

// conclude writes the answer of the series: that of the search in the middle.
func (s *Series) conclude(prefix string) {
	order := slices.Clone(s.ended)
	// One without an answer is below all others.
	slices.SortStableFunc(order, func(a, b *engine.FindMaxResult) int { return cmp.Compare(levelOf(a), levelOf(b)) })
	middle := *order[(len(order)-1)/2]
	middle.Steps, middle.History = len(s.steps), slices.Clone(s.steps)
	s.result = &middle
	if s.repeat == 1 {
		return
	}
	s.current.End("") // its unfinished search has no say
	s.result.Repetitions = s.Ended()
	s.result.Spread = spread(s.repeat, s.ended)
	s.result.Reason = prefix + s.summary(s.result.Spread) + " The answer is the middle one. " + middle.Reason
}

// levelOf is a search's answer, 0 for none.
func levelOf(r *engine.FindMaxResult) float64 {
	level, _ := r.Level()
	return level
}

// summary says in a sentence what the searches found.
func (s *Series) summary(sp *engine.FindMaxSpread) string {
	var list []string
	unit, format := " connections", func(level float64) string { return fmt.Sprintf("%.0f", level) }
	if s.cfg.Unit == engine.FindMaxRate {
		unit, format = "", s.current.describeLevel
	}
	for _, r := range s.ended {
		if level, ok := r.Level(); ok {
			list = append(list, format(level))
		} else {
			list = append(list, "none")
		}
	}
	text := fmt.Sprintf(
		"%d of %d searches were finished, and found %s%s",
		sp.Finished,
		sp.Requested,
		strings.Join(list, ", "),
		unit,
	)
	if sp.Level != nil && sp.Level.CVPct != nil {
		text += fmt.Sprintf(
			" (median %s, coefficient of variation %s %%)",
			formatNumber(sp.Level.Median),
			formatNumber(*sp.Level.CVPct),
		)
	}
	return text + "."
}

func repetition(number int, r *engine.FindMaxResult) engine.FindMaxRepetition {
	out := engine.FindMaxRepetition{Repetition: number, Found: r.Found, Confirmed: r.Confirmed, QPS: r.QPS,
		P50LatencyMs: r.P50LatencyMs, P95LatencyMs: r.P95LatencyMs,
		P99LatencyMs: r.P99LatencyMs, ErrorRate: r.ErrorRate, BaselineP95Ms: r.BaselineP95Ms, Limit: r.Limit,
		FirstUnstable: r.FirstUnstable, Steps: r.Steps, Reason: r.Reason}
	if level, ok := r.Level(); ok {
		out.Level = &level
	}
	return out
}

// spread tells how far the answers lie apart.
func spread(asked int, results []*engine.FindMaxResult) *engine.FindMaxSpread {
	sp := &engine.FindMaxSpread{Requested: asked, Finished: len(results)}
	var levels, rates []float64
	for _, r := range results {
		if level, ok := r.Level(); ok {
			levels = append(levels, level)
			if r.QPS != nil {
				rates = append(rates, *r.QPS)
			}
		}
	}
	sp.Found, sp.Level, sp.QPS = len(levels), spreadOf(levels), spreadOf(rates)
	return sp
}

// spreadOf describes values; nil without any.
func spreadOf(values []float64) *engine.Dispersion {
	n := len(values)
	if n == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	out := &engine.Dispersion{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
	if n < 2 {
		return out
	}
	mean, squares := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(n)
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	if mean > 0 {
		cv := math.Sqrt(squares/float64(n-1)) / mean * 100
		out.CVPct = &cv
	}
	return out
}
