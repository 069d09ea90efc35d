package findmax

import (
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
)

// recovery brings a target that was overloaded back to what it was: it runs the first level until that gives what the
// first step gave, and a lower one where that is not enough. Its steps are not judged.
type recovery struct {
	// level and stage are of the step that waits for it.
	level float64
	stage engine.SearchStage
	// attempts at it so far, and the level at which it succeeded last.
	attempts    int
	recoveredAt float64
	// failedAfter is a level that failed right behind an overload by a higher one, 0 for none.
	failedAfter float64
}

// probe overloads the target on purpose, and then tries the answer without letting it recover: twice, because what
// fails once may be noise.
type probe struct {
	done, overloaded bool
	failures         int
	// bore: the target bore an overload of the probe, so that the probe tells nothing.
	bore bool
	// answer is the level that is tried, a little below the answer.
	answer, overload float64
}

// probes is how often the answer must fail behind an overload.
const probes = 2

// recover runs a low level before the given step.
func (s *Search) recover(level float64, stage engine.SearchStage) {
	s.recovery.level, s.recovery.stage, s.recovery.attempts = level, stage, 0
	s.level, s.stage, s.lengthening = s.cfg.Start, engine.StageRecovering, 1
}

// afterRecovery goes on with the step that waits, or tries a lower level.
func (s *Search) afterRecovery(o Observation) string {
	r := &s.recovery
	first := s.steps[0]
	share := s.level / first.Level()
	step := s.measured(o)
	var why string
	step.Outcome, why = s.fails(o, step)
	if step.Held() && o.QPS >= first.QPS*share*collapse {
		r.recoveredAt, s.overloadedBy = s.level, 0
		s.level, s.stage, s.lengthening = r.level, r.stage, s.lengthFor(r.level)
		return fmt.Sprintf("it let the target recover at %s", s.describeLevel(r.recoveredAt))
	}
	if why == "" {
		why = fmt.Sprintf("At %s throughput was %s/s.", s.describeLevel(s.level), formatNumber(o.QPS))
	}
	if r.attempts++; r.attempts < maxRecoveries {
		s.level = max(s.whole(s.level/2), min(s.cfg.Start, 1))
		return "the target has not recovered. " + why
	}
	after := s.overloadedBy
	s.hysteresis = &engine.FindMaxHysteresis{After: after, FailsAt: s.level}
	s.finish(false, fmt.Sprintf("After %s the target did not recover. ", s.describeLevel(after)))
	return "the target has not recovered, and the search ends. " + why
}

// probeMargin is how far from the answer the levels of a probe lie: what is close to it fails by chance.
const probeMargin = 0.1

// beyondDoubt is how far above a limit that is in doubt a probe overloads the target.
const beyondDoubt = 0.25

// overloadAbove is the lowest level well above the answer that overloads the target, or else the highest that does; 0
// for none. Where the limit is in doubt it is one that no target bears whose limit it is.
func (s *Search) overloadAbove() (level float64) {
	answer := s.answer()
	for _, l := range s.levels() {
		if l.level > answer && (l.failing() || s.collapsedAt > 0 && l.level >= s.collapsedAt) {
			if level = l.level; level >= answer*(1+probeMargin) {
				break
			}
		}
	}
	if level > 0 && s.limitInDoubt() {
		level = max(level, min(answer*(1+beyondDoubt), s.cfg.Max))
	}
	return level
}

// belowAnswer is the level that a probe tries behind the overload.
func (s *Search) belowAnswer() float64 {
	return max(s.whole(s.answer()*(1-probeMargin)), min(s.cfg.Start, s.answer()))
}

// afterProbe takes the two steps of the probe.
func (s *Search) afterProbe(o Observation) string {
	p := &s.probe
	if !p.overloaded {
		step := s.measured(o)
		step.Outcome, _ = s.fails(o, step)
		p.overloaded, p.bore = true, p.bore || step.Held()
		s.level, s.lengthening = p.answer, s.lengthFor(p.answer)
		return "it overloads the target on purpose, to see whether that outlasts the overload"
	}
	step := s.measured(o)
	step.Outcome, _ = s.fails(o, step)
	lasts := !step.Held() || s.byThroughput() && o.QPS < s.at(s.answer()).qps*collapse*p.answer/s.answer()
	if p.failures++; lasts && p.failures < probes {
		p.overloaded = false
		s.level, s.lengthening = p.overload, s.lengthFor(p.overload)
		return fmt.Sprintf("%s fails right after %s; it is looked at again", s.describeLevel(p.answer),
			s.describeLevel(p.overload))
	}
	if lasts {
		s.hysteresis = &engine.FindMaxHysteresis{After: p.overload, FailsAt: p.answer, RecoversAt: s.recovery.recoveredAt}
	}
	s.finish(true, "")
	if lasts {
		return fmt.Sprintf("%s fails right after %s: the target has hysteresis", s.describeLevel(p.answer),
			s.describeLevel(p.overload))
	}
	return fmt.Sprintf("%s holds right after %s", s.describeLevel(p.answer), s.describeLevel(p.overload))
}

const (
	// burstShare: a generator that stood still for this part of the baseline's latency sends as large a part of what a
	// target has in service at once. leastStandMs are never enough for that.
	burstShare, leastStandMs = 0.05, 5
)

// burst reports that a step may have failed by what was due while the generator stood still and came at once: more than
// the level's load, for a moment. A target with hysteresis stays overloaded behind it.
func (s *Search) burst(step engine.FindMaxStep) bool {
	return s.cfg.Unit == engine.FindMaxRate && !step.Held() && s.baseline != nil &&
		step.StoodStillMs >= max(burstShare**s.baseline, leastStandMs)
}

// limitInDoubt reports that each step at the lowest level that fails above the answer may have failed by a burst.
func (s *Search) limitInDoubt() bool {
	answer := s.answer()
	for _, l := range s.levels() {
		if l.level <= answer || !l.failing() {
			continue
		}
		for _, step := range s.steps {
			if step.Level() == l.level && !step.Held() && !s.burst(step) {
				return false
			}
		}
		return true
	}
	return false
}

// inDoubtMessage says why there is no answer although a level holds.
func (s *Search) inDoubtMessage(level float64) string {
	_, unstable := s.Bounds()
	stood := 0.0
	for _, step := range s.steps {
		if step.Level() == *unstable && !step.Held() {
			stood = max(stood, step.StoodStillMs)
		}
	}
	return fmt.Sprintf(
		"The target sustains %s, and the limit may lie above %s: in each step that failed there the generator "+
			"stood still, for up to %s ms, and then sent at once what had become due. After such a burst this target may stay "+
			"overloaded (hysteresis), so there is no answer. Use a machine with more free CPU.",
		s.describeLevel(level),
		s.describeLevel(*unstable),
		formatNumber(stood),
	)
}
