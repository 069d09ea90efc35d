package orchestrator

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/findmax"
)

// stepGrace is how much longer than its settling and its measurement a step may
// take until it is judged by what has been heard: connections may be slow to
// open, and run workers to report.
const stepGrace = 15 * time.Second

// searching is the part of the core that looks for the limit:
//
//	MEASUREMENT begins   → step 1
//	a step was measured  → judged; next step, or stop(duration_elapsed) when the search is over
//	a step takes too long → measure: judged by what there is
//	the longest search   → the search ends with what is known, stop(duration_elapsed)
//	                       (all repetitions together)
//	stop                 → the search ends with what is known
//
// It decides as purely as the rest of the core.
type searching struct {
	runID  string
	config engine.FindMax
	find   *findmax.Series
	repeat int
	// number is that of the step under way, 0 before the first; it was begun at.
	number int
	begun  time.Time
	asked  bool // to measure it, because it took too long
}

// searchConfig is a search up to a highest level.
func searchConfig(f engine.FindMax, most float64) findmax.Config {
	c := findmax.Config{Unit: f.Unit, Start: float64(f.StartConcurrency), Increment: float64(f.ConcurrencyIncrement), Max: most,
		QPSStabilityPct: f.QPSStabilityPct, LatencyStabilityPct: f.LatencyStabilityPct, MaxErrorRatePct: f.MaxErrorRatePct, SLO: f.SLO}
	if f.Unit == engine.FindMaxRate && f.StartRate != nil {
		c.Start, c.Increment = *f.StartRate, *f.StartRate
		if f.RateIncrement != nil {
			c.Increment = *f.RateIncrement
		}
	}
	return c
}

func newSearching(f engine.FindMax, repeat int) *searching {
	return &searching{config: f, repeat: repeat, find: findmax.NewSeries(searchConfig(f, 0), repeat)}
}

// What happens to a search, and what is to be done about it.
type (
	// hapMeasured: the step of that number gave this.
	hapMeasured struct {
		number   int
		observed findmax.Observation
		measured time.Duration
	}
	// hapAgain: the step of that number is to be measured again, under the next number; what it gave says nothing.
	hapAgain struct{ number int }
	// actStep brings the run workers to a level.
	actStep struct {
		step  control.Step
		level float64
		stage engine.SearchStage
	}
	// actMeasure asks for hapMeasured now.
	actMeasure struct{ number int }
	// actJudged keeps a step that has been judged.
	actJudged struct{ step engine.FindMaxStep }
)

// bound sets the highest level, before the first step.
func (s *searching) bound(most float64) {
	s.find = findmax.NewSeries(searchConfig(s.config, most), s.repeat)
}

func (s *searching) shape() control.Step {
	return control.Step{Number: s.number, Settle: s.config.Settle(), Length: s.config.StepDuration()}
}

// late is when the step under way is judged by what there is.
func (s *searching) late() time.Time {
	return s.begun.Add(s.config.Settle() + s.config.StepDuration() + stepGrace)
}

// nextStep begins the next step, or ends the run when the search is over. It
// does nothing in a run without a search.
func (c *core) nextStep(now time.Time) []any {
	if c.search == nil || c.stopping() {
		return nil
	}
	s := c.search
	level, stage, ok := s.find.Next()
	if !ok {
		return append(c.stop(now, engine.StopDurationElapsed, "", ""), c.leave(now)...)
	}
	s.number++
	s.begun, s.asked = now, false
	return []any{actStep{step: s.shape(), level: level, stage: stage}}
}

// measured judges the step under way. What to do next comes first: nothing but
// its event stands before the next step.
func (c *core) measured(now time.Time, h hapMeasured) []any {
	s := c.search
	if s == nil || c.stopping() || c.phase != engine.PhaseMeasurement || h.number != s.number || s.number == 0 {
		return nil
	}
	s.find.Observe(h.observed)
	s.find.Note(s.begun, now, h.measured)
	step := s.find.Name(s.number, stepID(s.runID, s.number))
	return append(c.nextStep(now), actJudged{step})
}

// again repeats the step under way without judging it.
func (c *core) again(now time.Time, number int) []any {
	if s := c.search; s == nil || c.stopping() || c.phase != engine.PhaseMeasurement || number != s.number || number == 0 {
		return nil
	}
	return c.nextStep(now)
}

// searchTick decides by time; it returns nil when nothing is due.
func (c *core) searchTick(now time.Time) []any {
	s := c.search
	if s == nil || s.number == 0 || s.asked || now.Before(s.late()) {
		return nil
	}
	s.asked = true
	return []any{actMeasure{s.number}}
}

// endSearch closes the search of a run that stops.
func (c *core) endSearch(reason engine.StopReason, now time.Time) {
	if c.search == nil {
		return
	}
	why := "The run failed before the search was over"
	switch {
	case reason == engine.StopUserRequested:
		why = "The run was stopped before the search was over"
	case reason == engine.StopGuardrail:
		why = "A guardrail stopped the run before the search was over"
	case reason == engine.StopDurationElapsed && now.Sub(c.measureAt) >= c.duration:
		why = fmt.Sprintf("The search was not over after %.6g s, the longest that find_max.max_duration_seconds allows", c.duration.Seconds())
	case reason == engine.StopDurationElapsed:
		why = "The workload ended before the search was over"
	}
	c.search.find.End(why)
}

// stepped notes that the workers were told of a step at now.
func (c *core) stepped(now time.Time, number int) {
	if s := c.search; s != nil && s.number == number && !c.stopping() {
		s.begun, s.asked = now, false
	}
}
