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
func (l *live) nextStep(ctx context.Context, a lifecycle.BeginStep) {
	if l.scale.joining {
		l.search.held = &a // those that join have a part in it
		return
	}
	shares := l.search.sharesToJoin(a, l.scale.elastic())
	if len(shares) == 0 {
		l.beginStep(a)
		return
	}
	l.search.held = &a
	l.sendTargets(scaling.ScalingChange{Reason: engine.TargetInitial}, l.addWorkers(ctx, shares, int(a.Level)))
	if l.Joined() {
		l.beginPendingStep()
	}
}

// beginPendingStep begins the step that waited for run workers; it reports whether there was one.
func (l *live) beginPendingStep() bool {
	a := l.search.takePendingStep()
	if a != nil {
		l.beginStep(*a)
	}
	return a != nil
}

// beginStep tells the run workers of a step: absolute targets, and when to measure.
func (l *live) beginStep(a lifecycle.BeginStep) {
	now := l.clock.Now()
	workers, left := l.Carrying(), retirement{}
	if l.search.overConnections() {
		workers, left = l.scale.retire(now, workers, int(a.Level))
		l.logRetirement(left)
	}
	l.scale.divide(now, workers, l.search.begin(a, workers, l.scale.pool))
	l.search.loadShared(now, l.scale.owed)
	l.sendTargets(scaling.ScalingChange{Reason: engine.TargetStepAdvance, StepID: scaling.StepID(l.runID, a.Number),
		Step: l.search.step}, workers, left.events...)
	l.saveSearch(nil)
}

// measure has the step under way judged, unless its level has to be measured again.
func (l *live) measure(ctx context.Context) {
	o, measured := l.search.meter.Observation()
	number := l.search.meter.Number()
	if why := l.search.lacks(&o, l.scale.owed); why != "" {
		l.note(engine.LogWarning, nil, "Step %d is measured again: %s", number, why)
		l.happen(ctx, lifecycle.MeasuredInVain{Number: number})
		return
	}
	if l.retryStep(ctx, o) {
		l.happen(ctx, lifecycle.MeasuredInVain{Number: number})
		return
	}
	l.happen(ctx, lifecycle.Measured{Number: number, Observed: o, Length: measured})
}

// retryStep gives the step of a search over the rate further run workers, when
// those there have missed it: the same level is measured again with them.
func (l *live) retryStep(ctx context.Context, o findmax.Observation) bool {
	if l.scale.joining || l.scale.growth.Stopped() != "" {
		return false
	}
	seen, missed := l.search.missedRate(o, l.second.Peak.CPUPercent)
	if !missed {
		return false
	}
	decide := func(have int, room lifecycle.Room) (int, string) { return l.scale.growth.Judge(seen, have, room) }
	return l.scaleOut(ctx, decide, seen)
}

// keepStep keeps a judged step and tells the log.
func (l *live) keepStep(step engine.FindMaxStep) {
	text, more := l.search.logLines(step)
	l.noteWith(runlog.Details{"step": step}, engine.LogInfo, nil, "%s", text)
	for _, text := range more {
		l.note(engine.LogInfo, nil, "%s", text)
	}
	l.saveSearch([]engine.FindMaxStep{step})
	l.publish(false)
}

// saveSearch queues the state of the search, with the steps that were judged since.
func (l *live) saveSearch(steps []engine.FindMaxStep) {
	state := l.search.state(l.clock.Now())
	l.keeper.Add("the search", func(ctx context.Context) error {
		return l.svc.opts.Store.SaveFindMax(ctx,
			store.FindMaxProgress{RunID: l.runID, Epoch: l.epoch, State: *state, Steps: steps})
	})
}
