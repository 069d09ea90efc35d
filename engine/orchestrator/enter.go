package orchestrator

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/crew"
	"github.com/loadstone-db/loadstone/engine/keeper"
)

// enterLimit is how long the row of a run worker that joins may take. Then the run goes on without it.
const enterLimit = 10 * time.Second

// unneeded is why a run worker is not placed that was told to leave before it was.
const unneeded = "it is not needed any more"

// entering are run workers whose row is on its way to the store. None is given to a node before it is there: should
// this server end, whoever goes on with the run has to know of each that may bear load, or it would give the name
// and the slot of one to another.
type entering struct {
	workers []*crew.Worker
	row     *keeper.Write
	// until is when they are given up, zero while the run may wait for them.
	until time.Time
	// begin has them placed.
	begin func(ctx context.Context)
}

// enter has run workers begin once their row is stored. The loop does not wait for that.
func (l *scaler) enter(e entering) {
	for _, w := range e.workers {
		w.Heard = l.clock.Now()
		w.State = control.WorkerState{WorkerID: w.ID, WorkerGroupID: w.Group, ResultID: w.ResultID,
			Status: engine.WorkerStarting}
	}
	l.scale.entering = append(l.scale.entering, e)
}

// known is closed when the store knows the first of those that enter, or has refused them; nil where nobody enters.
func (l *scaler) known() <-chan struct{} {
	if len(l.scale.entering) == 0 {
		return nil
	}
	return l.scale.entering[0].row.Done()
}

// entered goes on with those whose row is stored.
func (l *scaler) entered(ctx context.Context) {
	e := l.scale.entering[0]
	l.scale.entering = l.scale.entering[1:]
	switch {
	case l.life.Stopping():
		l.scale.refuse(ctx, "the run ends", e.workers...)
	case e.row.Err() != nil:
		l.scale.refuse(ctx, "the control store does not take it", e.workers...)
	case len(e.workers) == 1 && e.workers[0].Retiring:
		l.scale.refuse(ctx, unneeded, e.workers...)
	default:
		e.begin(ctx)
	}
	l.scale.joined()
}

// giveUp refuses those whose rows take too long, and all of them when the run ends. Nobody has heard of them: the
// others are not silent meanwhile.
func (l *scaler) giveUp(ctx context.Context, now time.Time) {
	waiting := l.scale.entering
	l.scale.entering = nil
	var over []entering
	for _, e := range waiting {
		if l.life.Stopping() || !e.until.IsZero() && now.After(e.until) {
			over = append(over, e)
			continue
		}
		for _, w := range e.workers {
			w.Heard = now
		}
		l.scale.entering = append(l.scale.entering, e)
	}
	for _, e := range over {
		why := "the control store has not taken it in time"
		if l.life.Stopping() {
			why = "the run ends"
		}
		l.scale.refuse(ctx, why, e.workers...)
	}
	if len(over) > 0 {
		l.scale.joined()
	}
}
