package store

import "context"

// Store is the whole contract. Consumers declare the part they need.
type Store interface {
	Runs
	Matrices
	Templates
	Connections
	Plugins
	Users
	Audit
	Nodes
	RunWishes
	Marks
	Refreshes
	Queries
	RunViews
	Handed
	Grants
	Settings
	Retention
	Rooms
	// Ping proves that the store answers and that its schema is current.
	Ping(ctx context.Context) error
}
