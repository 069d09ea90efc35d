package run

import (
	"time"

	"github.com/loadstone-db/loadstone/engine/run/finalize"
)

// SetInteractiveLimit makes the limit of interactive warehouses another one, before a run begins.
func (s *Service) SetInteractiveLimit(d time.Duration) {
	s.finalizer = finalize.New(finalize.Options{Store: s.opts.Store, Results: s.opts.Results, Log: s.opts.Log,
		Drivers: s.opts.Drivers, Enrichments: s.enrichments, InteractiveLimit: d})
}

// Kill ends the service as SIGKILL would: nobody is told, nothing more is written.
func (s *Service) Kill() {
	s.close.Do(func() {
		s.end()
		s.routines.Wait()
	})
}
