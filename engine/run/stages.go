package run

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// followStages brings the run workers to the level of the stages.
func (l *scaler) followStages(ctx context.Context, now time.Time) {
	if !scaling.Staged(l.sc) || !l.life.Started() || l.life.Stopping() {
		return
	}
	w, at := l.sc.Workload, l.life.SinceMeasuring(now)
	have := l.Carrying()
	soon := l.sc.Scaling.Workers(w.MostConnections(at, at+scaling.JoinLead))
	if missing := soon - len(have); missing > 0 && len(l.Workers)+missing <= l.plan.Plan.KeySlots &&
		now.After(l.scale.nextJoin) && !l.keeper.Away() {
		var joined []*Worker
		for range missing {
			joined = append(joined, l.scale.join(ctx, 0))
		}
		l.sendTargets(scaling.ScalingChange{Reason: engine.TargetInitial}, joined)
	}
	have, stop := l.scale.retire(have, w.MostConnections(at, at+scaling.RetireAfter))
	var running []*Worker
	for _, x := range have {
		if x.State.Status == engine.WorkerRunning {
			running = append(running, x)
		}
	}
	// Those that are not needed yet, or may be needed again, wait without connections.
	changed := l.scale.divide(now, running, Load{Connections: w.NextConnections(at, scaling.StageRamp),
		Each: l.sc.Scaling.PerWorkerCapacity, Few: l.sc.Scaling.Workers})
	if len(changed)+len(stop) > 0 {
		l.sendTargets(scaling.ScalingChange{Reason: engine.TargetStage, At: now, Ramp: scaling.StageRamp}, changed, stop...)
	}
}

// beginStage tells what a stage asks of each run worker. Run workers that
// follow the stages by themselves do so to the millisecond, and take the events for a record.
func (l *scaler) beginStage(a lifecycle.BeginStage) {
	if scaling.ScalingFollowed(l.sc) {
		l.scale.followRates(l.clock.Now())
		return
	}
	s := l.sc.Workload.Stages[a.Index]
	workers := l.Carrying()
	if s.TargetQPS != nil {
		Share(workers, Load{Connections: l.scale.pool, Rate: s.TargetQPS})
	} else {
		Share(workers, Load{Connections: int(s.Level())})
	}
	about := scaling.ScalingChange{Reason: engine.TargetStage, At: a.At}
	if s.Ramp != engine.RampStep {
		about.Ramp = s.Duration()
	}
	l.sendTargets(about, workers)
}
