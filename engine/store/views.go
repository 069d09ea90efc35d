package store

import (
	"context"
	"math"

	"github.com/loadstone-db/loadstone/engine"
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

// Views are what pages show of large runs: parts, and summaries of parts.
type Views interface {
	// Series returns the parent's points in the window, oldest first. Where there are
	// more than Most, each point stands for the seconds of one phase in a stretch of
	// resolution seconds: rates, the median and the mean are their means, P95, P99 and
	// the maximum the highest of any of them, and the rest is that of the last one;
	// the histogram, which would be its own only, is left out. resolution is 1 otherwise.
	Series(ctx context.Context, runID string, w Window) (points []engine.Point, resolution float64, err error)
	// WorkerSeries is Series for one run worker, workerID "" all of them;
	// Most counts the points of all together, of which each has 20 at least.
	WorkerSeries(ctx context.Context, runID, workerID string, w Window) (points []WorkerPoint, resolution float64,
		err error)
	// WarehousePolls returns the polls of a run's warehouse in the window, oldest first. Where
	// there are more than Most, each stands for those of a stretch of resolution seconds: it is
	// the last of them, with the most queries that ran and waited in any. resolution is 5 otherwise.
	WarehousePolls(ctx context.Context, runID string, w Window) (polls []engine.WarehousePoint, resolution float64,
		err error)
	// WarehouseSlots returns the run's warehouse in slots of five seconds, oldest first; of more
	// than Most it leaves out evenly, and a slot has the longest queue until the next one.
	WarehouseSlots(ctx context.Context, runID string, w Window) ([]engine.WarehouseSlot, error)
	// EventPage returns limit events after a sequence, in their order, and how many the run has.
	EventPage(ctx context.Context, runID string, after int64, limit int) (events []engine.Event, total int64, err error)
	// ArtifactPage returns limit artifacts whose names come after a name, in the order of names,
	// and how many the run has.
	ArtifactPage(ctx context.Context, runID, after string, limit int) (artifacts []engine.Artifact, total int64, err error)
	// Overviews are the Results with little more of each run worker than a table shows:
	// its figures without parts, distributions and executions.
	Overviews(ctx context.Context, runID string) ([]engine.RunResult, error)
}
