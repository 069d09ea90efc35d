package run

import (
	"fmt"
	"sync"
	"time"

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

// CheckResults is nil when results can be stored: no run is taken in without. It answers within resultsCheckTimeout.
func (s *Service) CheckResults() error {
	if s.opts.ResultsCheck == nil {
		return nil
	}
	return s.resultsProbe.ask(s.opts.ResultsCheck.CheckResults)
}

// checkExport refuses a run that asks for more than this server can do with its results.
func (s *Service) checkExport(sc engine.Scenario) error {
	if sc.Export != engine.ExportLive || s.opts.CopiesLive != nil && s.opts.CopiesLive() {
		return nil
	}
	return engine.InvalidField("export", "asks for a copy of the run while it goes on, and this process takes results "+
		"nowhere", "start the server with --results-connection, or leave export out")
}

// resultsCheckTimeout is how long the file system of the results has to take a file.
const resultsCheckTimeout = 2 * time.Second

// patientProbe asks what may hang, as a file system of a network does, and cannot be given up: one question at a time,
// however many want to know. Its zero value is ready, and its method is safe for concurrent use.
type patientProbe struct {
	mu    sync.Mutex
	under *question
}

// question is one that has been asked.
type question struct {
	begun time.Time
	done  chan struct{} // closed once err is the answer
	err   error
}

// ask is the answer to the question that is under way, or to a new one. Nobody waits for one that has had
// resultsCheckTimeout.
func (p *patientProbe) ask(check func() error) error {
	p.mu.Lock()
	q := p.under
	if q == nil {
		q = &question{begun: time.Now(), done: make(chan struct{})}
		p.under = q
		go func() {
			q.err = check()
			p.mu.Lock()
			p.under = nil
			p.mu.Unlock()
			close(q.done)
		}()
	}
	p.mu.Unlock()
	late := time.NewTimer(resultsCheckTimeout - time.Since(q.begun))
	defer late.Stop()
	select {
	case <-q.done:
		return q.err
	case <-late.C:
		return &engine.Error{Code: engine.CodeUnavailable,
			Message: fmt.Sprintf("The folder of the results has not answered for %.0f s.", time.Since(q.begun).Seconds()),
			Hint: "its file system hangs, as one of a network does whose server is away; runs are created again as soon as " +
				"it answers"}
	}
}
