package worker

import "time"

// NodeState is what a node reads of itself when it is scraped.
type NodeState struct {
	// RunWorkers are alive and bear Connections of at most Capacity, 0 without a limit.
	RunWorkers, Connections, Capacity int
	// Servers hold a stream to the node.
	Draining bool
	// Accepting: it takes new run workers; it does not while it drains, and while its disk or spool is full.
	Accepting bool
	Servers   int
	// SpoolBytes lie in Parts that no server has acknowledged; FreeBytes are left on that disk, -1
	// when that is not known.
	Parts      int
	SpoolBytes int64
	// DiskBytes are in the spool altogether, of the BudgetBytes that may be; CacheBytes of them are segments that servers
	// have brought.
	DiskBytes, CacheBytes, BudgetBytes int64
	FreeBytes                          int64
}

// EndedWorker is the life of a run worker that has ended; times that never came are zero.
type EndedWorker struct {
	RunID, WorkerID, NodeID string
	// TraceParent is what its spans are part of.
	TraceParent string
	// Assigned to Ended: given to the node, ready, begun to bear load, told to stop, nothing in flight any more.
	Assigned, Ready, LoadStarted, Stopped, Drained, Ended time.Time
	// Ahead is by how much the run's time is ahead of the node's clock.
	Ahead time.Duration
	// Failed says why it did not end well.
	Failed string
}
