package scaling

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Stages of a run whose run workers come and go are followed by
// the run itself: a worker alone does not know how many others there are.
const (
	// StageRamp is how long a change takes; the level is told anew each second.
	StageRamp = time.Second
	// JoinLead is how long before its connections are due a run worker is placed.
	// It joins without any, so that the target sees no more than the offered load.
	JoinLead = 5 * time.Second
	// RetireAfter is how long a run worker must not be needed to be sent away.
	RetireAfter = 15 * time.Second
	// JoinRetryDelay keeps a place that could not be filled from being tried all the time.
	JoinRetryDelay = 10 * time.Second
)

// Staged reports whether run workers come and go with the stages of the run.
func Staged(sc engine.Scenario) bool {
	w := sc.Workload
	return sc.Scaling.Elastic() && w.LoadMode == engine.LoadConcurrency && len(w.Stages) > 0
}

// StagesDriven reports whether the run itself follows its stages, and not each run worker.
func StagesDriven(sc engine.Scenario) bool {
	return Staged(sc) || ScalesWithRate(sc) && len(sc.Workload.Stages) > 0
}
