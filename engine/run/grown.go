package run

// Grown are the run workers that were added last for a rate that is missed.
type Grown struct {
	workers      []*Worker
	before, each int
}

// Add notes who was added, each with so many connections at most, and what all had together before.
func (g *Grown) Add(before, each int, workers []*Worker) { *g = Grown{workers, before, each} }

// Settled takes back what was meant for those of them who were refused: it returns what is left of the connections
// that all have together, and whether all were refused. It knows of none from then on.
func (g *Grown) Settled(pool int) (left int, refused bool) {
	if g.workers == nil {
		return pool, false
	}
	taken := 0
	for _, w := range g.workers {
		if !w.State.Status.Ended() {
			taken++
		}
	}
	left = min(pool, g.before+taken*g.each)
	*g = Grown{}
	return left, taken == 0
}
