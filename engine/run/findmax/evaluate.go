package findmax

import (
	"fmt"
	"math"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// evaluate decides the outcome of the step at the present level.
func (s *Search) evaluate(o Observation) engine.FindMaxStep {
	if len(s.steps) == 0 {
		s.baseline = o.P95
	}
	step := s.measured(o)
	if n := len(s.steps); n > 0 && s.steps[n-1].QPS > 0 {
		step.QPSVsPriorPct = percent(o.QPS, s.steps[n-1].QPS)
	}
	step.Outcome, step.StopReason = s.fails(o, step)
	if step.Held() && s.byThroughput() {
		step.Outcome, step.StopReason = s.evaluateGrowth(o)
	}
	return step
}

// measured is the step without its outcome.
func (s *Search) measured(o Observation) engine.FindMaxStep {
	step := engine.FindMaxStep{StepNumber: len(s.steps) + 1, Stage: s.stage, TotalQueries: o.Operations, QPS: o.QPS,
		P50LatencyMs: o.P50, P95LatencyMs: o.P95, P99LatencyMs: o.P99, ErrorCount: o.Errors, DroppedCount: o.Dropped,
		QueueDetected: o.Queued}
	if s.cfg.Unit == engine.FindMaxRate {
		level := s.level
		step.TargetQPS = &level
	} else {
		step.TotalTargetConnections = int(s.level)
	}
	if o.Operations > 0 {
		step.ErrorRate = new(float64(o.Errors) / float64(o.Operations))
	}
	if s.baseline != nil && *s.baseline > 0 && o.P95 != nil {
		step.P95VsBaselinePct = percent(*o.P95, *s.baseline)
	}
	return step
}

func percent(now, before float64) *float64 {
	v := (now - before) / before * 100
	return &v
}

// fails applies the rules that a level has to obey, the hardest first.
func (s *Search) fails(o Observation, step engine.FindMaxStep) (engine.StepOutcome, string) {
	at := "At " + s.describeLevel(s.level) + " "
	if o.Missing > 0 {
		return engine.OutcomeErrorThreshold, at + fmt.Sprintf("%d of the connections were not open.", o.Missing)
	}
	if o.Operations == 0 {
		return engine.OutcomeDegraded, at + "no operation ended within the step."
	}
	if rate := 100 * float64(o.Errors) / float64(o.Operations); s.tooManyErrors(rate) {
		return engine.OutcomeErrorThreshold,
			at + fmt.Sprintf(
				"%s %% of the operations failed; %s %% are allowed.",
				formatNumber(rate),
				formatNumber(s.errorLimit()),
			)
	}
	if o.Queued {
		return engine.OutcomeQueueDetected, at + "the warehouse had queries waiting."
	}
	if why := s.slowReason(o, step); why != "" {
		return engine.OutcomeDegraded, at + why
	}
	if s.cfg.Unit == engine.FindMaxRate {
		offered := float64(o.Operations + o.Dropped)
		if dropped := float64(o.Dropped) / offered * 100; dropped > maxDroppedPct {
			return engine.OutcomePlateau,
				at + fmt.Sprintf("%s %% of the operations were dropped, because too many were waiting.", formatNumber(dropped))
		}
		if s.missedRate(o) {
			return engine.OutcomePlateau, at + fmt.Sprintf("only %s/s were done.", formatNumber(o.QPS))
		}
	}
	return engine.OutcomeStable, ""
}

// errorLimit is how many operations in a hundred may fail.
func (s *Search) errorLimit() float64 {
	if s.cfg.SLO != nil && s.cfg.SLO.ErrorRatePct != nil {
		return *s.cfg.SLO.ErrorRatePct
	}
	return s.cfg.MaxErrorRatePct
}

func (s *Search) tooManyErrors(ratePct float64) bool { return ratePct > s.errorLimit() }

// missedRate reports that fewer operations were done than the level asks for: by more
// than a part of them, and more than counting within borders explains, of which
// the square root is the measure for random arrivals.
func (s *Search) missedRate(o Observation) bool {
	if o.QPS <= 0 {
		return true
	}
	due := float64(o.Due)
	if o.Due == 0 {
		due = s.level * float64(o.Operations) / o.QPS
	}
	return due-float64(o.Operations) > (1-minRateShare)*due+math.Sqrt(due)
}

// byBaseline reports whether the P95 of a step is compared with that of the first.
func (s *Search) byBaseline() bool { return !s.latencySLO() }

// latencySLO reports whether objectives replace the comparison with the baseline.
func (s *Search) latencySLO() bool {
	return s.cfg.SLO != nil && (s.cfg.SLO.P95Ms != nil || s.cfg.SLO.P99Ms != nil)
}

// slowReason says why the latency is not stable, or "".
func (s *Search) slowReason(o Observation, step engine.FindMaxStep) string {
	if slo := s.cfg.SLO; s.latencySLO() {
		if slo.P95Ms != nil && o.P95 != nil && *o.P95 > *slo.P95Ms {
			return fmt.Sprintf("P95 was %s ms; the objective is %s ms.", formatNumber(*o.P95), formatNumber(*slo.P95Ms))
		}
		if slo.P99Ms != nil && o.P99 != nil && *o.P99 > *slo.P99Ms {
			return fmt.Sprintf("P99 was %s ms; the objective is %s ms.", formatNumber(*o.P99), formatNumber(*slo.P99Ms))
		}
		return ""
	}
	if over := step.P95VsBaselinePct; over != nil && *over > s.cfg.LatencyStabilityPct {
		return fmt.Sprintf("P95 was %s ms, %s %% above the baseline of %s ms; %s %% are allowed.",
			formatNumber(*o.P95), formatNumber(*over), formatNumber(*s.baseline), formatNumber(s.cfg.LatencyStabilityPct))
	}
	return ""
}

// evaluateGrowth says whether throughput still grows, in a search over connections.
func (s *Search) evaluateGrowth(o Observation) (engine.StepOutcome, string) {
	ok, _ := s.holding()
	if s.stage != engine.StageStepping || !s.climbing {
		for _, l := range ok {
			if l.level > s.level && o.QPS >= l.qps*(1-plateauTolerance) {
				return engine.OutcomePlateau,
					fmt.Sprintf("At %s throughput was %s/s, as much as above it.", s.describeLevel(s.level), formatNumber(o.QPS))
			}
		}
		return engine.OutcomeStable, ""
	}
	var before *levelSteps
	for i := range ok {
		if ok[i].level < s.level {
			before = &ok[i]
		}
	}
	if before == nil || before.qps <= 0 {
		return engine.OutcomeStable, ""
	}
	gain, more := (o.QPS-before.qps)/before.qps*100, (s.level-before.level)/before.level*100
	if gain >= s.cfg.QPSStabilityPct || gain >= more/growthShare {
		s.flatSteps = 0
		return engine.OutcomeStable, ""
	}
	if s.flatSteps++; s.flatSteps < 2 {
		return engine.OutcomeStable, ""
	}
	return engine.OutcomePlateau, fmt.Sprintf("From %s to %s throughput no longer grew: %s/s, then %s/s.",
		s.describeLevel(before.level), s.describeLevel(s.level), formatNumber(before.qps), formatNumber(o.QPS))
}

// foundMessage is the answer in words.
func (s *Search) foundMessage(level float64) string {
	text := fmt.Sprintf("The target sustains %s.", s.describeLevel(level))
	switch limit := s.limitAbove(level); {
	case limit.outcome == engine.OutcomePlateau && limit.reason == "":
		text += fmt.Sprintf(" More connections bring no more throughput than %s/s.", formatNumber(s.at(level).qps))
	case limit.outcome != "":
		text += " " + limit.reason
	default:
		text += fmt.Sprintf(" That is the highest level that was tried; the limit lies above %s.", s.describeLevel(level))
	}
	if h := s.hysteresis; h != nil && h.RecoversAt > 0 {
		text += fmt.Sprintf(
			" The target has hysteresis: right after %s it did not sustain %s, and it recovered at %s. The answer "+
				"holds while the load has not been above it.",
			s.describeLevel(h.After),
			s.describeLevel(h.FailsAt),
			s.describeLevel(h.RecoversAt),
		)
	} else if h != nil && h.FailsAt == level {
		text += fmt.Sprintf(" The target has hysteresis: right after %s it did not sustain %s.", s.describeLevel(h.After),
			s.describeLevel(h.FailsAt))
	}
	return text + s.notEnoughMessage(level)
}

// notEnoughMessage says that too few operations ended at a level for its percentiles.
func (s *Search) notEnoughMessage(level float64) string {
	if s.cfg.StepSeconds <= 0 {
		return ""
	}
	for i := len(s.steps) - 1; i >= 0; i-- {
		if step := s.steps[i]; step.Level() == level && step.Held() {
			if step.TotalQueries < MinOperations {
				return fmt.Sprintf(" Its percentiles rest on %d operations, which is not enough: %d are. Raise "+
					"find_max.step_duration_seconds.", step.TotalQueries, MinOperations)
			}
			break
		}
	}
	return ""
}

// notFoundMessage says why there is no answer.
func (s *Search) notFoundMessage() string {
	if len(s.steps) == 0 {
		return "No step was finished, so there is no answer."
	}
	limit := s.limitAbove(0)
	if limit.reason == "" {
		return "No level was found to be stable, so there is no answer."
	}
	text := "No level that was tried is sustained. " + limit.reason
	if first := s.at(s.cfg.Start); first.held > 0 && first.failing() && s.missedOwnBaseline(first.failure) {
		text += fmt.Sprintf(" %d repeated steps of the first level were slower than the baseline, which is its own, so the "+
			"target or its machine is not steady.", first.failed)
	}
	return text
}

// describeLevel names a level.
func (s *Search) describeLevel(level float64) string {
	switch {
	case s.cfg.Unit == engine.FindMaxRate:
		return formatNumber(level) + "/s"
	case level == 1:
		return "1 connection"
	default:
		return fmt.Sprintf("%.0f connections", level)
	}
}

// formatNumber writes a number as a person reads it: three digits where they matter.
func formatNumber(v float64) string {
	if math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return strings.TrimSuffix(strings.TrimSuffix(fmt.Sprintf("%.3g", v), ".0"), ".")
}
