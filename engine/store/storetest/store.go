package storetest

import (
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/store"
)

import "context"

// Store is the whole contract. Consumers declare the part they need.
type Store interface {
	store.Runs
	store.Matrices
	store.Templates
	store.Connections
	store.Plugins
	store.Users
	store.Audit
	nodes.Nodes
	store.RunCommands
	store.Marks
	refresh.Refreshes
	query.Queries
	store.RunViews
	store.RunArtifacts
	store.Grants
	store.Settings
	store.Retention
	store.Admissions
	// Ping proves that the store answers and that its schema is current.
	Ping(ctx context.Context) error
}
