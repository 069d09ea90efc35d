package lifecycle

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/findmax"
)

// State is the search as the page shows it, with what the step under way has
// given so far; connections are those that a search over the rate works with.
// It shares no memory that changes later.
func (s *Search) State(now time.Time, meter *Meter, connections int) *engine.FindMaxState {
	steps := s.series.Steps()
	level, stage, _ := s.series.Next()
	st := &engine.FindMaxState{Unit: s.config.Unit, CurrentStep: s.number, Status: stage,
		BaselineP95Ms: s.series.Baseline(), UpperBound: s.series.Max(),
		StepDuration: (s.config.Settle() + s.length).Seconds(),
		Steps:        append([]engine.FindMaxStep{}, steps...), LastUpdated: engine.At(now)}
	if s.number > 0 {
		st.StepID = s.name(s.number)
	}
	st.LastStable, st.FirstUnstable = s.series.Bounds()
	st.Repetition, st.Repeat, st.Repetitions = s.series.Repetition(), s.series.Repeat(), s.series.Ended()
	if s.config.Unit == engine.FindMaxRate {
		st.TargetQPS, st.TargetWorkers = &level, connections
	} else {
		st.TargetWorkers = int(level)
	}
	if r := s.series.Result(); r != nil {
		same := *r
		st.Result = &same
	}
	if !s.beganAt.IsZero() && stage != engine.StageDone {
		st.StepElapsed = max(min(now.Sub(s.beganAt).Seconds(), st.StepDuration), 0)
	}
	o, _ := meter.Observation()
	if o.Operations == 0 || meter.number != s.number {
		// The step under way has reported nothing yet: the one before is shown.
		if n := len(steps); n > 0 {
			last := steps[n-1]
			st.CurrentP95Ms, st.P95VsBaselinePct, st.QPS, st.QPSVsPriorPct, st.ErrorRate, st.QueueDetected = last.P95LatencyMs,
				last.P95VsBaselinePct, new(last.QPS), last.QPSVsPriorPct, last.ErrorRate, last.QueueDetected
		}
		return st
	}
	st.CurrentP95Ms, st.QPS, st.QueueDetected = o.P95, new(o.QPS), o.Queued
	st.ErrorRate = new(float64(o.Errors) / float64(o.Operations))
	if b := st.BaselineP95Ms; b != nil && *b > 0 && o.P95 != nil {
		over := (*o.P95 - *b) / *b * 100
		st.P95VsBaselinePct = &over
	}
	if n := len(steps); n > 0 && steps[n-1].QPS > 0 {
		gain := (o.QPS - steps[n-1].QPS) / steps[n-1].QPS * 100
		st.QPSVsPriorPct = &gain
	}
	return st
}

// FinishedSearchState is the state of a search that is over.
func FinishedSearchState(r *engine.FindMaxResult) *engine.FindMaxState {
	if r == nil {
		return nil
	}
	st := &engine.FindMaxState{Unit: r.Unit, CurrentStep: r.Steps, Status: engine.StageDone,
		BaselineP95Ms: r.BaselineP95Ms, QPS: r.QPS, CurrentP95Ms: r.P95LatencyMs,
		ErrorRate: r.ErrorRate, UpperBound: r.UpperBound, FirstUnstable: r.FirstUnstable, Steps: r.History,
		Repetition: max(len(r.Repetitions), 1), Repeat: 1, Repetitions: r.Repetitions, Result: r}
	if r.Spread != nil {
		st.Repeat = r.Spread.Requested
	}
	if level, ok := r.Level(); ok {
		st.LastStable = &level
		if r.Unit == engine.FindMaxRate {
			st.TargetQPS = &level
		} else {
			st.TargetWorkers = int(level)
		}
	}
	return st
}

// RecoverResult is the answer of a search whose process has ended: what its judged steps say.
func RecoverResult(sc engine.Scenario, state *engine.FindMaxState) *engine.FindMaxResult {
	if !sc.Workload.IsSearch() {
		return nil
	}
	if state == nil {
		state = &engine.FindMaxState{}
	}
	s := findmax.ReplaySeries(searchConfig(sc.FindMax, state.UpperBound), sc.Workload.Repeat, state.Steps)
	s.End("The server restarted before the search was over")
	return s.Result()
}
