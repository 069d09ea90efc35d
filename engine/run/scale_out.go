package run

// ScaleOut are the run workers that were added last for a rate that is missed.
type ScaleOut struct {
	workers             []*Worker
	previous, perWorker int
}

// Add notes who was added, each with so many connections at most, and what all had together before.
func (g *ScaleOut) Add(before, each int, workers []*Worker) { *g = ScaleOut{workers, before, each} }

// Settle takes back what was meant for those of them who were refused: it returns what is left of the connections
// that all have together, and whether all were refused. It knows of none from then on.
func (g *ScaleOut) Settle(pool int) (left int, refused bool) {
	if g.workers == nil {
		return pool, false
	}
	taken := 0
	for _, w := range g.workers {
		if !w.State.Status.Ended() {
			taken++
		}
	}
	left = min(pool, g.previous+taken*g.perWorker)
	*g = ScaleOut{}
	return left, taken == 0
}
