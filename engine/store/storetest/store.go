package storetest

import (
	"context"

	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/run"
)

// Store is what the store in memory has too.
type Store interface {
	run.ControlStore
	nodes.Nodes
	refresh.Refreshes
	// TakeOver raises the owner epoch and returns it, whoever holds the run.
	TakeOver(ctx context.Context, runID string) (epoch int64, err error)
	// Ping proves that the store answers and that its schema is current.
	Ping(ctx context.Context) error
}
