package orchestrator

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/lifecycle"
	"github.com/loadstone-db/loadstone/engine/placement"
	"github.com/loadstone-db/loadstone/engine/scaling"
)

// scaler lets run workers join and leave while the run goes on, and shares its load
// between those that are there.
type scaler struct {
	*live
	// growth decides whether run workers join a run over the rate.
	growth lifecycle.Growth
	// pool is how many connections all have together; joining says that some are under way.
	pool    int
	joining bool
	// nextJoin is when the next run worker may join, after one that could not.
	nextJoin time.Time
	// on are the nodes that the first run workers have room on, account what the ledger has.
	on      map[string]string
	account placement.Account
	// rooms are answers of the ledger.
	rooms chan reservation
}

// assign gives run workers to nodes, all of them or none: to those that they have room on, or to
// others when one of these has gone. The slot of each is its own
// for good: keys that it inserts must not meet those of another, also of one that has left.
func (l *scaler) assign(ctx context.Context, on map[string]string, workers ...*runWorker) {
	shares := len(l.workers)
	if l.scale.elastic() {
		shares = 0 // each is told its own number of connections
	}
	assignments := make([]control.AssignRun, len(workers))
	for i, w := range workers {
		w.heard = l.clock.Now()
		w.state = control.WorkerState{WorkerID: w.id, WorkerGroupID: w.group, ResultID: w.resultID,
			Status: engine.WorkerStarting}
		assignments[i] = control.AssignRun{RunID: l.runID, ResultID: w.resultID, WorkerID: w.id, WorkerGroupID: w.group,
			Epoch: l.epoch, RunName: l.run.RunName, Plan: l.plan.Plan, Workload: scaling.LoadWith(l.sc, l.plan.Params),
			DSN: l.plan.DSN, KeySlot: w.group, Connections: w.connections, Workers: shares, Clock: l.clock}
	}
	nodes, err := l.svc.nodes.Place(on, assignments...)
	if err != nil && on != nil {
		nodes, err = l.svc.nodes.Place(nil, assignments...)
	}
	if err == nil {
		// Where they are is stored before they carry load: another server may have to find them.
		where := l.lines()
		where.CurrentQPS, where.WorkersActive = l.run.CurrentQPS, l.run.WorkersActive
		for i, w := range workers {
			w.node = nodes[i]
			w.state.NodeID = w.node.ID()
			where.Workers = append(where.Workers, l.heartbeat(w))
		}
		l.keeper.SaveTick(where)
		return
	}
	why := err.Error()
	if l.svc.nodes.Capacity().None {
		why = "there is no node to carry the load"
	}
	l.scale.refuse(ctx, why, workers...)
}

// elastic reports whether run workers join and leave while the run goes on.
func (l *scaler) elastic() bool {
	if l.life.Search() != nil {
		return l.sc.Scaling.Elastic() && l.sc.FindMax.Unit != engine.FindMaxRate
	}
	return scaling.Staged(l.sc)
}

// join places a further run worker. It inherits the run's phase, and its target,
// from the state that follows the assignment.
func (l *scaler) join(ctx context.Context, connections int) *runWorker {
	slot := len(l.workers)
	w := &runWorker{id: scaling.WorkerID(slot), group: slot, resultID: uuid.NewString(), connections: connections}
	if scaling.Rated(l.sc) {
		w.rate = new(float64) // until the rate is shared anew, so that there is never more than the rate
	}
	l.enlist(w)
	l.happen(ctx, lifecycle.WorkerJoined{ID: w.id})
	if connections > 0 {
		l.note(engine.LogInfo, w, "%s joins with %d connections", w.id, connections)
	} else {
		l.note(engine.LogInfo, w, "%s joins", w.id)
	}
	l.keeper.SaveResults("a run worker", []engine.RunResult{l.finisher.row(w)}, nil)
	l.scale.ask(ctx, w)
	return w
}

// row is a run worker's row of the results, before it has any.
func (l *finisher) row(w *runWorker) engine.RunResult {
	group := w.group
	return engine.RunResult{ResultID: w.resultID, RunID: l.runID, WorkerID: w.id, WorkerGroupID: &group,
		RunName: l.run.RunName, Status: engine.StatusRunning, StartTime: engine.At(l.clock.Now())}
}

// retire takes the run workers that the level does not need out of those that
// carry it: they stop, drain, flush and leave. It keeps them when their slots
// could run out, because a slot is never used again.
func (l *scaler) retire(workers []*runWorker, level int) (stay []*runWorker, stop []engine.Event) {
	need := l.sc.Scaling.Workers(level)
	most := l.sc.Scaling.Workers(l.sc.PeakConnections(l.plan.Server.MaxConnections))
	if !l.scale.elastic() || need >= len(workers) || len(l.workers)+most-need > l.plan.Plan.KeySlots {
		return workers, nil
	}
	for _, w := range workers[need:] {
		w.retiring, w.connections = true, 0
		if w.rate != nil {
			w.rate = new(float64)
		}
		l.note(engine.LogInfo, w, "%s is not needed any more and leaves", w.id)
		stop = append(stop, scaling.Change{Reason: engine.TargetRetire, At: l.clock.Now()}.Events(
			[]scaling.Target{{WorkerID: w.id, Group: w.group, WorkerTarget: w.target()}})...)
		stop = append(stop, engine.Event{Type: engine.EventStop,
			Data: engine.EventData{Scope: engine.ScopeWorker, WorkerID: w.id,
				Reason: string(engine.StopDurationElapsed), Detail: "retired",
				DrainTimeoutSeconds: l.life.Drain(engine.StopDurationElapsed).Seconds()}})
	}
	return workers[:need], stop
}
