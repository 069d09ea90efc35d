package engine

// NodeCapacity is a node that takes run workers.
type NodeCapacity struct {
	ID string
	// Capacity is the most connections of all runs together, 0 without a bound. Used are those
	// that runs hold: more than the capacity when that has shrunk.
	Capacity, Used int
}

// WorkerDemand is what one run worker needs.
type WorkerDemand struct {
	// ID names it within its run.
	ID          string
	Connections int
	// Only is the one node that can carry it, empty where any can.
	Only string
}

// Reservation is what a run worker holds on a node.
type Reservation struct {
	RunID, WorkerID, NodeID string
	Connections             int
}
