package findmax

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Config is what a search needs to know; levels are connections or operations
// per second, by Unit.
type Config struct {
	Unit engine.FindMaxUnit
	// Start is the first level, Increment what each step of the climb adds, Max
	// the highest level that may be tried; all positive, Max ≥ Start.
	Start, Increment, Max float64
	QPSStabilityPct       float64
	LatencyStabilityPct   float64
	MaxErrorRatePct       float64
	// StepSeconds is how long a step is measured when nothing needs it longer; 0 lengthens none.
	StepSeconds float64
	// SLO, when not nil, replaces the baseline rule for latency, and
	// MaxErrorRatePct where it names an error rate.
	SLO *engine.SLO
}

// Observation is what one step gave, without its settling time.
type Observation struct {
	Operations, Errors, Dropped int64
	// Due are the operations that were due in the step, in a search over the rate; 0 where it is not known.
	Due int64
	QPS float64
	// QPSError is the standard error of QPS as a fraction of it, as its seconds show it; 0 where it is not known.
	QPSError float64
	// P50 is over all operations; P95 and P99 are those of the slowest run
	// worker. Milliseconds, nil without an operation.
	P50, P95, P99 *float64
	// Queued: the warehouse had queries waiting.
	Queued bool
	// Missing connections of the level were not open.
	Missing int
	// GeneratorLate says, in a clause, how the generator itself was late; such a step says nothing about the target.
	GeneratorLate string
	// StoodStillMs is the longest time for which a process of the generator ran nothing, in milliseconds. What was due
	// meanwhile comes at once, in a search over the rate.
	StoodStillMs float64
}

const (
	// MinOperations are enough for a P95: fifty lie above it.
	MinOperations = 1000
	// maxLengthening bounds how much longer than asked for a step may be to have them.
	maxLengthening = 10
	// maxLate is how often in a row a step is measured again because the generator was late.
	maxLate = 5
	// maxRefuted bounds how many answers may fail to be confirmed before the search gives up.
	maxRefuted = 6
	// maxSteps bounds a search on a target that never gives the same twice.
	maxSteps = 150
	// failuresToCount make a level fail: one is measured again. The first level's own P95 is the baseline, so that one
	// slower step of it tells less.
	failuresToCount, failuresOfFirst = 2, 3
	// maxRecoveries is how often the target may fail to recover.
	maxRecoveries = 4
	// growthShare: one part in so many of the relative gain in load is the least gain in throughput that counts as growth.
	growthShare = 5
	// plateauTolerance is how far below the peak a level's throughput may lie and still reach it.
	plateauTolerance = 0.02
	// lineTolerance is how far throughput may fall behind its growth with the load and still follow it.
	lineTolerance = 0.03
	// collapse is the part of the peak below which throughput has collapsed.
	collapse = 0.9
	// minRateShare is the part of a wanted rate that must be achieved, counting error aside.
	minRateShare = 0.99
	// maxDroppedPct is the part of a wanted rate that may be dropped.
	maxDroppedPct = 0.1
)

// Search is the state of one search. It is not safe for concurrent use.
type Search struct {
	cfg   Config
	stage engine.SearchStage
	level float64
	// lengthening is how many times as long as asked for the next step is measured.
	lengthening float64

	// steps are those that were judged, errors the standard errors of their throughput.
	steps    []engine.FindMaxStep
	errors   []float64
	baseline *float64
	// climbing: no limit has been met. flatSteps counts the steps of the climb that brought no gain, up to the last.
	climbing  bool
	flatSteps int
	// confirming is the level that is measured again; refuted counts those that were given up then, and doubt says that
	// the last one was: its neighbours, which held once, are measured again before more is looked for.
	confirming float64
	refuted    int
	doubt      bool

	// overloadedBy is the level that was too much for the target just now, 0 for none; collapsedAt the lowest level at
	// which throughput collapsed.
	overloadedBy, collapsedAt float64
	// overloadStoodMs is for how long the generator stood still in the step that began the overload.
	overloadStoodMs float64
	recovery        recovery
	suspect         bool
	probe           probe
	hysteresis      *engine.FindMaxHysteresis

	late, lateInRow int
	unsteady        bool
	result          *engine.FindMaxResult
}

// New begins a search. A Max below Start is taken as Start.
func New(cfg Config) *Search {
	cfg.Max = max(cfg.Max, cfg.Start)
	return &Search{cfg: cfg, stage: engine.StageStepping, level: cfg.Start, lengthening: 1, climbing: true}
}

// Next returns the level to run and what for; ok is false when the search is over.
func (s *Search) Next() (level float64, stage engine.SearchStage, ok bool) {
	return s.level, s.stage, s.stage != engine.StageDone
}

// Lengthening is how many times as long as asked for the next step is to be measured, so that enough operations end
// in it.
func (s *Search) Lengthening() float64 { return s.lengthening }

// Max is the highest level that may be tried.
func (s *Search) Max() float64 { return s.cfg.Max }

// Steps are the steps judged so far. The slice is the search's own.
func (s *Search) Steps() []engine.FindMaxStep { return s.steps }

// Baseline is the P95 of step 1 in milliseconds, nil before it has been judged.
func (s *Search) Baseline() *float64 { return s.baseline }

// Bounds enclose the limit: the highest level that holds, and the lowest known above it that does not or brings no
// more; nil while unknown. The values are the caller's.
func (s *Search) Bounds() (stable, unstable *float64) {
	levels := s.levels()
	answer := s.answer()
	if answer > 0 {
		stable = &answer
	}
	for _, l := range levels {
		if l.level > answer && (l.failing() || !s.climbing && l.held > 0) {
			above := l.level
			return stable, &above
		}
	}
	return stable, nil
}

// Result is the answer, nil until the search is over.
func (s *Search) Result() *engine.FindMaxResult { return s.result }

// Observe takes what the step at the level that Next named gave, and decides what is next. A step that says something
// about the target is judged, and again is empty; the times of the returned step are the caller's to fill in. Otherwise
// again is the sentence that says why it was not judged, and the step means nothing.
func (s *Search) Observe(o Observation) (step engine.FindMaxStep, again string) {
	if o.GeneratorLate != "" {
		return step, s.afterLate(o.GeneratorLate)
	}
	s.lateInRow = 0
	if s.stage == engine.StageRecovering {
		return step, s.afterRecovery(o)
	}
	if again := s.lengthen(o); again != "" {
		return step, again
	}
	if s.stage == engine.StageOverloading {
		return step, s.afterProbe(o)
	}
	step = s.evaluate(o)
	step.QPSError, step.LateSteps, step.StoodStillMs = o.QPSError, s.late, o.StoodStillMs
	if s.overloadedBy > 0 { // what made the overload is in this step too, as far as it lasts
		step.StoodStillMs = max(step.StoodStillMs, s.overloadStoodMs)
	}
	s.take(step)
	return step, ""
}

// take decides what is next after a judged step.
func (s *Search) take(step engine.FindMaxStep) {
	s.steps, s.errors = append(s.steps, step), append(s.errors, step.QPSError)
	s.lengthening = s.lengthFor(s.level)
	s.noteOverload(step)
	s.decide(step)
}

// afterLate repeats a step in which the generator was late, or ends the search: with its answer where that is confirmed
// by steps in which the generator was not late, and else without one.
func (s *Search) afterLate(why string) string {
	s.late++
	if s.lateInRow++; s.lateInRow < maxLate {
		return fmt.Sprintf("the generator was late: %s; the target is not judged by it", why)
	}
	if answer := s.answer(); answer > 0 && s.at(answer).confirmed() {
		missed := "What else was to be looked at was not."
		if s.stage == engine.StageOverloading {
			missed = "Whether an overload outlasts its cause (hysteresis) could not be looked at."
		}
		s.finish(true, fmt.Sprintf("The generator was late in %d steps in a row at %s: %s. %s ", s.lateInRow,
			s.describeLevel(s.level), why, missed))
		return "the generator was late: " + why + "; the search ends with the answer that was confirmed before"
	}
	s.stage = engine.StageDone
	s.result = s.newResult()
	s.result.Reason = fmt.Sprintf(
		"The generator was late in %d steps in a row at %s: %s. What the target sustains cannot "+
			"be told, so there is no answer. Use a machine with more free CPU, or more run workers.",
		s.lateInRow,
		s.describeLevel(s.level),
		why,
	)
	return "the generator was late: " + why + "; the search ends without an answer"
}

// lengthen has a step measured again, and longer, in which too few operations ended.
func (s *Search) lengthen(o Observation) string {
	enough := int64(MinOperations)
	if len(s.steps) == 0 && s.byBaseline() {
		enough = max(enough, o.forBaseline())
	}
	if s.cfg.StepSeconds <= 0 || o.Operations <= 0 || o.Operations >= enough || o.Missing > 0 {
		return ""
	}
	need := min(s.lengthening*float64(enough)*1.1/float64(o.Operations), maxLengthening)
	if need < s.lengthening*1.05 {
		return ""
	}
	s.lengthening = need
	return fmt.Sprintf("only %d operations ended in it; %d are needed for its percentiles, so it is measured for %s s",
		o.Operations, enough, formatNumber(s.cfg.StepSeconds*need))
}

// forBaseline is how many operations a baseline needs whose P95 all later steps are compared with: so many that its
// standard error is below 2 %, as far apart as P95 and P99 lie, but no more than eight times those of another step.
func (o Observation) forBaseline() int64 {
	const wanted, most = 0.02, 8 * MinOperations
	if o.P95 == nil || o.P99 == nil || *o.P95 <= 0 {
		return 0
	}
	// An exponential tail has a density at P95 of 0.05 ln 5 ÷ (P99 − P95).
	spread := (*o.P99 - *o.P95) / (0.05 * math.Log(5)) / *o.P95
	return int64(min(0.05*0.95*sq(spread/wanted), most))
}

// lengthFor is the lengthening with which enough operations are to be expected at a level, as the nearest one below
// that was measured tells, or the nearest at all.
func (s *Search) lengthFor(level float64) float64 {
	if s.cfg.StepSeconds <= 0 || len(s.steps) == 0 {
		return 1
	}
	near := s.steps[0]
	for _, step := range s.steps {
		if math.Abs(step.Level()-level) <= math.Abs(near.Level()-level) && step.QPS > 0 {
			near = step
		}
	}
	qps := near.QPS * min(level/near.Level(), 1)
	if qps <= 0 {
		return 1
	}
	return min(max(MinOperations*1.1/(qps*s.cfg.StepSeconds), 1), maxLengthening)
}

// noteOverload notes whether the target was overloaded in a step, and whether what it did before shows hysteresis.
func (s *Search) noteOverload(step engine.FindMaxStep) {
	before := s.overloadedBy
	s.overloadedBy = 0
	if !step.Held() {
		if before > step.Level() {
			s.recovery.failedAfter = step.Level()
		}
		s.overloadedBy, s.overloadStoodMs = max(step.Level(), before), step.StoodStillMs
		return
	}
	if s.recovery.failedAfter == step.Level() {
		s.suspect = true // it failed behind an overload, and holds when the target has recovered
	}
	s.recovery.failedAfter = 0
	if best := s.bestBelow(step.Level()); s.cfg.Unit != engine.FindMaxRate && step.QPS < best*collapse {
		s.overloadedBy = step.Level()
		if s.collapsedAt == 0 || step.Level() < s.collapsedAt {
			s.collapsedAt = step.Level()
		}
	}
}

// bestBelow is the highest throughput of a level that holds below a bound.
func (s *Search) bestBelow(bound float64) (best float64) {
	for _, l := range s.levels() {
		if l.level < bound && l.holds() {
			best = max(best, l.qps)
		}
	}
	return best
}

// SetTimes fills in what the caller knows of the last judged step: its times.
func (s *Search) SetTimes(begun, ended time.Time, measured time.Duration) engine.FindMaxStep {
	step := &s.steps[len(s.steps)-1]
	step.StepStartTime, step.StepEndTime, step.StepDurationSeconds = engine.At(begun), engine.At(ended), measured.Seconds()
	if r := s.result; r != nil {
		r.History[len(r.History)-1] = *step
	}
	return *step
}

// Replay returns a search that has judged the given steps, as an earlier process did. That one went on after each but
// the last: where they alone would end the search, it had seen more.
func Replay(cfg Config, steps []engine.FindMaxStep) *Search {
	s := New(cfg)
	for _, step := range steps {
		s.result, s.unsteady, s.probe = nil, false, probe{}
		if s.level, s.stage = step.Level(), step.Stage; s.stage == engine.StageConfirming {
			s.confirming = s.level
		}
		if len(s.steps) == 0 {
			s.baseline = step.P95LatencyMs
		}
		if step.Held() && s.byThroughput() {
			s.evaluateGrowth(Observation{QPS: step.QPS}) // which counts how often there was none
		}
		s.late = step.LateSteps
		s.take(step)
	}
	return s
}

// End closes a search before its time: the answer is what is known by then.
// why is a sentence without its full stop.
func (s *Search) End(why string) {
	if s.stage == engine.StageDone {
		return
	}
	s.finish(false, why+". ")
}

// endReplayed closes a replayed search that an earlier process went on from.
func (s *Search) endReplayed() {
	if answer := s.answer(); s.stage != engine.StageDone && answer > 0 && s.at(answer).confirmed() {
		s.finish(true, "")
	}
	s.End("It was not over when the next one began")
}

// decide chooses what is next after a judged step.
func (s *Search) decide(step engine.FindMaxStep) {
	now := s.at(step.Level())
	switch {
	case len(s.steps) >= maxSteps:
		s.unsteady = true
		s.finish(false, "")
		return
	case now.undecided():
		s.measure(s.level, s.stage) // a failure is measured again before it counts
		return
	}
	if s.climbing && s.climbOn(step, now) {
		return
	}
	s.climbing = false
	if s.confirming > 0 && s.stage == engine.StageConfirming && s.candidateAfterConfirm(step) {
		return
	}
	s.refine()
}

// climbOn goes one increment further, unless the climb is over.
func (s *Search) climbOn(step engine.FindMaxStep, now levelSteps) bool {
	if now.failing() || step.Outcome == engine.OutcomePlateau || s.level >= s.cfg.Max {
		return false
	}
	s.measure(min(s.level+s.cfg.Increment, s.cfg.Max), engine.StageStepping)
	return true
}

// candidateAfterConfirm ends the search when its answer has held again, and reports whether it is over.
func (s *Search) candidateAfterConfirm(step engine.FindMaxStep) bool {
	if s.answer() == s.confirming && step.Held() && !s.unmeasured() {
		s.conclude()
		return true
	}
	if s.answer() != s.confirming {
		s.doubt = true
		if s.refuted++; s.refuted >= maxRefuted {
			s.unsteady = true
			s.finish(false, "")
			return true
		}
	}
	s.confirming = 0
	return false
}

// unmeasured reports whether something is still to be looked at before the answer stands.
func (s *Search) unmeasured() bool { _, more := s.gap(); return more }

// refine looks closer at where the answer is not known well enough, and then confirms it.
func (s *Search) refine() {
	answer := s.answer()
	if s.at(answer).confirmed() || answer <= 0 {
		s.doubt = false
	}
	if level, more := s.gap(); more && !s.doubt {
		s.measure(level, engine.StageBisecting)
		return
	}
	if answer <= 0 {
		s.finish(false, "")
		return
	}
	if s.at(answer).confirmed() {
		s.conclude()
		return
	}
	s.confirming = answer
	s.measure(answer, engine.StageConfirming)
}

// measure makes a level the next step's. A target that was overloaded recovers first where the step would else show
// what the overload has left behind: before a failure is measured again, before an answer is confirmed, and wherever an
// overload is known to have lasted.
func (s *Search) measure(level float64, stage engine.SearchStage) {
	again := s.recovery.failedAfter == level || level == s.overloadedBy
	if s.overloadedBy > 0 && level <= s.overloadedBy && s.cfg.Start < level &&
		(again || stage == engine.StageConfirming || s.suspect || s.collapsedAt > 0) {
		s.recover(level, stage)
		return
	}
	s.level, s.stage, s.lengthening = level, stage, s.lengthFor(level)
}

// conclude ends a search whose answer is confirmed, once it is known whether an overload outlasts its cause.
func (s *Search) conclude() {
	suspect := s.suspect || s.collapsedAt > 0 || s.limitInDoubt()
	if above := s.overloadAbove(); suspect && !s.probe.done && above > 0 {
		s.probe = probe{done: true, answer: s.belowAnswer(), overload: above}
		s.level, s.stage, s.lengthening = above, engine.StageOverloading, s.lengthFor(above)
		return
	}
	s.finish(s.at(s.answer()).confirmed(), "")
}

// finish writes the result. prefix goes before the sentence that tells the answer.
func (s *Search) finish(confirmed bool, prefix string) {
	s.stage = engine.StageDone
	r := s.newResult()
	s.result = r
	level := s.answer()
	if s.unsteady {
		prefix += fmt.Sprintf(
			"%d repeated steps gave another result than the first time, so the target or its machine is not "+
				"steady. ",
			s.refuted,
		)
		if level = s.highestConfirmed(); level > 0 {
			confirmed = true
		}
	}
	switch {
	case level <= 0:
		r.Reason = prefix + s.notFoundMessage()
		return
	case (s.hysteresis != nil || s.probe.bore) && s.limitInDoubt():
		r.Reason = prefix + s.inDoubtMessage(level)
		return
	}
	r.Found, r.Confirmed = true, confirmed
	if s.cfg.Unit == engine.FindMaxRate {
		r.MaxQPSTarget = &level
	} else {
		n := int(level)
		r.MaxConnections = &n
	}
	_, r.FirstUnstable = s.Bounds()
	r.Limit = s.limitAbove(level).outcome
	// The last step at the level is the confirming one when there was one.
	for i := len(s.steps) - 1; i >= 0; i-- {
		if step := s.steps[i]; step.Level() == level && step.Held() {
			r.QPS, r.P50LatencyMs, r.P95LatencyMs, r.P99LatencyMs, r.ErrorRate = new(
				step.QPS,
			), step.P50LatencyMs, step.P95LatencyMs,
				step.P99LatencyMs, step.ErrorRate
			r.NotEnoughOperations = step.TotalQueries < MinOperations
			break
		}
	}
	r.Reason = prefix + s.foundMessage(level)
}

// newResult is a result without an answer.
func (s *Search) newResult() *engine.FindMaxResult {
	r := &engine.FindMaxResult{Unit: s.cfg.Unit, BaselineP95Ms: s.baseline, Steps: len(s.steps), UpperBound: s.cfg.Max,
		LateSteps: s.late, Hysteresis: s.hysteresis, History: slices.Clone(s.steps)}
	r.Limit = s.limitAbove(0).outcome
	_, r.FirstUnstable = s.Bounds()
	return r
}
