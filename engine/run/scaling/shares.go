package scaling

import (
	"fmt"
	"math"

	"github.com/loadstone-db/loadstone/engine"
)

// InitialWorkers is how many run workers a run begins with; those of later groups join it.
func InitialWorkers(sc engine.Scenario) int {
	shares, err := Shares(sc)
	if err != nil {
		return math.MaxInt // it has begun by other rules: they count all
	}
	return len(shares)
}

// Shares decides how many connections each run worker holds.
func Shares(sc engine.Scenario) ([]int, error) {
	workers, total := sc.Scaling.WorkerCount, sc.Workload.ConcurrentConnections
	if sc.Scaling.Elastic() {
		// A search, and stages of connections, add workers as they climb.
		peak := total
		if !sc.Workload.IsSearch() {
			peak = sc.PeakConnections(0)
		}
		if most := sc.Scaling.Capacity(); peak > most {
			return nil, engine.InvalidField("scaling.max_workers",
				fmt.Sprintf("%d connections do not fit on %d run workers of %d", peak, sc.Scaling.MaxWorkers,
					sc.Scaling.PerWorkerCapacity), "raise it, or per_worker_capacity")
		}
		if Staged(sc) {
			peak = sc.Workload.MaxConnectionsBetween(0, JoinLead)
		}
		return engine.Spread(total, sc.Scaling.Workers(peak)), nil
	}
	switch capacity := sc.Scaling.PerWorkerCapacity; {
	case workers < 1:
		return nil, engine.InvalidField("scaling.worker_count", "at least one worker is needed", "")
	case total < workers:
		return nil, engine.InvalidField("workload.concurrent_connections",
			fmt.Sprintf("%d connections are too few for %d workers", total, workers),
			"give each worker one connection at least, or lower scaling.worker_count")
	case capacity > 0 && total > workers*capacity:
		text := fmt.Sprintf("%d connections are more than %s of %d connections hold", total, engine.Count(workers, "worker"),
			capacity)
		return nil, &engine.Error{Code: engine.CodeInvalid, Message: "The connections do not fit on the workers.",
			Fields: []engine.FieldError{
				{Field: "workload.concurrent_connections", Message: text, Hint: fmt.Sprintf("at most %d", workers*capacity)},
				{Field: "scaling.worker_count", Message: text, Hint: fmt.Sprintf("at least %d", (total+capacity-1)/capacity)},
				{Field: "scaling.per_worker_capacity", Message: text, Hint: fmt.Sprintf("at least %d", (total+workers-1)/workers)},
			}}
	}
	return engine.Spread(total, workers), nil
}
