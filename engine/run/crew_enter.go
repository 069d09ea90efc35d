package run

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// Entering are run workers whose row is on its way to the store. None is given to a node before it is there: should
// this server end, whoever goes on with the run has to know of each that may bear load, or it would give the name
// and the slot of one to another.
type Entering struct {
	Workers []*Worker
	Row     Row
	// Until is when they are given up, zero while the run may wait for them.
	Until time.Time
	// Begin has them placed.
	Begin func(ctx context.Context)
}

// Row is a write: done when it is stored, or given up, which Err says.
type Row interface {
	Done() <-chan struct{}
	Err() error
}

// Entrance are those that enter, in the order of their rows. The zero Entrance has none.
type Entrance struct{ waiting []Entering }

// Enter has run workers begin once their row is stored.
func (e *Entrance) Enter(now time.Time, in Entering) {
	for _, w := range in.Workers {
		w.Heard = now
		w.State = protocol.WorkerState{WorkerID: w.ID, WorkerGroupID: w.Group, ResultID: w.ResultID,
			Status: engine.WorkerStarting}
	}
	e.waiting = append(e.waiting, in)
}

// Known is closed when the store knows the first of those that enter, or has refused them; nil where nobody enters.
func (e *Entrance) Known() <-chan struct{} {
	if len(e.waiting) == 0 {
		return nil
	}
	return e.waiting[0].Row.Done()
}

// Next takes the first of those that enter out.
func (e *Entrance) Next() Entering {
	first := e.waiting[0]
	e.waiting = e.waiting[1:]
	return first
}

// Overdue takes those out whose rows take too long, or all of them. Nobody has heard of the others, which are not
// silent meanwhile.
func (e *Entrance) Overdue(now time.Time, all bool) (over []Entering) {
	waiting := e.waiting
	e.waiting = nil
	for _, in := range waiting {
		if all || !in.Until.IsZero() && now.After(in.Until) {
			over = append(over, in)
			continue
		}
		for _, w := range in.Workers {
			w.Heard = now
		}
		e.waiting = append(e.waiting, in)
	}
	return over
}
