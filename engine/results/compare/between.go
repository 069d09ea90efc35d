package compare

import (
	"math"
	"slices"
)

// Two runs of the same workload on the same system differ by more than their seconds show: caches, checkpoints, where
// processes happen to run, what else the machine does. That is learned from the runs of each side, and begins with what
// is usual: without it, one run on each side would find identical systems different.

const (
	// usualRuns is how many degrees of freedom the usual difference counts for.
	usualRuns = 4
	// usualErrorNoise is the usual standard deviation of an error rate between runs, as a part of it.
	usualErrorNoise = 0.3
	// maxMoreRuns bounds how many more runs are advised.
	maxMoreRuns = 50
)

// noise is what is known of the differences between runs.
type noise struct {
	// deviation of one run, as a fraction, or for an error rate as a rate; free are its degrees of freedom.
	deviation float64
	free      int
	// drift is by how much the sides would differ by the course of time alone, as the runs of each side show it; where all
	// of one side began before the other, driftError is how uncertain that is, as a part of the variance of a run.
	drift, driftError float64
	a, b              int
}

// between is the noise of a metric between the runs; k is its index.
func between(m metric, a, b *side) noise {
	n := noise{a: len(a.runs), b: len(b.runs)}
	rate := m.name == "error_rate"
	usual := m.usual
	if rate {
		pooled := draw{}
		pooled.errors, pooled.operations = a.whole.errors+b.whole.errors, a.whole.operations+b.whole.operations
		usual = usualErrorNoise * float64(pooled.errors) / max(float64(pooled.operations), 1)
	}
	squares, slope, spread := 0.0, 0.0, 0.0
	var center [2]float64
	for i, s := range []*side{a, b} {
		values := s.perRun(m, rate)
		n.free += max(len(values)-1, 0)
		mean := average(values)
		center[i] = average(s.order)
		for j, v := range values {
			squares += (v - mean) * (v - mean)
			slope += (v - mean) * (s.order[j] - center[i])
			spread += (s.order[j] - center[i]) * (s.order[j] - center[i])
		}
	}
	n.deviation = math.Sqrt((usualRuns*usual*usual + squares) / float64(usualRuns+n.free))
	n.free += usualRuns
	if spread > 0 {
		distance := center[1] - center[0]
		n.drift = math.Abs(slope / spread * distance)
		if a.timed && apart(a, b) {
			n.driftError = distance * distance / spread
		}
	}
	return n
}

func average(values []float64) (mean float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean
}

// perRun is the figure of each run, its logarithm where differences are relative.
func (s *side) perRun(m metric, rate bool) []float64 {
	values := make([]float64, 0, len(s.runs))
	var d draw
	for _, run := range s.runs {
		d.reset(s.width)
		for i := range run {
			d.add(&run[i])
		}
		v := m.figure(&d)
		if !rate {
			v = math.Log(v)
		}
		if !finite(v) {
			v = 0
		}
		values = append(values, v)
	}
	return values
}

// halfWidth is how far the difference of the sides may be off, with the confidence of an interval; in percent, or for a
// rate as a rate.
func (n noise) halfWidth(rate bool) float64 {
	h := studentQuantile(n.free)*n.deviation*math.Sqrt(1/float64(n.a)+1/float64(n.b)+n.driftError) + n.drift
	if rate {
		return h
	}
	return (math.Exp(h) - 1) * 100
}

// moreRuns is how many more runs each side needs for intervals within the tolerance; ok is false for too many.
func (n noise) moreRuns(tolerance float64, rate bool) (more int, ok bool) {
	if !rate {
		tolerance = math.Log1p(tolerance / 100)
	}
	have := min(n.a, n.b)
	for more := range maxMoreRuns + 1 {
		runs := have + more
		free := max(n.free+2*more, 1)
		if studentQuantile(free)*n.deviation*math.Sqrt(2/float64(runs)) <= tolerance {
			return more, true
		}
	}
	return 0, false
}

// advice is how many more runs each side needs where these show a difference of so much; nil for too many.
func (n noise) advice(shows, tolerance float64, rate bool) *int {
	more, ok := n.moreRuns(tolerance, rate)
	if !ok {
		return nil
	}
	if more == 0 && shows > tolerance {
		more = 1 // what differs within the runs is too much still
	}
	return &more
}

// studentQuantile is the upper half of a percent of Student's distribution, by its expansion about the normal
// (Abramowitz and Stegun 26.7.5).
func studentQuantile(free int) float64 {
	const z = 2.5758
	n := float64(free)
	z3, z5, z7 := z*z*z, z*z*z*z*z, z*z*z*z*z*z*z
	return z + (z3+z)/(4*n) + (5*z5+16*z3+3*z)/(96*n*n) + (3*z7+19*z5+17*z3-15*z)/(384*n*n*n)
}

// setOrder numbers the runs of both sides by when they began; runs whose begin is not known stand in the order given,
// those of A first.
func setOrder(a, b *side, begun [2][]float64) {
	type at struct {
		side, run int
		begun     float64
	}
	var all []at
	for i, s := range []*side{a, b} {
		s.order = make([]float64, len(s.runs))
		for j := range s.runs {
			t := 0.0
			if j < len(begun[i]) {
				t = begun[i][j]
			}
			all = append(all, at{i, j, t})
		}
	}
	slices.SortStableFunc(all, func(x, y at) int {
		switch {
		case x.begun < y.begun:
			return -1
		case x.begun > y.begun:
			return 1
		}
		return 0
	})
	a.timed = all[0].begun != all[len(all)-1].begun
	b.timed = a.timed
	for rank, x := range all {
		[]*side{a, b}[x.side].order[x.run] = float64(rank)
	}
}

// apart reports that all runs of one side began before all of the other.
func apart(a, b *side) bool {
	return slices.Max(a.order) < slices.Min(b.order) || slices.Max(b.order) < slices.Min(a.order)
}
