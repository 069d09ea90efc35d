package store

import (
	"math"
)

// Window is a part of a run's time, and in how many points it is wanted.
type Window struct {
	// From and Until bound the elapsed seconds; zero means no bound.
	From, Until float64
	// MaxPoints is how many points the answer should have about; 0 means all.
	MaxPoints int
}

const (
	// RollupSeconds is how many seconds points of a coarse series stand for, or a multiple of them:
	// so many are rolled up when they are written.
	RollupSeconds = 10
	// minPoints is how many points each of many run workers has at least.
	minPoints = 20
)

// Resolution is how many seconds a point of the window stands for, where the run has
// one for each second from first to last: 1 where they are not more than Most.
func (w Window) Resolution(first, last float64) float64 {
	seconds := math.Floor(last - first + 1.5)
	if w.MaxPoints <= 0 || seconds <= float64(w.MaxPoints) {
		return 1
	}
	step := math.Ceil(seconds / float64(w.MaxPoints))
	if step > RollupSeconds {
		step = math.Ceil(step/RollupSeconds) * RollupSeconds
	}
	return step
}

// PerWorker is the window for each of so many run workers, which share its points.
func (w Window) PerWorker(workers int) Window {
	if w.MaxPoints > 0 {
		w.MaxPoints = max(w.MaxPoints/max(workers, 1), minPoints)
	}
	return w
}
