// This part carries out what the scaler decides: it tells run workers their parts of the load, and has others join.

package run

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// logRetirement tells the log who is not needed any more.
func (l *runLoop) logRetirement(left retirement) {
	for _, w := range left.workers {
		l.writeLog(engine.LogInfo, w, "%s is not needed any more and leaves", w.ID)
	}
}

// warn tells the log and the verdict of something; empty is nothing.
func (l *runLoop) warn(why string) {
	if why != "" {
		l.writeLog(engine.LogWarning, nil, "%s", why)
		l.validity.AddNote(engine.TextNote(why))
	}
}

// followStages brings the run workers to the level of the stages of connections.
func (l *runLoop) followStages(ctx context.Context, now time.Time) {
	if !scaling.Staged(l.sc) || !l.carriesOn() {
		return
	}
	have := l.ActiveWorkers()
	if missing := l.scale.missingWorkers(now, len(have)); missing > 0 && !l.writer.Away() {
		// They have no connections before the stages ask for them.
		l.sendTargets(scaling.TargetChange{Reason: engine.TargetInitial}, l.addWorkers(ctx, make([]int, missing), 0))
	}
	changed, left := l.scale.distributeStage(now, have)
	l.logRetirement(left)
	if len(changed)+len(left.events) > 0 {
		l.sendTargets(scaling.TargetChange{Reason: engine.TargetStage, At: now, Ramp: scaling.StageRamp}, changed,
			left.events...)
	}
}

// followRates brings the run workers to the rate of the stages.
func (l *runLoop) followRates(now time.Time) {
	if changed, ramp := l.scale.followRate(now); len(changed) > 0 {
		l.sendTargets(scaling.TargetChange{Reason: engine.TargetStage, At: now, Ramp: ramp}, changed)
	}
}

// beginStage tells what a stage asks of each run worker. Run workers that
// follow the stages by themselves do so to the millisecond, and take the events for a record.
func (l *runLoop) beginStage(a lifecycle.BeginStage) {
	if scaling.StagesDriven(l.sc) {
		l.followRates(l.clock.Now())
		return
	}
	workers, ramp := l.scale.shareStage(a.Index)
	l.sendTargets(scaling.TargetChange{Reason: engine.TargetStage, At: a.At, Ramp: ramp}, workers)
}

// judgeRate adds run workers to a run that misses its rate, and says when it adds no more.
func (l *runLoop) judgeRate(ctx context.Context, now time.Time) {
	seen, ok := l.scale.observedRate(l.second)
	if !ok || l.writer.Away() {
		return
	}
	decide := func(have int, room lifecycle.Headroom) (int, string) {
		return l.scale.growth.ObserveSecond(now, seen, have, room)
	}
	l.scaleOut(ctx, decide, seen)
}

// scaleOut asks for a decision and carries it out; it reports whether run workers join.
func (l *runLoop) scaleOut(ctx context.Context, decide func(have int, room lifecycle.Headroom) (int, string),
	s lifecycle.RateSample) bool {
	have := len(l.ActiveWorkers())
	room, connections := l.scale.roomForRate(l.clock.Now(), have, l.svc.admission.FreeConnections())
	add, why := decide(have, room)
	l.warn(why)
	if add == 0 {
		return false
	}
	shares, before := l.scale.scaleOut(have, add, connections)
	l.writeLog(engine.LogInfo, nil, "The rate of %.6g/s is missed (%.6g/s): %s join the %d, for %d "+
		"connections in all", s.Target, s.Achieved, engine.Count(add, "run worker"), have, l.scale.pool)
	joined := l.addWorkers(ctx, shares, l.scale.pool)
	l.scale.lastScaleOut.Add(before, l.sc.Scaling.PerWorkerCapacity, joined)
	l.sendTargets(scaling.TargetChange{Reason: engine.TargetInitial}, joined)
	l.settleLoad()
	return true
}

// settleLoad shares the load anew once everybody who joins is ready, or has failed to be.
func (l *runLoop) settleLoad() {
	settled, why := l.scale.rebalanceWhenReady(l.clock.Now())
	l.warn(why)
	if settled && l.life.Search() == nil {
		l.redistribute()
	}
}

// redistribute shares the connections of a run, and its rate if it has one, between the run workers that it has.
func (l *runLoop) redistribute() {
	if workers := l.scale.redistribute(l.clock.Now()); len(workers) > 0 {
		l.sendTargets(scaling.TargetChange{Reason: engine.TargetRedistribute}, workers)
	}
}

// raise gives run workers that bear too little their part of the load, as far as others bear less by now.
func (l *runLoop) raise(ctx context.Context, now time.Time) {
	if !l.scale.canRaise() {
		return
	}
	searches := l.life.Search() != nil
	if scaling.Staged(l.sc) {
		l.followStages(ctx, now)
		return
	}
	if !searches && scaling.StagesDriven(l.sc) {
		l.followRates(now)
		return
	}
	load := l.search.load
	if !searches {
		load = l.scale.sharedLoad(now)
	}
	changed := l.scale.distribute(now, l.ActiveWorkers(), load)
	if searches {
		l.search.checkFullLoad(now)
	}
	if len(changed) > 0 {
		l.sendTargets(scaling.TargetChange{Reason: engine.TargetRedistribute}, changed)
	}
}

// replaceLost gives the load of lost run workers that must have stopped by now to others: to
// run workers that join in their place, or else to those that are left.
func (l *runLoop) replaceLost(ctx context.Context) {
	if !l.writer.Owns(true) || l.writer.Away() {
		return // another server may own the run, and replace them; or nobody could join
	}
	lost, some := l.ReleaseExpired(l.clock.Now())
	if !some || !l.scale.canReplaceLost() {
		return
	}
	n, why := l.scale.replacements(len(lost))
	if why != "" {
		l.writeLog(engine.LogWarning, nil, "%s are not replaced: %s", engine.Count(len(lost)-n, "lost run worker"), why)
	}
	joined := l.addWorkers(ctx, lost[:n], l.scale.pool)
	if l.scale.joining = l.scale.joining || n > 0; n > 0 {
		l.sendTargets(scaling.TargetChange{Reason: engine.TargetInitial}, joined)
		l.settleLoad()
	} else if !l.scale.joining {
		l.redistribute()
	}
}

// changeLoad takes what a user wants of the load, and returns its event.
func (l *runLoop) changeLoad(by string, to scaling.LoadRequest) (engine.Event, error) {
	now := l.clock.Now()
	c, workers, err := l.scale.change(now, l.run.StartTime.Time, by, to)
	if err != nil {
		return c.Event, err
	}
	l.sendTargets(scaling.TargetChange{Reason: engine.TargetChange, At: now}, workers, c.Event)
	l.logNote(engine.LogWarning, c.Note)
	l.validity.LoadChanged(c.Note)
	c.Event.RunID, c.Event.CreatedAt, c.Event.SequenceID = l.runID, engine.At(now), l.sender.sequence
	return c.Event, nil
}
