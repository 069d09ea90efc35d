package orchestrator

import "time"

// ShortenInteractiveLimit makes the limit of interactive warehouses another one until restore is called.
func ShortenInteractiveLimit(d time.Duration) (restore func()) {
	was := interactiveLimit
	interactiveLimit = d
	return func() { interactiveLimit = was }
}

// Kill ends the service as SIGKILL would: nobody is told, nothing more is written.
func (s *Service) Kill() {
	s.close.Do(func() {
		s.end()
		s.routines.Wait()
		_ = s.nodes.Close()
	})
}
