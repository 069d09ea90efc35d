package store

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Admission is what run workers need, and where they may be.
type Admission struct {
	Nodes   []engine.NodeCapacity
	Demands []engine.WorkerDemand
	// On is the node of each run worker; the store fills it in.
	On map[string]string
}

// QueuedRun is a run that waits for room on the nodes.
type QueuedRun struct {
	RunID   string
	RunName string // is not written
	// Pool is the one node that can carry the run, empty where any can. Those of a pool are
	// started in the order in which they came.
	Pool    string
	Demands []engine.WorkerDemand
	By      string
	Since   engine.Time // the store fills it in
	// Unfit is how long no server has said that there are nodes that could carry it; the store fills it in.
	Unfit time.Duration
}

// Ledger is what runs hold on the nodes, and who waits for it, the longest first.
type Ledger struct {
	Reserved []engine.Reservation
	Queued   []QueuedRun
}
