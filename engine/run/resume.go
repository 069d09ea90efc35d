package run

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	runclock "github.com/loadstone-db/loadstone/engine/run/recovery"
	"github.com/loadstone-db/loadstone/engine/run/runlog"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/run/writer"
)

// Resume goes on with a run that another process has carried, or says why it cannot.
func (c recoveryHost) Resume(r runclock.ResumedRun) (why string) {
	s, run := c.s, r.Run
	clock := clock.New(s.opts.Clock)
	workers := make([]*Worker, len(r.Workers))
	for i, w := range r.Workers {
		workers[i] = &Worker{
			ID:          w.ID,
			Group:       w.Group,
			ResultID:    w.ResultID,
			Connections: w.Target.TargetConnections,
			Rate:        w.Target.TargetQPS,
			Retiring:    w.Retiring,
			LastSeen:    w.LastSeen,
			DeadReason:  w.Failure,
			Dead:        w.Status == engine.WorkerDead,
			left:        w.Left,
			State: protocol.WorkerState{WorkerID: w.ID, WorkerGroupID: w.Group, ResultID: w.ResultID, NodeID: w.NodeID,
				Status: w.Status, Totals: w.Totals},
		}
	}
	life, why := lifecycle.Rehydrate(LifecyclePlan(run, WorkerIDs(workers)), r.StoredRun)
	if why != "" {
		return why
	}
	if r.Plan != nil && r.Plan.PoolsUnreadable != "" {
		return "its sampled rows " + r.Plan.PoolsUnreadable
	}
	var steered bool
	run.Scenario.Workload, steered = scaling.EffectiveWorkload(run.Scenario.Workload, r.Events)
	l := newLive(s, run, clock, workers, life, run.CreatedBy)
	l.plan = &prepare.Prepared{Plan: r.Plan}
	l.agg.CountOwn(r.Plan)
	if run.Scenario.Scaling.Elastic() && r.Stop == nil {
		// Run workers may have to join it.
		ctx, cancel := context.WithTimeout(s.lifetime, writer.StoreTimeout)
		defer cancel()
		again, err := prepare.Restore(ctx, s.deps(), run.Scenario, r.Plan)
		if err != nil {
			return "nothing could join it: " + engine.ErrorText(err)
		}
		l.plan = again
	}
	if r.Environment != nil {
		l.plan.Server = prepare.ServerOf(*r.Environment)
	}
	l.Buffer, l.validity, l.sender.sequence = runlog.NewBufferAfter(r.LogSeq), r.Validity, r.Sequence
	// While a load is divided anew some of it is nobody's: then less than all is told.
	pool := 0
	for _, w := range l.ActiveWorkers() {
		pool += w.Connections
	}
	l.scale.pool, l.scale.userChanged = max(l.scale.pool, pool), steered
	l.MarkUnknown(l.epoch, r.Sequence)
	l.scale.increasesPending = run.Scenario.Scaling.Elastic() // what another bore is nobody's in a run of a fixed size
	l.onStart = func(ctx context.Context) { l.resume(ctx, r) }
	s.startLoop(l)
	return ""
}

// resume is the first thing that the loop of a run does that another process has begun: it
// becomes the owner of what nodes carry, learns the run's time from them, and goes on.
func (l *runLoop) resume(ctx context.Context, r runclock.ResumedRun) {
	var held []*Worker
	var carried []nodes.AdoptedWorker
	for i, w := range r.Workers {
		if own := l.Workers[i]; w.MayBeRemote() {
			held = append(held, own)
			carried = append(carried, nodes.AdoptedWorker{Node: w.NodeID, AssignRun: protocol.AssignRun{RunID: l.runID,
				ResultID: w.ResultID, WorkerID: w.ID, WorkerGroupID: w.Group, Epoch: l.epoch, Connections: own.Connections}})
		}
	}
	for i, n := range l.svc.nodes.Adopt(l.state(), carried...) {
		held[i].Node = n
	}
	said := l.recoverTimeline(ctx, held, r)
	now := l.clock.Now()
	l.writeLogWith(runlog.Details{"from": engine.At(r.LastSeen), "epoch": l.epoch}, engine.LogWarning, nil,
		"%s; this one goes on with the run after %.1f s", r.Reason, now.Sub(r.LastSeen).Seconds())
	l.validity.Add(engine.CauseSnapshotGap, engine.Note{Code: engine.AboutNoServer}, r.LastSeen, now)
	l.validity.StartObserving(now)
	l.RestoreAfterTakeover(now, l.sc.Scaling.Elastic())
	if r.Stop != nil {
		l.apply(ctx, *r.Stop) // before its lost run workers could be its reason to end
	}
	var lost []string
	for i, w := range r.Workers {
		if !w.Status.Ended() && w.NodeID == protocol.OwnNode {
			// Should that server go on without its store, others have the load when it has noticed.
			l.markLost(l.Workers[i], "ended with the server that carried it", now.Add(protocol.ReassignAfter))
			lost = append(lost, w.ID)
		}
	}
	if len(lost) > 0 {
		l.apply(ctx, lifecycle.WorkersLost{IDs: lost})
	}
	l.apply(ctx, lifecycle.RunResumed{})
	for _, f := range said {
		l.receive(ctx, f)
	}
	l.watchWarehouse(ctx)
	l.watchServer(ctx)
	l.outages.JoinLate()
	l.publish(false)
}

// recoverTimeline has the loop go by the run's own time, of which the run workers tell. It returns what was said
// meanwhile.
func (l *runLoop) recoverTimeline(ctx context.Context, held []*Worker, r runclock.ResumedRun) []nodeMessage {
	limit := runclock.AwaitTimeout
	if r.Stop != nil {
		limit = runclock.AwaitTimeoutStopping
	}
	line := runclock.NewTimeline(WorkerIDs(held), scaling.InitialWorkers(l.sc), l.life.Phase() == engine.PhaseMeasurement)
	said := runclock.Await(ctx, limit, line, l.inbox, func(f nodeMessage) (protocol.WorkerState, bool) {
		m, state := f.message.(protocol.WorkerState)
		return m, state && l.IsAuthoritative(f.node, m.WorkerID, m.ResultID)
	})
	ahead := line.Offset(l.clock.Now(), l.svc.nodes.Now(), r.LastSeen)
	l.clock = l.clock.WithOffset(ahead)
	l.Clock = l.clock
	l.life.AdjustTimes(line.Began(), line.Measured())
	l.validity.AddNote(engine.TextNote(line.Note(ahead)))
	return said
}
