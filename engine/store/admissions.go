package store

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Admission is what run workers need, and where they may be.
type Admission struct {
	Nodes []engine.NodeCapacity
	Works []engine.WorkerDemand
	// On is the node of each run worker; the store fills it in.
	On map[string]string
}

// QueuedRun is a run that waits for room on the nodes.
type QueuedRun struct {
	RunID   string
	RunName string // is not written
	// Pool is the one node that can carry the run, empty where any can. Those of a pool are
	// started in the order in which they came.
	Pool  string
	Works []engine.WorkerDemand
	By    string
	Since engine.Time // the store fills it in
	// Unfit is how long no server has said that there are nodes that could carry it; the store fills it in.
	Unfit time.Duration
}

// Ledger is what runs hold on the nodes, and who waits for it, the longest first.
type Ledger struct {
	Reserved []engine.Reservation
	Queued   []QueuedRun
}

// Admissions is what runs hold on the nodes that servers share, and the queue of those that wait
// for it. The change of a run to RUNNING takes its room (Transition.Admission), and the change to a
// terminal status gives it back, whoever writes it. Those of a pool start in their order, but
// for runs that are unfit for placement.BypassAfter: these hold back nobody.
type Admissions interface {
	// Enqueue lets a PREPARED run wait, behind those that wait already; else it is ErrConflict.
	// A run that waits keeps its place.
	Enqueue(ctx context.Context, w QueuedRun) error
	Ledger(ctx context.Context) (Ledger, error)
	// MarkFeasible says that there are nodes that could carry these runs, were they free. Those that do not wait are left
	// out.
	MarkFeasible(ctx context.Context, runIDs []string) error
	// Reserve takes room for run workers that join a live run or move, for all of them or none:
	// ErrNoCapacity. What they held before is given back.
	Reserve(ctx context.Context, runID string, epoch int64, a *Admission) error
	// SetReservations writes what run workers of a run hold, whether or not there is room for it; one
	// without a node holds nothing any more. Repeating it is harmless.
	SetReservations(ctx context.Context, runID string, epoch int64, held []engine.Reservation) error
}
