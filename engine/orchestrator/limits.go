package orchestrator

import (
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
)

// supported refuses what this version's orchestrator cannot run. It is the only
// place that knows.
func supported(sc engine.Scenario) error {
	var fields []engine.FieldError
	if m := sc.Scaling.Mode; m != engine.ScalingFixed {
		fields = append(fields, engine.FieldError{Field: "scaling.mode", Message: fmt.Sprintf("%s is not supported by this version", m), Hint: "use FIXED"})
	}
	if len(fields) == 0 {
		return nil
	}
	return &engine.Error{Code: engine.CodeUnsupported, Message: "The scenario asks for something that this version cannot do.", Fields: fields}
}

// spread decides how many connections each run worker holds.
func spread(sc engine.Scenario) ([]int, error) {
	workers, total := sc.Scaling.WorkerCount, sc.Workload.ConcurrentConnections
	switch capacity := sc.Scaling.PerWorkerCapacity; {
	case workers < 1:
		return nil, engine.InvalidField("scaling.worker_count", "at least one worker is needed", "")
	case total < workers:
		return nil, engine.InvalidField("workload.concurrent_connections", fmt.Sprintf("%d connections are too few for %d workers", total, workers), "give each worker one connection at least, or lower scaling.worker_count")
	case capacity > 0 && total > workers*capacity:
		const message = "%d connections are more than %d worker(s) of %d connections hold"
		text := fmt.Sprintf(message, total, workers, capacity)
		return nil, &engine.Error{Code: engine.CodeInvalid, Message: "The connections do not fit on the workers.", Fields: []engine.FieldError{
			{Field: "workload.concurrent_connections", Message: text, Hint: fmt.Sprintf("at most %d", workers*capacity)},
			{Field: "scaling.worker_count", Message: text, Hint: fmt.Sprintf("at least %d", (total+capacity-1)/capacity)},
			{Field: "scaling.per_worker_capacity", Message: text, Hint: fmt.Sprintf("at least %d", (total+workers-1)/workers)},
		}}
	}
	return engine.Spread(total, workers), nil
}
