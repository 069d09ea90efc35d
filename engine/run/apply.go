package run

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/run/writer"
)

// apply tells what has happened and carries out what is decided.
func (l *runLoop) apply(ctx context.Context, h lifecycle.Event) {
	now := l.clock.Now()
	l.checkStall(now)
	decided := l.life.Apply(now, h)
	l.spans.Handle(now, h, decided)
	for _, a := range decided {
		switch a := a.(type) {
		case lifecycle.Prepare:
			l.prepare(ctx)
		case lifecycle.CancelPrepare:
			l.cancelPrepare()
		case lifecycle.AssignWorkers:
			l.assignWorkers()
		case lifecycle.Change:
			l.storeChange(writer.Transition(a), a.Urgent)
		case lifecycle.MarkLost:
			for _, id := range a.IDs {
				l.markLost(l.Worker(id), a.Reason, now)
			}
		case lifecycle.BeginStep:
			l.nextStep(ctx, a)
		case lifecycle.MeasureStep:
			if !l.beginPendingStep() {
				l.measure(ctx)
			}
		case lifecycle.RecordStep:
			l.keepStep(a.Step)
		case lifecycle.SkipStep:
			l.logSkipped(a)
		case lifecycle.SendTargets:
			l.sendTargets(scaling.TargetChange{Reason: engine.TargetInitial}, l.Workers)
		case lifecycle.BeginStage:
			l.beginStage(a)
		case lifecycle.ComputeFigures:
			l.computeFigures(ctx)
		case lifecycle.StartEnrichment:
			l.finisher.enriching = l.svc.enrichments.Begin(l.run, l.plan.Plan)
			close(l.figuresReady)
			l.writeLog(engine.LogInfo, nil, "The query history of the target is asked for the executions")
			l.publish(false)
		case lifecycle.End:
		}
	}
}
