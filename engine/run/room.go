package run

import (
	"cmp"
	"context"
	"errors"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/store"
)

// reservation is the ledger's answer for a run worker that joins.
type reservation struct {
	worker *Worker
	on     map[string]string
	err    error
}

// ask has room reserved for a run worker that joins, beside the loop, and assigns it then.
// Where a node takes any number there is nothing to ask for.
func (l *scaler) ask(ctx context.Context, w *Worker) {
	if l.svc.nodes.Capacity().Unlimited {
		l.scale.place(ctx, nil, w)
		return
	}
	needed := cmp.Or(w.Connections, l.sc.Scaling.PerWorkerCapacity) // it may be told its connections when it is there
	only := l.svc.nodes.Only(l.sc.Workload, l.plan.DSN)
	l.svc.routines.Go(func() {
		on, err := l.svc.doorman.Join(ctx, l.runID, l.epoch, w.ID, needed, only)
		select {
		case l.scale.rooms <- reservation{w, on, err}:
		case <-l.done:
		}
	})
}

// reserved assigns a run worker that has room, or says that there is none. A store that is away
// stops no run from growing: a node takes no more than it holds, whoever asks.
func (l *scaler) reserved(ctx context.Context, r reservation) {
	switch {
	case l.life.Stopping():
		l.scale.refuse(ctx, ending, r.worker)
	case errors.Is(r.err, store.ErrNoRoom):
		l.scale.refuse(ctx, "the nodes have no room for it", r.worker)
	case errors.Is(r.err, store.ErrFenced):
		l.scale.refuse(ctx, "another server owns the run", r.worker)
	case r.worker.Retiring:
		l.scale.refuse(ctx, unneeded, r.worker)
	default:
		l.scale.place(ctx, r.on, r.worker)
	}
	l.scale.joined()
}

// joined goes on with what waits for those who join, once nobody does any more.
func (l *scaler) joined() {
	l.scale.settle()
	if l.search.held != nil && l.Joined() {
		l.search.beginHeld()
	}
}

// place assigns a run worker that joins. Its target and the run's phase follow.
func (l *scaler) place(ctx context.Context, on map[string]string, w *Worker) {
	l.scale.assign(ctx, on, w)
	if w.Node != nil {
		_ = w.Node.Send(l.state()) // to a node that has gone: it is repeated
	}
}

// refuse ends run workers that were not placed.
func (l *scaler) refuse(ctx context.Context, why string, workers ...*Worker) {
	l.scale.nextJoin = l.clock.Now().Add(scaling.JoinPause)
	for _, w := range workers {
		w.State.Status = engine.WorkerFailed
		l.happen(ctx, lifecycle.WorkerChanged{ID: w.ID, Status: engine.WorkerFailed, Message: why})
	}
}

// keepRoom writes what the run workers of an elastic run or a search hold now: they come and go,
// and share connections anew. A lost one keeps its room as long as it may bear load.
func (l *scaler) keepRoom() {
	moves := l.sc.Scaling.Elastic() || l.sc.Workload.Searches()
	if !moves || !l.life.Placed() || l.life.Status().Terminal() {
		return
	}
	var held []engine.Reservation
	for _, w := range l.Workers {
		if w.State.Status.Ended() && !l.Losses.Holds(w.ID) {
			held = append(held, engine.Reservation{WorkerID: w.ID})
		} else if !w.State.Status.Ended() && w.Node != nil {
			held = append(held, l.svc.doorman.Held(w.ID, w.State.NodeID, w.Connections))
		}
	}
	if held = l.scale.account.Changed(held); len(held) > 0 {
		l.keeper.Add("what the run holds on nodes", func(ctx context.Context) error {
			return l.svc.opts.Store.Hold(ctx, l.runID, l.epoch, held)
		})
	}
}
