package nodes

import "time"

// Work is a run worker on a node, or one of its artifacts (WorkID); or a work of a query, which has no run.
type Work struct{ RunID, WorkerID, QueryID, LeafID, WorkID, NodeID string }

// WorkCost is what carrying out a work of a query took.
type WorkCost struct {
	// Segments is how many were read: Hits of them were in memory, DiskHits on the disk, and Fetched came from the server.
	Segments     int   `json:"segments"`
	Hits         int   `json:"hits"`
	DiskHits     int   `json:"disk_hits"`
	Fetched      int   `json:"fetched"`
	FetchedBytes int64 `json:"fetched_bytes"`
	// ReadNs is how long the segments took, WaitNs until it was this evaluation's turn, and EvaluateNs the leaf.
	ReadNs     time.Duration `json:"read_ns"`
	WaitNs     time.Duration `json:"wait_ns"`
	EvaluateNs time.Duration `json:"evaluate_ns"`
}
