package run

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// PendingStart are run workers whose row is on its way to the store. None is given to a node before it is there: should
// this server end, whoever goes on with the run has to know of each that may bear load, or it would give the name
// and the slot of one to another.
type PendingStart struct {
	Workers []*Worker
	Row     RowWrite
	// Deadline is when they are given up, zero while the run may wait for them.
	Deadline time.Time
	// Start has them placed.
	Start func(ctx context.Context)
}

// RowWrite is a write: done when it is stored, or given up, which Err says.
type RowWrite interface {
	Done() <-chan struct{}
	Err() error
}

// PendingStarts are those that enter, in the order of their rows. The zero PendingStarts has none.
type PendingStarts struct{ waiting []PendingStart }

// Add has run workers begin once their row is stored.
func (e *PendingStarts) Add(now time.Time, in PendingStart) {
	for _, w := range in.Workers {
		w.LastSeen = now
		w.State = protocol.WorkerState{WorkerID: w.ID, WorkerGroupID: w.Group, ResultID: w.ResultID,
			Status: engine.WorkerStarting}
	}
	e.waiting = append(e.waiting, in)
}

// FirstStored is closed when the store knows the first of those that enter, or has refused them; nil where nobody
// enters.
func (e *PendingStarts) FirstStored() <-chan struct{} {
	if len(e.waiting) == 0 {
		return nil
	}
	return e.waiting[0].Row.Done()
}

// Pop takes the first of those that enter out.
func (e *PendingStarts) Pop() PendingStart {
	first := e.waiting[0]
	e.waiting = e.waiting[1:]
	return first
}

// TakeExpired takes those out whose rows take too long, or all of them. Nobody has heard of the others, which are not
// silent meanwhile.
func (e *PendingStarts) TakeExpired(now time.Time, all bool) (over []PendingStart) {
	waiting := e.waiting
	e.waiting = nil
	for _, in := range waiting {
		if all || !in.Deadline.IsZero() && now.After(in.Deadline) {
			over = append(over, in)
			continue
		}
		for _, w := range in.Workers {
			w.LastSeen = now
		}
		e.waiting = append(e.waiting, in)
	}
	return over
}
