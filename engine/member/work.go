package member

// Work is a run worker on a node, or one of its artifacts (WorkID).
type Work struct{ RunID, WorkerID, WorkID, NodeID string }
