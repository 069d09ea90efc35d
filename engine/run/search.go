// This part carries out the steps of a search for the limit.

package run

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/findmax"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/runlog"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/store"
)

// nextStep has as many run workers join as the step's level needs, and begins it when they are there.
func (l *runLoop) nextStep(ctx context.Context, a lifecycle.BeginStep) {
	if l.scale.joining {
		l.search.pendingStep = &a // those that join have a part in it
		return
	}
	shares := l.search.sharesToJoin(a, l.scale.elastic())
	if len(shares) == 0 {
		l.beginStep(a)
		return
	}
	l.search.pendingStep = &a
	l.sendTargets(scaling.TargetChange{Reason: engine.TargetInitial}, l.addWorkers(ctx, shares, int(a.Level)))
	if l.AllReady() {
		l.beginPendingStep()
	}
}

// beginPendingStep begins the step that waited for run workers; it reports whether there was one.
func (l *runLoop) beginPendingStep() bool {
	a := l.search.takePendingStep()
	if a != nil {
		l.beginStep(*a)
	}
	return a != nil
}

// beginStep tells the run workers of a step: absolute targets, and when to measure.
func (l *runLoop) beginStep(a lifecycle.BeginStep) {
	now := l.clock.Now()
	workers, left := l.ActiveWorkers(), retirement{}
	if l.search.overConnections() {
		workers, left = l.scale.retire(now, workers, int(a.Level))
		l.logRetirement(left)
	}
	l.scale.distribute(now, workers, l.search.begin(a, workers, l.scale.pool))
	l.search.loadShared(now, l.scale.increasesPending)
	l.sendTargets(scaling.TargetChange{Reason: engine.TargetStepAdvance, StepID: scaling.StepID(l.runID, a.Number),
		Step: l.search.step}, workers, left.events...)
	l.saveSearch(nil)
}

// measure has the step under way judged, unless its level has to be measured again.
func (l *runLoop) measure(ctx context.Context) {
	o, measured := l.search.meter.Observation()
	number := l.search.meter.Number()
	if why := l.search.mustRepeat(&o, l.scale.increasesPending); why != "" {
		l.writeLog(engine.LogWarning, nil, "Step %d is measured again: %s", number, why)
		l.apply(ctx, lifecycle.StepInvalid{Number: number})
		return
	}
	if l.retryStep(ctx, o) {
		l.apply(ctx, lifecycle.StepInvalid{Number: number})
		return
	}
	l.apply(ctx, lifecycle.StepMeasured{Number: number, Observation: o, Length: measured})
}

// retryStep gives the step of a search over the rate further run workers, when
// those there have missed it: the same level is measured again with them.
func (l *runLoop) retryStep(ctx context.Context, o findmax.Observation) bool {
	if l.scale.joining || l.scale.growth.StopReason() != "" {
		return false
	}
	seen, missed := l.search.missedRate(o, l.second.Peak.CPUPercent)
	if !missed {
		return false
	}
	decide := func(have int, room lifecycle.Headroom) (int, string) { return l.scale.growth.Decide(seen, have, room) }
	return l.scaleOut(ctx, decide, seen)
}

// keepStep keeps a judged step and tells the log.
func (l *runLoop) keepStep(step engine.FindMaxStep) {
	text, more := l.search.logLines(step)
	l.writeLogWith(runlog.Details{"step": step}, engine.LogInfo, nil, "%s", text)
	for _, text := range more {
		l.writeLog(engine.LogInfo, nil, "%s", text)
	}
	l.saveSearch([]engine.FindMaxStep{step})
	l.publish(false)
}

// logSkipped tells the log of a step that was not judged, and of the answer where the search ended with it.
func (l *runLoop) logSkipped(a lifecycle.SkipStep) {
	search := l.life.Search().Series()
	l.writeLog(engine.LogInfo, nil, "Step %d at %s is not judged: %s", a.Number, search.Describe(a.Level), a.Why)
	if r := search.Result(); r != nil {
		l.writeLog(engine.LogInfo, nil, "%s", r.Reason)
	}
	l.saveSearch(nil)
	l.publish(false)
}

// saveSearch queues the state of the search, with the steps that were judged since.
func (l *runLoop) saveSearch(steps []engine.FindMaxStep) {
	state := l.search.state(l.clock.Now())
	l.writer.Add("the search", func(ctx context.Context) error {
		return l.svc.opts.Store.SaveFindMax(ctx,
			store.FindMaxProgress{RunID: l.runID, Epoch: l.epoch, State: *state, Steps: steps})
	})
}
