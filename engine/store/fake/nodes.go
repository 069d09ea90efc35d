package fake

import (
	"context"
	"maps"
	"slices"

	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/store"
)

// SetNodeDesiredState implements nodes.Nodes.
func (s *Store) SetNodeDesiredState(ctx context.Context, nodeID string, desired nodes.DesiredState, _ string) error {
	if nodeID == "" {
		return unnamed("node")
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if desired == nodes.DesiredNone {
		delete(s.desiredStates, nodeID)
		return nil
	}
	s.desiredStates[nodeID] = desired
	return nil
}

// NodeDesiredStates implements nodes.Nodes.
func (s *Store) NodeDesiredStates(ctx context.Context) (map[string]nodes.DesiredState, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return maps.Clone(s.desiredStates), nil
}

// AppendNodeEvents implements nodes.Nodes.
func (s *Store) AppendNodeEvents(ctx context.Context, events []nodes.NodeEvent) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, e := range events {
		e.Seq, e.At, e.Reason = s.next(), orNow(e.At), store.CleanText(e.Reason)
		s.nodeEvents = append(s.nodeEvents, e)
	}
	return nil
}

// NodeEvents implements nodes.Nodes.
func (s *Store) NodeEvents(ctx context.Context, f nodes.NodeEventFilter) ([]nodes.NodeEvent, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var found []nodes.NodeEvent
	for _, e := range slices.Backward(s.nodeEvents) {
		if (f.NodeID == "" || e.NodeID == f.NodeID) && (f.Before == 0 || e.Seq < f.Before) {
			found = append(found, e)
		}
	}
	return first(f.Limit, found), nil
}

// PruneNodeEvents implements nodes.Nodes.
func (s *Store) PruneNodeEvents(ctx context.Context, keep int) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.nodeEvents = slices.Clone(s.nodeEvents[max(0, len(s.nodeEvents)-keep):])
	return nil
}
