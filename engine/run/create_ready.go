package run

import (
	"github.com/loadstone-db/loadstone/engine"
)

// ResultsChecker knows whether results can be stored.
type ResultsChecker interface {
	// CheckResults is an error while they cannot, as far as the process can know without asking another machine.
	CheckResults() error
}

// CheckNodes is nil when a run of one connection would be taken in as far as nodes are concerned: one takes run
// workers, or runs may wait for one.
func (s *Service) CheckNodes() error {
	return s.admission.CheckCapacity(engine.Scenario{Workload: engine.Workload{LoadMode: engine.LoadConcurrency,
		ConcurrentConnections: 1}, Scaling: engine.Scaling{Mode: engine.ScalingFixed, WorkerCount: 1,
		PerWorkerCapacity: 1}}, "")
}

// CheckResults is nil when results can be stored: no run is taken in without.
func (s *Service) CheckResults() error {
	if s.opts.ResultsCheck == nil {
		return nil
	}
	return s.opts.ResultsCheck.CheckResults()
}
