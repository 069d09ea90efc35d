package member

// Work is a run worker on a node, or one of its artifacts (WorkID); or a work of a query, which has no run.
type Work struct{ RunID, WorkerID, QueryID, LeafID, WorkID, NodeID string }
