package orchestrator

// Kill ends the service as SIGKILL would: nobody is told, nothing more is written.
func (s *Service) Kill() {
	s.close.Do(func() {
		s.end()
		s.routines.Wait()
		for _, n := range s.nodes {
			_ = n.link.Close()
		}
	})
}
