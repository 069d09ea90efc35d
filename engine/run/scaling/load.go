package scaling

import (
	"encoding/json"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
)

// The bounds of a search whose template has none.
const (
	// SpareSessions of a target are left to others.
	SpareSessions  = 10
	defaultMaxRate = 10_000_000
)

// MaxLevel is the highest level that a search may try: what the template
// says, and no more connections than the run workers and the target hold.
func MaxLevel(sc engine.Scenario, targetHolds int) (level float64, why string) {
	f := sc.FindMax
	if f.Unit == engine.FindMaxRate {
		if f.MaxRate != nil {
			return *f.MaxRate, "find_max.max_rate"
		}
		return defaultMaxRate, "the highest rate there is"
	}
	most, why := sc.Scaling.Capacity(), "what the run workers hold"
	if f.MaxConcurrency != nil && *f.MaxConcurrency <= most {
		most, why = *f.MaxConcurrency, "find_max.max_concurrency"
	}
	if left := targetHolds - SpareSessions; targetHolds > 0 && left < most {
		most, why = left, fmt.Sprintf("the target's max_connections of %d, less %d for others", targetHolds, SpareSessions)
	}
	return float64(max(most, f.StartConcurrency)), why
}

// WorkerWorkload is the workload as the run workers know it. Those of a search follow
// levels, in a closed loop or an open one, and know nothing of the search; those that come and go
// with stages are told their connections.
func WorkerWorkload(sc engine.Scenario) engine.Workload {
	w := sc.Workload
	if !w.IsSearch() {
		if len(w.Stages) > 0 && sc.Scaling.Elastic() && w.Arrival != engine.ArrivalWorkload {
			if rate := w.StartRate(); w.OpenLoop() && rate > 0 {
				w.TargetQPS = &rate
			}
			w.Stages = nil
		}
		return w
	}
	w.LoadMode = engine.LoadConcurrency
	if sc.FindMax.Unit == engine.FindMaxRate {
		w.LoadMode, w.TargetQPS = engine.LoadQPS, sc.FindMax.StartRate
	}
	return w
}

// WorkerWorkloadWith is Load with the completed parameters of its plugin.
func WorkerWorkloadWith(sc engine.Scenario, params json.RawMessage) engine.Workload {
	w := WorkerWorkload(sc)
	w.Params = params
	return w
}

// UnitName names what the levels of a search are.
func UnitName(u engine.FindMaxUnit) string {
	if u == engine.FindMaxRate {
		return "operations per second"
	}
	return "connections"
}

// ScalesWithRate reports whether run workers join a run over the rate when it is missed.
func ScalesWithRate(sc engine.Scenario) bool {
	if !sc.Scaling.Elastic() {
		return false
	}
	if sc.Workload.IsSearch() {
		return sc.FindMax.Unit == engine.FindMaxRate
	}
	return FirstRate(sc) != nil
}
