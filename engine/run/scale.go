package run

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/placement"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
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
	grown   Grown
	// steered says that a user has changed the load: its run workers are told their rates also where they are fixed.
	steered bool
	// owed says that somebody is to have more, once others have less; bounded, that run workers were told the most
	// alone since all were told what they have.
	owed, bounded bool
	// nextJoin is when the next run worker may join, after one that could not.
	nextJoin time.Time
	// entrance are run workers that begin when the store knows them.
	entrance Entrance
	// on are the nodes that the first run workers have room on, account what the ledger has.
	on      map[string]string
	account placement.Account
	// rooms are answers of the ledger.
	rooms chan reservation
}

// assign gives run workers to nodes, all of them or none: to those that they have room on, or to
// others when one of these has gone. The slot of each is its own
// for good: keys that it inserts must not meet those of another, also of one that has left.
func (l *scaler) assign(ctx context.Context, on map[string]string, workers ...*Worker) {
	shares := len(l.Workers)
	if l.scale.elastic() {
		shares = 0 // each is told its own number of connections
	}
	assignments := make([]protocol.AssignRun, len(workers))
	for i, w := range workers {
		w.Heard = l.clock.Now()
		assignments[i] = protocol.AssignRun{RunID: l.runID, ResultID: w.ResultID, WorkerID: w.ID, WorkerGroupID: w.Group,
			Epoch: l.epoch, RunName: l.run.RunName, Plan: l.plan.Plan, Workload: scaling.LoadWith(l.sc, l.plan.Params),
			DSN: l.plan.DSN, KeySlot: w.Group, Connections: w.Connections, Workers: shares, Clock: l.clock}
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
			w.Node = nodes[i]
			w.State.NodeID = w.Node.ID()
			where.Workers = append(where.Workers, l.heartbeat(w))
		}
		l.rules.Place(where.Workers, l.clock.Now())
		l.keeper.SaveTick(where)
		return
	}
	why := err.Error()
	if errors.As(err, new(*engine.Error)) {
		why = engine.Sentences(err)
	}
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
func (l *scaler) join(ctx context.Context, connections int) *Worker {
	slot := len(l.Workers)
	w := &Worker{ID: scaling.WorkerID(slot), Group: slot, ResultID: uuid.NewString(), Connections: connections}
	if l.scale.rated() {
		w.Rate = new(float64) // until the rate is shared anew, so that there is never more than the rate
	}
	l.Enlist(w)
	l.happen(ctx, lifecycle.WorkerJoined{ID: w.ID})
	if connections > 0 {
		l.note(engine.LogInfo, w, "%s joins with %d connections", w.ID, connections)
	} else {
		l.note(engine.LogInfo, w, "%s joins", w.ID)
	}
	row := l.keeper.SaveResults("a run worker", []engine.RunResult{l.workerRow(w)}, nil)
	l.scale.entrance.Enter(l.clock.Now(), Entering{Row: row, Until: l.clock.Now().Add(enterLimit),
		Workers: []*Worker{w}, Begin: func(ctx context.Context) { l.scale.ask(ctx, w) }})
	return w
}

// retire takes the run workers that the level does not need out of those that
// carry it: they stop, drain, flush and leave. It keeps them when their slots
// could run out, because a slot is never used again.
func (l *scaler) retire(workers []*Worker, level int) (stay []*Worker, stop []engine.Event) {
	need := l.sc.Scaling.Workers(level)
	most := l.sc.Scaling.Workers(l.sc.PeakConnections(l.plan.Server.MaxConnections))
	if !l.scale.elastic() || need >= len(workers) || len(l.Workers)+most-need > l.plan.Plan.KeySlots {
		return workers, nil
	}
	for _, w := range workers[need:] {
		w.Retiring, w.Connections = true, 0
		if w.Rate != nil {
			w.Rate = new(float64)
		}
		l.note(engine.LogInfo, w, "%s is not needed any more and leaves", w.ID)
		stop = append(stop, scaling.ScalingChange{Reason: engine.TargetRetire, At: l.clock.Now()}.Events(
			[]scaling.Target{{WorkerID: w.ID, Group: w.Group, WorkerTarget: w.Target()}})...)
		stop = append(stop, engine.Event{Type: engine.EventStop,
			Data: engine.EventData{Scope: engine.ScopeWorker, WorkerID: w.ID,
				Reason: string(engine.StopDurationElapsed), Detail: "retired",
				DrainTimeoutSeconds: l.life.Drain(engine.StopDurationElapsed).Seconds()}})
	}
	return workers[:need], stop
}
