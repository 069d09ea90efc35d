package nodes

import (
	"context"
)

// NodeEventFilter selects events of nodes; empty fields select all.
type NodeEventFilter struct {
	NodeID string
	// Before is the Seq of an event: older ones are wanted. 0 is the newest.
	Before int64
	// Limit ≤ 0 means 50.
	Limit int
}

// Nodes keeps what operators want of nodes, and what became of them. All servers share it.
type Nodes interface {
	// SetNodeDesiredState notes what is wanted of a node; DesiredNone forgets what was.
	SetNodeDesiredState(ctx context.Context, nodeID string, desired DesiredState, by string) error
	// NodeDesiredStates returns all of them, by node.
	NodeDesiredStates(ctx context.Context) (map[string]DesiredState, error)
	// AppendNodeEvents adds events in order; the store fills Seq.
	AppendNodeEvents(ctx context.Context, events []NodeEvent) error
	// NodeEvents returns events, newest first.
	NodeEvents(ctx context.Context, f NodeEventFilter) ([]NodeEvent, error)
	// PruneNodeEvents deletes all but the newest keep events.
	PruneNodeEvents(ctx context.Context, keep int) error
}
