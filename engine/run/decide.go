package run

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/run/writer"
)

// happen tells what has happened and carries out what is decided.
func (l *live) happen(ctx context.Context, h lifecycle.Happening) {
	now := l.clock.Now()
	l.checkStall(now)
	decided := l.life.Apply(now, h)
	l.spans.Happened(now, h, decided)
	for _, a := range decided {
		switch a := a.(type) {
		case lifecycle.Prepare:
			l.prepare(ctx)
		case lifecycle.CancelPrepare:
			l.cancelPrepare()
		case lifecycle.Place:
			l.place()
		case lifecycle.Change:
			l.storeChange(writer.Transition(a), a.Urgent)
		case lifecycle.MarkLost:
			for _, id := range a.IDs {
				l.lose(l.Worker(id), a.Why, now)
			}
		case lifecycle.BeginStep:
			l.nextStep(ctx, a)
		case lifecycle.MeasureStep:
			if !l.beginPendingStep() {
				l.measure(ctx)
			}
		case lifecycle.KeepStep:
			l.keepStep(a.Step)
		case lifecycle.TellTargets:
			l.sendTargets(scaling.ScalingChange{Reason: engine.TargetInitial}, l.Workers)
		case lifecycle.BeginStage:
			l.beginStage(a)
		case lifecycle.ComputeFigures:
			l.computeFigures(ctx)
		case lifecycle.Enrich:
			l.finisher.enriching = l.svc.enrichments.Begin(l.run, l.plan.Plan)
			close(l.figured)
			l.note(engine.LogInfo, nil, "The query history of the target is asked for the executions")
			l.publish(false)
		case lifecycle.End:
		}
	}
}
