package snowsim

// EndSessions ends every session, as an administrator can: what runs in them is
// cancelled, and whoever uses one again is told that it is gone.
func (s *Server) EndSessions() {
	s.mu.Lock()
	open := make([]*session, 0, len(s.sessions))
	for _, one := range s.sessions {
		open = append(open, one)
	}
	s.mu.Unlock()
	for _, one := range open {
		s.end(one)
	}
}
