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
	// SLO, when not nil, replaces the baseline rule for latency, and
	// MaxErrorRatePct where it names an error rate.
	SLO *engine.SLO
}

// Observation is what one step gave, without its settling time.
type Observation struct {
	Operations, Errors, Dropped int64
	QPS                         float64
	// P50 is over all operations; P95 and P99 are those of the slowest run
	// worker. Milliseconds, nil without an operation.
	P50, P95, P99 *float64
	// Queued: the warehouse had queries waiting.
	Queued bool
	// Missing connections of the level were not open.
	Missing int
}

const (
	// maxRefuted bounds how many answers may fail to be confirmed before the search gives up.
	maxRefuted = 6
	// maxFirstLevelRepeats bounds how often the first level is repeated because it was slower than itself.
	maxFirstLevelRepeats = 2
	// growthShare: one part in so many of the relative gain in load is the least gain in throughput that counts as growth.
	growthShare = 5
	// plateauTolerance is how far below the plateau's throughput a level may lie and still be on it.
	plateauTolerance = 0.02
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

	steps    []engine.FindMaxStep
	baseline *float64
	// flatSteps counts the steps of the climb that brought no gain, up to the last.
	flatSteps int
	// lo is the highest level below hi that was stable, 0 when none is known; hi
	// the lowest that was not, +Inf when none is known. After a plateau, hi is on it.
	lo, hi float64
	// limit is what hi showed, and limitReason its sentence.
	limit       engine.StepOutcome
	limitReason string
	// plateau is the throughput above which nothing grows; 0 unless the climb ended on one.
	plateau float64
	// refuted counts answers that a repeated step did not confirm; twice is the level that was confirmed last.
	refuted        int
	confirmedLevel float64
	// firstLevelMisses counts repeated steps of the first level in which it missed its own P95.
	firstLevelMisses int
	result           *engine.FindMaxResult
}

// New begins a search. A Max below Start is taken as Start.
func New(cfg Config) *Search {
	cfg.Max = max(cfg.Max, cfg.Start)
	return &Search{cfg: cfg, stage: engine.StageStepping, level: cfg.Start, hi: math.Inf(1)}
}

// Next returns the level to run and what for; ok is false when the search is over.
func (s *Search) Next() (level float64, stage engine.SearchStage, ok bool) {
	return s.level, s.stage, s.stage != engine.StageDone
}

// Max is the highest level that may be tried.
func (s *Search) Max() float64 { return s.cfg.Max }

// Steps are the steps judged so far. The slice is the search's own.
func (s *Search) Steps() []engine.FindMaxStep { return s.steps }

// Baseline is the P95 of step 1 in milliseconds, nil before it has been judged.
func (s *Search) Baseline() *float64 { return s.baseline }

// Bounds enclose the limit: the highest stable and the lowest unstable level, nil
// while unknown. The values are the caller's.
func (s *Search) Bounds() (stable, unstable *float64) {
	lo, hi := s.lo, s.hi
	if lo > 0 {
		stable = &lo
	}
	if !math.IsInf(hi, 1) {
		unstable = &hi
	}
	return stable, unstable
}

// Result is the answer, nil until the search is over.
func (s *Search) Result() *engine.FindMaxResult { return s.result }

// Observe judges the step at the level that Next named, and decides what is
// next. The times of the returned step are the caller's to fill in.
func (s *Search) Observe(o Observation) engine.FindMaxStep {
	step := s.evaluate(o)
	s.steps = append(s.steps, step)
	switch s.stage {
	case engine.StageStepping:
		s.afterClimb(step)
	case engine.StageBisecting:
		s.afterBisect(step)
	case engine.StageConfirming:
		s.afterConfirm(step)
	}
	return step
}

// SetTimes fills in what the caller knows of the last observed step: its times.
func (s *Search) SetTimes(begun, ended time.Time, measured time.Duration) engine.FindMaxStep {
	step := &s.steps[len(s.steps)-1]
	step.StepStartTime, step.StepEndTime, step.StepDurationSeconds = engine.At(begun), engine.At(ended), measured.Seconds()
	if r := s.result; r != nil {
		r.History[len(r.History)-1] = *step
	}
	return *step
}

// Replay returns a search that has observed the given steps, as an earlier process judged them.
func Replay(cfg Config, steps []engine.FindMaxStep) *Search {
	s := New(cfg)
	for _, step := range steps {
		if s.stage == engine.StageDone {
			break
		}
		s.level = step.Level()
		missing := 0
		if step.Outcome == engine.OutcomeErrorThreshold && !s.tooManyErrors(step.ErrorRate*100) {
			missing = 1
		}
		s.Observe(Observation{Missing: missing, Operations: step.TotalQueries, Errors: step.ErrorCount,
			Dropped: step.DroppedCount, QPS: step.QPS,
			P50: step.P50LatencyMs, P95: step.P95LatencyMs, P99: step.P99LatencyMs, Queued: step.QueueDetected})
		s.steps[len(s.steps)-1] = step
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

func (s *Search) afterClimb(step engine.FindMaxStep) {
	if step.Outcome == engine.OutcomeStable {
		if s.flatSteps == 0 {
			s.lo = s.level
		}
		if s.level >= s.cfg.Max {
			s.lo, s.flatSteps = s.level, 0
			s.stage = engine.StageConfirming
			return
		}
		s.level = min(s.level+s.cfg.Increment, s.cfg.Max)
		return
	}
	s.limit, s.limitReason, s.hi = step.Outcome, step.StopReason, s.level
	if step.Outcome == engine.OutcomePlateau && s.cfg.Unit == engine.FindMaxConnections {
		s.setPlateauBounds((s.steps[len(s.steps)-2].QPS + step.QPS) / 2)
	}
	s.bisect()
}

// setPlateauBounds sets the bounds around where the climb reached the plateau: its last
// steps lie on it, and the one before them may too.
func (s *Search) setPlateauBounds(qps float64) {
	s.plateau = qps
	for i := len(s.steps) - 1; i >= 0 && s.steps[i].QPS >= qps*(1-plateauTolerance); i-- {
		s.hi = s.steps[i].Level()
	}
	s.lo = s.stableBelow(s.hi)
}

// stableBelow is the highest level below a bound that was stable whenever it was tried, 0 for none.
func (s *Search) stableBelow(bound float64) float64 {
	shaky := map[float64]bool{}
	for _, step := range s.steps {
		if step.Outcome != engine.OutcomeStable {
			shaky[step.Level()] = true
		}
	}
	best := 0.0
	for _, step := range s.steps {
		if l := step.Level(); l < bound && l > best && !shaky[l] {
			best = l
		}
	}
	return best
}

// bisect halves what lies between the bounds, or goes on to confirm when they are close enough.
func (s *Search) bisect() {
	s.stage = engine.StageBisecting
	mid := (s.lo + s.hi) / 2
	if s.cfg.Unit == engine.FindMaxConnections {
		mid = math.Floor(mid)
	}
	if s.hi-s.lo > s.resolution() && mid > s.lo && mid < s.hi && mid > 0 {
		s.level = mid
		return
	}
	candidate := s.lo
	if s.plateau > 0 {
		candidate = s.hi
	}
	if candidate <= 0 || candidate == s.confirmedLevel {
		s.finish(candidate > 0, "")
		return
	}
	s.level, s.stage = candidate, engine.StageConfirming
}

// resolution is how close the bounds must be: a connection or 2 % of them, or 1 % of the rate.
func (s *Search) resolution() float64 {
	if s.cfg.Unit == engine.FindMaxRate {
		// Nothing is looked for below a hundredth of the first level.
		return max(s.hi, s.cfg.Start) / 100
	}
	return max(1, math.Floor(s.lo/50))
}

func (s *Search) afterBisect(step engine.FindMaxStep) {
	if step.Outcome == engine.OutcomeStable {
		s.lo = s.level
	} else {
		s.markUnstable(step)
	}
	s.bisect()
}

// markUnstable notes that the step's level is not below the limit.
func (s *Search) markUnstable(step engine.FindMaxStep) {
	s.hi = step.Level()
	if s.confirmedLevel == s.hi {
		s.confirmedLevel = 0 // it held twice, and then not
	}
	s.limit, s.limitReason = step.Outcome, step.StopReason
	if step.Outcome != engine.OutcomePlateau {
		// A harder limit lies below the plateau.
		s.plateau = 0
	}
	if s.lo >= s.hi {
		s.lo = s.stableBelow(s.hi)
	}
}

func (s *Search) afterConfirm(step engine.FindMaxStep) {
	stable := step.Outcome == engine.OutcomeStable
	if s.plateau > 0 {
		stable = step.Outcome == engine.OutcomePlateau
	}
	if stable {
		s.confirmedLevel = s.level
		// Below a refuted level the bounds may lie far apart again; what lies
		// between them is looked at, and ends here if nothing there holds.
		s.bisect()
		return
	}
	s.refuted++
	if s.confirmedLevel == s.level {
		s.confirmedLevel = 0
	}
	if s.missedOwnBaseline(step) && s.refuted < maxRefuted {
		// Nothing was added to the load since the baseline was measured, so that this
		// tells how steady the target is, and not what it sustains.
		if s.firstLevelMisses++; s.firstLevelMisses <= maxFirstLevelRepeats {
			return
		}
	}
	if s.plateau > 0 && step.Outcome == engine.OutcomeStable {
		// Not on the plateau this time: it begins higher.
		s.lo, s.hi = s.level, s.measuredAbove(s.level)
		if math.IsInf(s.hi, 1) {
			// Nothing was measured above it: it is the highest known level, and stable.
			s.plateau = 0
			s.finish(true, "")
			return
		}
	} else {
		s.markUnstable(step)
	}
	candidate := s.answer()
	switch {
	case s.plateau > 0 && s.refuted < maxRefuted:
		s.bisect()
	case s.refuted >= maxRefuted:
		s.finishUnsteady()
	case candidate > 0 && candidate == s.confirmedLevel:
		s.finish(true, "")
	case candidate > 0:
		// What was stable once and then not casts doubt on its neighbours: they are
		// repeated, from the top down, before they are believed.
		s.level = candidate
	default:
		s.bisect()
	}
}

// missedOwnBaseline reports that a step at the first level was slower than the baseline, which is that level's own.
func (s *Search) missedOwnBaseline(step engine.FindMaxStep) bool {
	return s.level == s.cfg.Start && step.Outcome == engine.OutcomeDegraded && step.P95LatencyMs != nil && !s.latencySLO()
}

// finishUnsteady ends a search on a target that is not steady, with the highest level that did hold twice.
func (s *Search) finishUnsteady() {
	why := fmt.Sprintf("%d repeated steps gave another result than the first time, so the target or its machine is not "+
		"steady. ", s.refuted)
	if s.confirmedLevel > 0 {
		s.lo, s.plateau = s.confirmedLevel, 0
	}
	s.finish(s.confirmedLevel > 0, why)
}

// measuredAbove is the lowest level above one that has been tried, +Inf for none.
func (s *Search) measuredAbove(level float64) float64 {
	next := math.Inf(1)
	for _, step := range s.steps {
		if l := step.Level(); l > level && l < next {
			next = l
		}
	}
	return next
}

// answer is the level that the search stands for by now, 0 for none.
func (s *Search) answer() float64 {
	if s.plateau > 0 && !math.IsInf(s.hi, 1) {
		return s.hi
	}
	return s.lo
}

// finish writes the result. prefix goes before the sentence that tells the answer.
func (s *Search) finish(confirmed bool, prefix string) {
	s.stage = engine.StageDone
	r := &engine.FindMaxResult{Unit: s.cfg.Unit, Confirmed: confirmed, BaselineP95Ms: s.baseline, Limit: s.limit,
		Steps:      len(s.steps),
		UpperBound: s.cfg.Max, History: slices.Clone(s.steps)}
	s.result = r
	_, r.FirstUnstable = s.Bounds()
	level := s.answer()
	if level <= 0 {
		r.Reason = prefix + s.notFoundMessage()
		return
	}
	r.Found = true
	if s.cfg.Unit == engine.FindMaxRate {
		r.MaxQPSTarget = &level
	} else {
		n := int(level)
		r.MaxConnections = &n
	}
	// The last step at the level is the confirming one when there was one.
	for i := len(s.steps) - 1; i >= 0; i-- {
		if step := s.steps[i]; step.Level() == level {
			r.QPS, r.P50LatencyMs, r.P95LatencyMs, r.P99LatencyMs, r.ErrorRate = step.QPS, step.P50LatencyMs, step.P95LatencyMs,
				step.P99LatencyMs, step.ErrorRate
			break
		}
	}
	r.Reason = prefix + s.foundMessage(level)
}
