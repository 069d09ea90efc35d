// This part has further run workers join a run: their row is stored, room is reserved for them, and a node takes them.

package run

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/store"
)

// workerRowTimeout is how long the row of a run worker that joins may take. Then the run goes on without it.
const workerRowTimeout = 10 * time.Second

// Why run workers are not placed.
const (
	reasonUnneeded  = "it is not needed any more"
	reasonRunEnding = "the run ends"
)

// reservation is the ledger's answer for a run worker that joins.
type reservation struct {
	worker *Worker
	node   map[string]string
	err    error
}

// addWorkers has run workers join, each with its share of so many connections, as far as nobody bears it now.
func (l *runLoop) addWorkers(ctx context.Context, shares []int, of int) []*Worker {
	joined := make([]*Worker, len(shares))
	for i, n := range shares {
		joined[i] = l.addWorker(ctx, min(n, l.SpareConnections(l.clock.Now(), of)))
	}
	return joined
}

// addWorker places a further run worker. It inherits the run's phase, and its target,
// from the state that follows the assignment.
func (l *runLoop) addWorker(ctx context.Context, connections int) *Worker {
	slot := len(l.Workers)
	w := &Worker{ID: scaling.WorkerID(slot), Group: slot, ResultID: uuid.NewString(), Connections: connections}
	if l.scale.hasRateTargets() {
		w.Rate = new(float64) // until the rate is shared anew, so that there is never more than the rate
	}
	l.Register(w)
	l.apply(ctx, lifecycle.WorkerJoined{ID: w.ID})
	if connections > 0 {
		l.writeLog(engine.LogInfo, w, "%s joins with %d connections", w.ID, connections)
	} else {
		l.writeLog(engine.LogInfo, w, "%s joins", w.ID)
	}
	row := l.writer.SaveResults("a run worker", []engine.RunResult{l.workerRow(w)}, nil)
	l.scale.pendingStarts.Add(l.clock.Now(), PendingStart{Row: row, Deadline: l.clock.Now().Add(workerRowTimeout),
		Workers: []*Worker{w}, Start: func(ctx context.Context) { l.requestReservation(ctx, w) }})
	return w
}

// startStored goes on with those whose row is stored. The loop has not waited for that.
func (l *runLoop) startStored(ctx context.Context) {
	e := l.scale.pendingStarts.Pop()
	switch {
	case l.life.Stopping():
		l.rejectWorkers(ctx, reasonRunEnding, e.Workers...)
	case e.Row.Err() != nil:
		l.rejectWorkers(ctx, "the control store does not take it", e.Workers...)
	case len(e.Workers) == 1 && e.Workers[0].Retiring:
		l.rejectWorkers(ctx, reasonUnneeded, e.Workers...)
	default:
		e.Start(ctx)
	}
	l.onJoined()
}

// failExpired refuses those whose rows take too long, and all of them when the run ends.
func (l *runLoop) failExpired(ctx context.Context, now time.Time) {
	over := l.scale.pendingStarts.TakeExpired(now, l.life.Stopping())
	why := cmp.Or(l.storeOutage(0), "the control store has not taken it in time")
	if l.life.Stopping() {
		why = reasonRunEnding
	}
	for _, e := range over {
		l.rejectWorkers(ctx, why, e.Workers...)
	}
	if len(over) > 0 {
		l.onJoined()
	}
}

// requestReservation has room reserved for a run worker that joins, beside the loop, and assigns it then.
// Where a node takes any number there is nothing to ask for.
func (l *runLoop) requestReservation(ctx context.Context, w *Worker) {
	if l.svc.nodes.Capacity().Unlimited {
		l.assignJoining(ctx, nil, w)
		return
	}
	needed := cmp.Or(w.Connections, l.sc.Scaling.PerWorkerCapacity) // it may be told its connections when it is there
	only := l.svc.nodes.RequiredNode(l.sc.Workload, l.plan.DSN)
	rooms := l.scale.reservations
	l.svc.routines.Go(func() {
		on, err := l.svc.admission.ReserveJoin(ctx, l.runID, l.epoch, w.ID, needed, only)
		select {
		case rooms <- reservation{w, on, err}:
		case <-l.done:
		}
	})
}

// onReserved assigns a run worker that has room, or says that there is none. A store that is away
// stops no run from growing: a node takes no more than it holds, whoever asks.
func (l *runLoop) onReserved(ctx context.Context, r reservation) {
	switch {
	case l.life.Stopping():
		l.rejectWorkers(ctx, reasonRunEnding, r.worker)
	case errors.Is(r.err, store.ErrNoCapacity):
		l.rejectWorkers(ctx, "the nodes have no room for it", r.worker)
	case errors.Is(r.err, store.ErrFenced):
		l.rejectWorkers(ctx, "another server owns the run", r.worker)
	case r.worker.Retiring:
		l.rejectWorkers(ctx, reasonUnneeded, r.worker)
	default:
		l.assignJoining(ctx, r.node, r.worker)
	}
	l.onJoined()
}

// onJoined goes on with what waits for those who join, once nobody does any more.
func (l *runLoop) onJoined() {
	l.settleLoad()
	if l.search.pendingStep != nil && l.AllReady() {
		l.beginPendingStep()
	}
}

// assignJoining assigns a run worker that joins. Its target and the run's phase follow.
func (l *runLoop) assignJoining(ctx context.Context, on map[string]string, w *Worker) {
	l.assign(ctx, on, w)
	if w.Node != nil {
		_ = w.Node.Send(l.state()) // to a node that has gone: it is repeated
	}
}

// assign gives run workers to nodes, all of them or none: to those that they have room on, or to
// others when one of these has gone. The slot of each is its own
// for good: keys that it inserts must not meet those of another, also of one that has left.
func (l *runLoop) assign(ctx context.Context, on map[string]string, workers ...*Worker) {
	shares := len(l.Workers)
	if l.scale.elastic() {
		shares = 0 // each is told its own number of connections
	}
	assignments := make([]protocol.AssignRun, len(workers))
	var own []engine.OwnDatabase
	if l.svc.opts.Own != nil {
		own = l.svc.opts.Own()
	}
	for i, w := range workers {
		w.LastSeen = l.clock.Now()
		assignments[i] = protocol.AssignRun{RunID: l.runID, ResultID: w.ResultID, WorkerID: w.ID, WorkerGroupID: w.Group,
			Epoch: l.epoch, RunName: l.run.RunName, Plan: l.plan.Plan, Workload: scaling.WorkerWorkloadWith(l.sc, l.plan.Params),
			DSN: l.plan.DSN, KeySlot: w.Group, Connections: w.Connections, Workers: shares, Clock: l.clock,
			Own: own}
	}
	nodes, err := l.svc.nodes.AssignWorkers(on, assignments...)
	if err != nil && on != nil {
		nodes, err = l.svc.nodes.AssignWorkers(nil, assignments...)
	}
	if err == nil {
		// Where they are is stored before they carry load: another server may have to find them.
		where := l.logOnlyTick()
		where.CurrentQPS, where.WorkersActive = l.run.CurrentQPS, l.run.WorkersActive
		for i, w := range workers {
			w.Node = nodes[i]
			w.State.NodeID = w.Node.ID()
			where.Workers = append(where.Workers, l.heartbeat(w))
		}
		l.rules.SetNodes(where.Workers, l.clock.Now())
		l.writer.SaveTick(where)
		return
	}
	why := err.Error()
	if errors.As(err, new(*engine.Error)) {
		why = engine.ErrorText(err)
	}
	if l.svc.nodes.Capacity().None {
		why = "there is no node to carry the load"
	}
	l.rejectWorkers(ctx, why, workers...)
}

// rejectWorkers ends run workers that were not placed.
func (l *runLoop) rejectWorkers(ctx context.Context, why string, workers ...*Worker) {
	l.scale.pauseJoins(l.clock.Now())
	for _, w := range workers {
		w.State.Status = engine.WorkerFailed
		l.apply(ctx, lifecycle.WorkerChanged{ID: w.ID, Status: engine.WorkerFailed, Message: why})
	}
}

// saveReservations writes what the run workers of an elastic run or a search hold now.
func (l *runLoop) saveReservations() {
	if held := l.scale.changedReservations(l.svc.admission); len(held) > 0 {
		l.writer.Add("what the run holds on nodes", func(ctx context.Context) error {
			return l.svc.opts.Store.SetReservations(ctx, l.runID, l.epoch, held)
		})
	}
}
