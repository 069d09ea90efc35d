package orchestrator

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Stages of a run whose run workers come and go are followed by
// the run itself: a worker alone does not know how many others there are.
const (
	// stageRamp is how long a change takes; the level is told anew each second.
	stageRamp = time.Second
	// joinLead is how long before its connections are due a run worker is placed.
	// It joins without any, so that the target sees no more than the offered load.
	joinLead = 5 * time.Second
	// retireAfter is how long a run worker must not be needed to be sent away.
	retireAfter = 15 * time.Second
	// joinPause keeps a place that could not be filled from being tried all the time.
	joinPause = 10 * time.Second
)

// staged reports whether run workers come and go with the stages of the run.
func staged(sc engine.Scenario) bool {
	w := sc.Workload
	return sc.Scaling.Elastic() && w.LoadMode == engine.LoadConcurrency && len(w.Stages) > 0
}

// followed reports whether the run itself follows its stages, and not each run worker.
func followed(sc engine.Scenario) bool {
	return staged(sc) || rated(sc) && len(sc.Workload.Stages) > 0
}

// followStages brings the run workers to the level of the stages.
func (l *live) followStages(ctx context.Context, now time.Time) {
	if !staged(l.sc) || !l.life.Started() || l.life.Stopping() {
		return
	}
	w, at := l.sc.Workload, l.life.SinceMeasuring(now)
	have := l.carrying()
	soon := l.sc.Scaling.Workers(w.MostConnections(at, at+joinLead))
	if missing := soon - len(have); missing > 0 && len(l.workers)+missing <= l.plan.Plan.KeySlots &&
		now.After(l.nextJoin) {
		var joined []*runWorker
		for range missing {
			joined = append(joined, l.join(ctx, 0))
		}
		l.tell(aiming{reason: engine.TargetInitial}, joined)
	}
	have, stop := l.retire(have, w.MostConnections(at, at+retireAfter))
	var running []*runWorker
	for _, x := range have {
		if x.state.Status == engine.WorkerRunning {
			running = append(running, x)
		}
	}
	var changed []*runWorker
	level := min(w.NextConnections(at, stageRamp), len(running)*l.sc.Scaling.PerWorkerCapacity)
	// Those that are not needed yet, or may be needed again, wait without connections.
	shares := engine.Spread(level, min(l.sc.Scaling.Workers(level), len(running)))
	for i, x := range running {
		n := 0
		if i < len(shares) {
			n = shares[i]
		}
		if x.connections == n {
			continue
		}
		x.connections = n
		changed = append(changed, x)
	}
	if len(changed)+len(stop) > 0 {
		l.tell(aiming{reason: engine.TargetStage, at: now, ramp: stageRamp}, changed, stop...)
	}
}
