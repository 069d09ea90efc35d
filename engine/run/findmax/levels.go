package findmax

import (
	"math"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
)

// levelSteps is what the judged steps at one level say together.
type levelSteps struct {
	level        float64
	held, failed int
	// qps is the mean throughput of the steps that held, deviation its standard error as a fraction.
	qps, deviation float64
	// lastHeld tells of the last step; failure is the last one that failed.
	lastHeld bool
	failure  engine.FindMaxStep
	// confirmations are the steps that confirmed the level.
	confirmations int
	// needed is how many failures count.
	needed int
}

// failing: the level failed as often as it takes to count, and more often than it held.
func (l levelSteps) failing() bool { return l.failed >= l.needed && l.failed > l.held }

// holds: it held, and does not count as failing.
func (l levelSteps) holds() bool { return l.held > 0 && !l.failing() }

// undecided: it failed, and neither counts as failing nor held more often than it failed.
func (l levelSteps) undecided() bool { return l.failed >= l.held && l.failed > 0 && !l.failing() }

// confirmed: it was measured again as an answer, and held.
func (l levelSteps) confirmed() bool {
	return l.confirmations > 0 && l.held > 1 && l.holds() && l.lastHeld
}

// levels are the levels that were measured, in ascending order.
func (s *Search) levels() []levelSteps {
	byLevel := map[float64]*levelSteps{}
	var order []float64
	for i, step := range s.steps {
		l := byLevel[step.Level()]
		if l == nil {
			l = &levelSteps{level: step.Level(), needed: failuresToCount}
			if l.level == s.cfg.Start && !s.latencySLO() {
				l.needed = failuresOfFirst
			}
			byLevel[l.level], order = l, append(order, l.level)
		}
		if l.lastHeld = step.Held(); !l.lastHeld {
			l.failed++
			l.failure = step
			if l.level == s.cfg.Start && !s.missedOwnBaseline(step) {
				l.needed = failuresToCount
			}
			continue
		}
		l.held++
		l.qps += (step.QPS - l.qps) / float64(l.held)
		l.deviation = math.Sqrt(sq(l.deviation*float64(l.held-1))+sq(s.errors[i])) / float64(l.held)
		if step.Stage == engine.StageConfirming {
			l.confirmations++
		}
	}
	slices.Sort(order)
	out := make([]levelSteps, 0, len(order))
	for _, level := range order {
		out = append(out, *byLevel[level])
	}
	return out
}

func sq(x float64) float64 { return x * x }

// at is what is known of a level.
func (s *Search) at(level float64) levelSteps {
	for _, l := range s.levels() {
		if l.level == level {
			return l
		}
	}
	return levelSteps{level: level, needed: failuresToCount}
}

// missedOwnBaseline reports that a step at the first level was slower than the baseline, which is that level's own.
func (s *Search) missedOwnBaseline(step engine.FindMaxStep) bool {
	return step.Level() == s.cfg.Start && step.Outcome == engine.OutcomeDegraded && step.P95LatencyMs != nil &&
		!s.latencySLO()
}

// holding are the levels that hold, below the lowest one that fails, which hard is; +Inf for none.
func (s *Search) holding() (ok []levelSteps, hard float64) {
	hard = math.Inf(1)
	for _, l := range s.levels() {
		switch {
		case l.failing():
			return ok, l.level
		case l.holds():
			ok = append(ok, l)
		}
	}
	return ok, hard
}

// byThroughput reports whether the answer is where throughput reaches its peak: in a search over connections, unless
// its rule is switched off.
func (s *Search) byThroughput() bool {
	return s.cfg.Unit != engine.FindMaxRate && s.cfg.QPSStabilityPct >= 0
}

// knee is the index of the lowest level whose throughput reaches the peak of all, and the throughput that reaches it.
// What is not told apart from the highest, as steps scatter, is taken together.
func knee(ok []levelSteps) (at int, reaches float64) {
	top := 0
	for i, l := range ok {
		if l.qps > ok[top].qps {
			top = i
		}
	}
	sum, weight := 0.0, 0.0
	for _, l := range ok {
		if scatter := math.Hypot(l.deviation, ok[top].deviation); l.qps >= ok[top].qps*(1-scatter) {
			sum, weight = sum+l.qps*float64(l.held), weight+float64(l.held)
		}
	}
	peak := sum / weight
	reaches = peak * (1 - plateauTolerance)
	for i, l := range ok[:top] {
		// A little below the peak is on the way to it where a little less load explains it.
		if less := 1 - l.level/ok[top].level; l.qps >= reaches && 1-l.qps/peak <= less/2 {
			return i, reaches
		}
	}
	return top, reaches
}

// answer is the level that the search stands for by now, 0 for none.
func (s *Search) answer() float64 {
	ok, _ := s.holding()
	switch {
	case len(ok) == 0:
		return 0
	case s.byThroughput():
		if h, fits := fitHinge(ok); fits {
			if l, near := h.measured(ok); near {
				return l
			}
		}
		at, _ := knee(ok)
		return ok[at].level
	default:
		return ok[len(ok)-1].level
	}
}

// highestConfirmed is the highest level that held whenever it was measured, and more than once; 0 for none.
func (s *Search) highestConfirmed() (level float64) {
	for _, l := range s.levels() {
		if l.held > 1 && l.failed == 0 {
			level = l.level
		}
	}
	return level
}

// gap is the next level to look at before the answer is known well enough; more is false when it is.
func (s *Search) gap() (level float64, more bool) {
	ok, hard := s.holding()
	if len(ok) == 0 {
		return s.between(0, hard)
	}
	top := ok[len(ok)-1]
	if !s.byThroughput() {
		return s.between(top.level, hard)
	}
	if h, fits := fitHinge(ok); fits && h.knee < hard-1 {
		return h.gap(ok)
	}
	at, reaches := knee(ok)
	p, below := ok[at], levelSteps{}
	if at > 0 {
		below = ok[at-1]
	}
	onLine := at == 0 || p.qps/p.level >= below.qps/below.level*(1-lineTolerance)
	if at == len(ok)-1 {
		if level, more := s.between(p.level, hard); more {
			return level, more
		}
	}
	if at != len(ok)-1 || !onLine || at == 0 {
		if level, more := s.leftOf(p, below, reaches); more {
			return level, true
		}
	}
	if onLine && at < len(ok)-1 {
		return s.rightOf(ok[at:])
	}
	return 0, false
}

// between halves an interval that is wider than it must be; an open one is left alone.
func (s *Search) between(lo, hi float64) (level float64, more bool) {
	if math.IsInf(hi, 1) || hi-lo <= s.resolution(lo, hi) {
		return 0, false
	}
	level = s.whole((lo + hi) / 2)
	return level, level > lo && level < hi && level > 0
}

func (s *Search) whole(level float64) float64 {
	if s.cfg.Unit == engine.FindMaxConnections {
		return math.Floor(level)
	}
	return level
}

// resolution is how close the bounds must be: a connection or 2 % of them, or 1 % of the rate.
func (s *Search) resolution(lo, hi float64) float64 {
	if s.cfg.Unit == engine.FindMaxRate {
		// Nothing is looked for below a hundredth of the first level.
		return max(hi, s.cfg.Start) / 100
	}
	return max(1, math.Floor(lo/50))
}

// leftOf is where, below the knee p and above the level that does not reach the peak, to look for a lower one that
// does: first where growth with the load would reach it.
func (s *Search) leftOf(p, below levelSteps, reaches float64) (level float64, more bool) {
	width := s.resolution(below.level, p.level)
	if p.level-below.level <= width {
		return 0, false
	}
	if below.level > 0 && below.qps > 0 {
		meets := math.Ceil(reaches / (below.qps / below.level))
		switch {
		case meets > below.level && meets < p.level:
			return meets, true
		case meets >= p.level && p.level-width > below.level:
			return p.level - width, true
		}
	}
	return s.between(below.level, p.level)
}

// rightOf is where to look for a higher peak between the first of the levels, up to which throughput follows the load,
// and the next: it may rise and fall again between them. Two levels above that give the same are a plateau.
func (s *Search) rightOf(from []levelSteps) (level float64, more bool) {
	p, flat := from[0], 0
	for _, l := range from[1:] {
		if math.Abs(l.qps/p.qps-1) <= lineTolerance {
			flat++
		}
	}
	if flat >= 2 {
		return 0, false
	}
	return s.between(p.level, from[1].level)
}

// limit is what keeps the answer from being higher.
type limit struct {
	outcome engine.StepOutcome
	reason  string
}

// limitAbove is what the lowest level above one shows that does not hold, or brings no more.
func (s *Search) limitAbove(level float64) limit {
	ok, _ := s.holding()
	for _, l := range ok {
		if l.level > level && s.byThroughput() && level > 0 && !s.climbing {
			return limit{outcome: engine.OutcomePlateau}
		}
	}
	for _, l := range s.levels() {
		if l.level > level && (l.failing() || l.held == 0) {
			return limit{l.failure.Outcome, l.failure.StopReason}
		}
	}
	return limit{}
}
