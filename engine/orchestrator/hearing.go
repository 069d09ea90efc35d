package orchestrator

import (
	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/fleet"
)

// hearing brings what the nodes say to the runs that it is about.
type hearing struct{ s *Service }

var _ fleet.Listener = hearing{}

// Hear hands a message to the loop of its run. A part of a run that is not live here is
// kept for who finishes the run.
func (h hearing) Hear(runID string, from fleet.Node, m control.FromNode) {
	s := h.s
	l := s.runs.find(runID)
	if l == nil {
		if p, ok := m.(control.WorkReady); ok {
			s.mu.Lock()
			s.salvaged[runID] = append(s.salvaged[runID], fleet.Part{WorkReady: p, Node: from})
			s.mu.Unlock()
		}
		return
	}
	select {
	case l.inbox <- fromNode{from, m}:
	case <-l.done:
	case <-s.lifetime.Done():
	}
}

// Aside remembers a part that cannot be opened, for the log of its run.
func (h hearing) Aside(p control.AsidePart) {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	h.s.aside[p.RunID] = append(h.s.aside[p.RunID], p)
}
