package lifecycle

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/findmax"
)

// stepGrace is how much longer than its settling and its measurement a step may
// take until it is judged by what has been heard: connections may be slow to
// open, and run workers to report.
const stepGrace = 15 * time.Second

// Search is the part of a run that looks for the limit:
//
//	MEASUREMENT begins   → step 1
//	a step was measured  → judged; next step, or stop(duration_elapsed) when the search is over
//	a step takes too long → measure: judged by what there is
//	the longest search   → the search ends with what is known, stop(duration_elapsed)
//	                       (all repetitions together)
//	stop                 → the search ends with what is known
type Search struct {
	config engine.FindMax
	series *findmax.Series
	repeat int
	// name gives the id of a step.
	name func(number int) string
	// number is that of the step under way, 0 before the first; it was begun at.
	number  int
	beganAt time.Time
	// length is how long it is measured.
	length           time.Duration
	measureRequested bool // to measure it, because it took too long
}

// searchConfig is a search up to a highest level.
func searchConfig(f engine.FindMax, most float64) findmax.Config {
	c := findmax.Config{Unit: f.Unit, Start: float64(f.StartConcurrency), Increment: float64(f.ConcurrencyIncrement),
		Max:             most,
		QPSStabilityPct: f.QPSStabilityPct, LatencyStabilityPct: f.LatencyStabilityPct, MaxErrorRatePct: f.MaxErrorRatePct,
		StepSeconds: f.StepDurationSeconds, SLO: f.SLO}
	if f.Unit == engine.FindMaxRate && f.StartRate != nil {
		c.Start, c.Increment = *f.StartRate, *f.StartRate
		if f.RateIncrement != nil {
			c.Increment = *f.RateIncrement
		}
	}
	return c
}

// NewSearch is a search that has not begun, so many times in a row; name gives the id of a step.
func NewSearch(f engine.FindMax, repeat int, name func(number int) string) *Search {
	return &Search{
		config: f,
		repeat: repeat,
		name:   name,
		length: f.StepDuration(),
		series: findmax.NewSeries(searchConfig(f, 0), repeat),
	}
}

// Series is what the search has found; it is not to be changed.
func (s *Search) Series() *findmax.Series { return s.series }

// Settled reports whether the step under way has that number, and had settled at that time.
func (s *Search) Settled(number int, at time.Time) bool {
	return s.number > 0 && s.number == number && !at.Before(s.beganAt.Add(s.config.Settle()))
}

// setMaxLevel sets the highest level, before the first step.
func (s *Search) setMaxLevel(most float64) {
	s.series = findmax.NewSeries(searchConfig(s.config, most), s.repeat)
}

// deadline is when the step under way is judged by what there is.
func (s *Search) deadline() time.Time {
	return s.beganAt.Add(s.config.Settle() + s.length + stepGrace)
}

// nextStep begins the next step, or ends the run when the search is over. It
// does nothing in a run without a search.
func (m *Machine) nextStep(now time.Time) []Action {
	if m.plan.Search == nil || m.Stopping() {
		return nil
	}
	s := m.plan.Search
	level, stage, ok := s.series.Next()
	if !ok {
		return append(m.stop(now, engine.StopDurationElapsed, "", ""), m.endWhenLeft(now)...)
	}
	s.number++
	s.beganAt, s.measureRequested = now, false
	s.length = time.Duration(float64(s.config.StepDuration()) * s.series.Lengthening()).Round(time.Millisecond)
	return []Action{BeginStep{Number: s.number, Settle: s.config.Settle(), Length: s.length, Level: level, Stage: stage}}
}

// onMeasured judges the step under way. What to do next comes first: nothing but
// its event stands before the next step.
func (m *Machine) onMeasured(now time.Time, h StepMeasured) []Action {
	s := m.plan.Search
	if s == nil || m.Stopping() || m.phase != engine.PhaseMeasurement || h.Number != s.number || s.number == 0 {
		return nil
	}
	level, stage, _ := s.series.Next()
	if _, again := s.series.Observe(h.Observation); again != "" {
		return append(m.nextStep(now), SkipStep{Number: h.Number, Level: level, Stage: stage, Why: again})
	}
	s.series.SetTimes(s.beganAt, now, h.Length)
	step := s.series.SetStepID(s.number, s.name(s.number))
	return append(m.nextStep(now), RecordStep{step})
}

// repeatStep repeats the step under way without judging it.
func (m *Machine) repeatStep(now time.Time, number int) []Action {
	if s := m.plan.Search; s == nil || m.Stopping() || m.phase != engine.PhaseMeasurement || number != s.number ||
		number == 0 {
		return nil
	}
	return m.nextStep(now)
}

// searchTick decides by time; it returns nil when nothing is due.
func (m *Machine) searchTick(now time.Time) []Action {
	s := m.plan.Search
	if s == nil || s.number == 0 || s.measureRequested || now.Before(s.deadline()) {
		return nil
	}
	s.measureRequested = true
	return []Action{MeasureStep{s.number}}
}

// endSearch closes the search of a run that stops.
func (m *Machine) endSearch(reason engine.StopReason, now time.Time) {
	if m.plan.Search == nil {
		return
	}
	why := "The run failed before the search was over"
	switch {
	case reason == engine.StopUserRequested:
		why = "The run was stopped before the search was over"
	case reason == engine.StopGuardrail:
		why = "A guardrail stopped the run before the search was over"
	case reason == engine.StopDurationElapsed && now.Sub(m.measureAt) >= m.plan.Duration:
		why = fmt.Sprintf("The search was not over after %.6g s, the longest that find_max.max_duration_seconds allows",
			m.plan.Duration.Seconds())
	case reason == engine.StopDurationElapsed:
		why = "The workload ended before the search was over"
	}
	m.plan.Search.series.End(why)
}

// StepSent notes that the workers were told of a step at now.
func (m *Machine) StepSent(now time.Time, number int) {
	if s := m.plan.Search; s != nil && s.number == number && !m.Stopping() {
		s.beganAt, s.measureRequested = Later(now, m.startAt), false
	}
}
