package orchestrator

import (
	"context"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/lifecycle"
)

// assign sends a run worker to a node. Its slot is its own for good: keys that it
// inserts must not meet those of another, also of one that has left.
func (l *live) assign(ctx context.Context, w *runWorker, slot int) {
	w.heard = l.clock.Now()
	w.state = control.WorkerState{WorkerID: w.id, WorkerGroupID: w.group, TestID: w.testID, Status: engine.WorkerStarting}
	refuse := func(why string) {
		w.state.Status = engine.WorkerFailed
		l.nextJoin = l.clock.Now().Add(joinPause)
		l.happen(ctx, lifecycle.WorkerChanged{ID: w.id, Status: engine.WorkerFailed, Message: why})
	}
	if w.node = l.svc.nodes.Place(slot); w.node == nil {
		refuse("there is no node to carry the load")
		return
	}
	w.state.NodeID = w.node.ID()
	shares := len(l.workers)
	if l.scales() {
		shares = 0 // each is told its own number of connections
	}
	if !w.node.Send(control.AssignRun{RunID: l.runID, TestID: w.testID, WorkerID: w.id, WorkerGroupID: w.group,
		Epoch: l.epoch, TestName: l.run.TestName,
		Plan: l.plan.Plan, Workload: withParams(loadOf(l.sc), l.plan.Params), DSN: l.plan.DSN, KeySlot: slot,
		Connections: w.connections, Workers: shares, Clock: l.clock}) {
		refuse("the node " + w.node.ID() + " does not answer")
	}
}

// scales reports whether run workers join and leave while the run goes on.
func (l *live) scales() bool {
	if l.life.Search() != nil {
		return l.sc.Scaling.Elastic() && l.sc.FindMax.Unit != engine.FindMaxRate
	}
	return staged(l.sc)
}

// join places a further run worker. It inherits the run's phase, and its target,
// from the state that follows the assignment.
func (l *live) join(ctx context.Context, connections int) *runWorker {
	slot := len(l.workers)
	w := &runWorker{id: workerID(slot), group: slot, testID: uuid.NewString(), connections: connections}
	l.workers = append(l.workers, w)
	l.byID[w.id] = w
	l.happen(ctx, lifecycle.WorkerJoined{ID: w.id})
	if connections > 0 {
		l.note(engine.LogInfo, w, "%s joins with %d connections", w.id, connections)
	} else {
		l.note(engine.LogInfo, w, "%s joins", w.id)
	}
	row := l.row(w)
	l.keeper.Add("a run worker", func(ctx context.Context) error { return l.svc.opts.Store.SaveResult(ctx, row) })
	l.assign(ctx, w, slot)
	if w.node != nil {
		w.node.Send(l.state())
	}
	return w
}

// row is a run worker's row of the results, before it has any.
func (l *live) row(w *runWorker) engine.TestResult {
	group := w.group
	return engine.TestResult{TestID: w.testID, RunID: l.runID, WorkerID: w.id, WorkerGroupID: &group,
		TestName: l.run.TestName, Status: engine.StatusRunning, StartTime: engine.At(l.clock.Now())}
}

// nextStep has as many run workers join as the step's level needs, and begins it when they are there.
func (l *live) nextStep(ctx context.Context, a lifecycle.BeginStep) {
	if l.joining {
		l.held = &a // those that join have a part in it
		return
	}
	have := len(l.carrying())
	need := l.sc.Scaling.Workers(int(a.Level))
	if !l.scales() || need <= have || len(l.workers)+need-have > l.plan.Plan.KeySlots {
		l.beginStep(a)
		return
	}
	l.held = &a
	var joined []*runWorker
	for _, n := range engine.Spread(int(a.Level), need)[have:] {
		joined = append(joined, l.join(ctx, n))
	}
	l.tell(aiming{reason: engine.TargetInitial}, joined)
	if l.joined() {
		l.beginHeld()
	}
}

// joined reports whether every run worker is ready, or has failed to be.
func (l *live) joined() bool {
	for _, w := range l.workers {
		if w.state.Status == engine.WorkerStarting {
			return false
		}
	}
	return true
}

// beginHeld begins the step that waited for run workers; it reports whether there was one.
func (l *live) beginHeld() bool {
	a := l.held
	if a == nil || l.life.Stopping() {
		return false
	}
	l.held = nil
	l.beginStep(*a)
	return true
}

// retire takes the run workers that the level does not need out of those that
// carry it: they stop, drain, flush and leave. It keeps them when their slots
// could run out, because a slot is never used again.
func (l *live) retire(workers []*runWorker, level int) (stay []*runWorker, stop []engine.Event) {
	need := l.sc.Scaling.Workers(level)
	most := l.sc.Scaling.Workers(l.sc.PeakConnections(l.plan.Server.MaxConnections))
	if !l.scales() || need >= len(workers) || len(l.workers)+most-need > l.plan.Plan.KeySlots {
		return workers, nil
	}
	for _, w := range workers[need:] {
		w.retiring, w.connections = true, 0
		if w.rate != nil {
			w.rate = new(float64)
		}
		l.note(engine.LogInfo, w, "%s is not needed any more and leaves", w.id)
		stop = append(stop, aiming{reason: engine.TargetRetire, at: l.clock.Now()}.events(
			[]aimed{{w.id, w.group, w.target()}})...)
		stop = append(stop, engine.Event{Type: engine.EventStop,
			Data: engine.EventData{Scope: engine.ScopeWorker, WorkerID: w.id,
				Reason: string(engine.StopDurationElapsed), Detail: "retired",
				DrainTimeoutSeconds: l.life.Drain(engine.StopDurationElapsed).Seconds()}})
	}
	return workers[:need], stop
}
