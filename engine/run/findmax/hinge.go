package findmax

import "math"

// hinge is throughput that follows the load up to the knee and is flat above it, fitted to all levels. Where steps
// scatter it tells the knee better than any two of them.
type hinge struct {
	knee float64
	// deviation is the standard error of the knee as a fraction.
	deviation float64
}

const (
	// noisy is the least scatter of a step for which levels are taken together.
	noisy = 0.005
	// farthest is how many standard errors a level may lie from a hinge.
	farthest = 4
	// sureKnee is the standard error at which a knee is known well enough, maxMeasured how often a level is measured
	// for that.
	sureKnee, maxMeasured = 0.012, 6
)

// fitHinge fits a hinge; fits is false where steps do not scatter, or lie elsewhere than on one.
func fitHinge(ok []levelSteps) (best hinge, fits bool) {
	scatters := false
	for _, l := range ok {
		scatters = scatters || l.deviation > noisy
	}
	if !scatters {
		return best, false
	}
	least := math.Inf(1)
	for k := 1; k < len(ok); k++ {
		slope, slopeWeight := weighted(ok[:k], func(l levelSteps) float64 { return l.qps / l.level })
		flat, flatWeight := weighted(ok[k:], func(l levelSteps) float64 { return l.qps })
		miss, worst := 0.0, 0.0
		for i, l := range ok {
			expected := flat
			if i < k {
				expected = slope * l.level
			}
			away := math.Abs(l.qps/expected-1) / max(l.deviation, noisy)
			miss, worst = miss+sq(away), max(worst, away)
		}
		knee := flat / slope
		if miss < least && knee >= ok[k-1].level*(1-lineTolerance) && knee <= ok[k].level*(1+lineTolerance) {
			least, fits = miss, worst <= farthest
			best = hinge{knee, math.Sqrt(1/slopeWeight + 1/flatWeight)}
		}
	}
	// What is flat is seen only beyond the knee.
	return best, fits && ok[len(ok)-1].level >= best.knee*(1+2*lineTolerance)
}

// weighted is the mean of what levels give, each by how sure it is, and the weight of all.
func weighted(levels []levelSteps, of func(levelSteps) float64) (mean, weight float64) {
	for _, l := range levels {
		w := 1 / sq(max(l.deviation, noisy))
		mean, weight = mean+w*of(l), weight+w
	}
	return mean / weight, weight
}

// measured is the level nearest to the knee that was measured, near if it stands for it.
func (h hinge) measured(ok []levelSteps) (level float64, near bool) {
	for _, l := range ok {
		if math.Abs(l.level-h.knee) < math.Abs(level-h.knee) {
			level = l.level
		}
	}
	return level, math.Abs(level-h.knee) <= max(0.6, 0.015*h.knee)
}

// gap is what to measure next so that the knee is known.
func (h hinge) gap(ok []levelSteps) (level float64, more bool) {
	if _, near := h.measured(ok); !near {
		return max(math.Round(h.knee), 1), true
	}
	if h.deviation <= sureKnee {
		return 0, false
	}
	// Of the levels next to the knee the one that was measured least often.
	fewest := maxMeasured
	for i, l := range ok {
		beside := i+1 < len(ok) && l.level <= h.knee && ok[i+1].level > h.knee ||
			i > 0 && l.level > h.knee && ok[i-1].level <= h.knee
		if beside && l.held < fewest {
			level, fewest = l.level, l.held
		}
	}
	return level, level > 0
}
