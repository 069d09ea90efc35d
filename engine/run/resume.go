package run

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	runclock "github.com/loadstone-db/loadstone/engine/run/clock"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/recovery"
	"github.com/loadstone-db/loadstone/engine/run/runlog"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/run/writer"
)

// awayWords say what is missing of a time in which nobody carried the run.
const awayWords = "no server carried the run: it was not watched, and seconds of its curve are missing or later " +
	"than they were; what the run workers executed is recorded"

// Resume goes on with a run that another process has carried, or says why it cannot.
func (c carrier) Resume(r recovery.Resumed) (why string) {
	s, run := c.s, r.Run
	clock := clock.New(s.opts.Clock)
	workers := make([]*Worker, len(r.Workers))
	for i, w := range r.Workers {
		workers[i] = &Worker{ID: w.ID, Group: w.Group, ResultID: w.ResultID, Connections: w.Target.TargetConnections,
			Rate: w.Target.TargetQPS, Retiring: w.Retiring, Heard: w.Heard, Why: w.Failure, Dead: w.Status == engine.WorkerDead,
			State: protocol.WorkerState{WorkerID: w.ID, WorkerGroupID: w.Group, ResultID: w.ResultID, NodeID: w.NodeID,
				Status: w.Status, Totals: w.Totals}}
	}
	life, why := lifecycle.Rehydrate(LifePlan(run, IDsOf(workers)), r.Stored)
	if why != "" {
		return why
	}
	var steered bool
	run.Scenario.Workload, steered = scaling.Followed(run.Scenario.Workload, r.Events)
	l := newLive(s, run, clock, workers, life, run.CreatedBy)
	l.plan = &prepare.Prepared{Plan: r.Plan}
	if run.Scenario.Scaling.Elastic() {
		// Run workers may have to join it.
		ctx, cancel := context.WithTimeout(s.lifetime, writer.StoreLimit)
		defer cancel()
		again, err := prepare.Again(ctx, s.deps(), run.Scenario, r.Plan)
		if err != nil {
			return "nothing could join it: " + engine.Sentences(err)
		}
		l.plan = again
	}
	if r.Environment != nil {
		l.plan.Server = prepare.ServerOf(*r.Environment)
	}
	l.Logbook, l.validity, l.sender.sequence = runlog.BookAfter(r.LogSeq), r.Validity, r.Sequence
	// While a load is divided anew some of it is nobody's: then less than all is told.
	pool := 0
	for _, w := range l.Carrying() {
		pool += w.Connections
	}
	l.scale.pool, l.scale.steered = max(l.scale.pool, pool), steered
	l.TakenOver(l.epoch, r.Sequence)
	l.scale.owed = run.Scenario.Scaling.Elastic() // what another bore is nobody's in a run of a fixed size
	l.begin = func(ctx context.Context) { l.resume(ctx, r) }
	s.carry(l)
	return ""
}

// resume is the first thing that the loop of a run does that another process has begun: it
// becomes the owner of what nodes carry, learns the run's time from them, and goes on.
func (l *live) resume(ctx context.Context, r recovery.Resumed) {
	var held []*Worker
	var carried []nodes.Carried
	for i, w := range r.Workers {
		if own := l.Workers[i]; w.Elsewhere() {
			held = append(held, own)
			carried = append(carried, nodes.Carried{Node: w.NodeID, AssignRun: protocol.AssignRun{RunID: l.runID,
				ResultID: w.ResultID, WorkerID: w.ID, WorkerGroupID: w.Group, Epoch: l.epoch, Connections: own.Connections}})
		}
	}
	for i, n := range l.svc.nodes.Adopt(l.state(), carried...) {
		held[i].Node = n
	}
	said := l.learnTime(ctx, held, r.Seen)
	now := l.clock.Now()
	l.noteWith(runlog.Details{"from": engine.At(r.Seen), "epoch": l.epoch}, engine.LogWarning, nil,
		"%s; this one goes on with the run after %.1f s", r.Why, now.Sub(r.Seen).Seconds())
	l.validity.Add(engine.CauseSnapshotGap, awayWords, r.Seen, now)
	l.validity.Watch(now)
	l.Recall(now, l.sc.Scaling.Elastic())
	var lost []string
	for i, w := range r.Workers {
		if !w.Status.Ended() && w.NodeID == protocol.OwnNode {
			// Should that server go on without its store, others have the load when it has noticed.
			l.lose(l.Workers[i], "ended with the server that carried it", now.Add(protocol.FreeAfter))
			lost = append(lost, w.ID)
		}
	}
	if len(lost) > 0 {
		l.happen(ctx, lifecycle.WorkersLost{IDs: lost})
	}
	l.happen(ctx, lifecycle.Resumed{})
	for _, f := range said {
		l.receive(ctx, f)
	}
	l.watchWarehouse(ctx)
	l.publish(false)
}

// learnTime has the loop go by the run's own time, of which the run workers tell. It returns what was said meanwhile.
func (l *live) learnTime(ctx context.Context, held []*Worker, seen time.Time) []fromNode {
	line := runclock.Of(IDsOf(held), scaling.First(l.sc), l.life.Phase() == engine.PhaseMeasurement)
	said := runclock.Await(ctx, line, l.inbox, func(f fromNode) (protocol.WorkerState, bool) {
		m, state := f.m.(protocol.WorkerState)
		return m, state && l.Speaks(f.node, m.WorkerID, m.ResultID)
	})
	ahead := line.Ahead(l.clock.Now(), l.svc.nodes.Now(), seen)
	l.clock = l.clock.Ahead(ahead)
	l.Clock = l.clock
	l.life.Told(line.Began(), line.Measured())
	l.validity.Note(line.Words(ahead))
	return said
}
