package run

import (
	"context"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// checkRate adds run workers to a run that misses its rate, and says when it adds no more.
func (l *scaler) checkRate(ctx context.Context, now time.Time) {
	if !scaling.ScalesWithRate(l.sc) || l.life.Search() != nil || !l.life.Started() || l.life.Stopping() ||
		l.scale.joining || l.writer.Away() || l.plan == nil || len(l.second.Snapshots) == 0 {
		return
	}
	p := &l.second.Payload
	s := lifecycle.RateSample{Achieved: p.Ops.CurrentPerSec, Saturated: p.Waiting > 0 ||
		p.DroppedPerSec > 0, CPUPercent: l.second.Peak.CPUPercent}
	if p.TargetQPS != nil {
		s.Target = *p.TargetQPS
	}
	decide := func(have int, room lifecycle.Headroom) (int, string) {
		return l.scale.growth.ObserveSecond(now, s, have, room)
	}
	l.scale.scaleOut(ctx, decide, s)
}

// scaleOut asks for a decision and carries it out; it reports whether run workers join.
func (l *scaler) scaleOut(ctx context.Context, decide func(have int, room lifecycle.Headroom) (int, string),
	s lifecycle.RateSample) bool {
	have := l.ActiveWorkers()
	room, connections := l.scale.roomForRate(len(have))
	add, why := decide(len(have), room)
	if why != "" {
		l.writeLog(engine.LogWarning, nil, "%s", why)
		l.validity.AddNote(why)
	}
	if add == 0 {
		return false
	}
	before := l.scale.pool
	l.scale.pool = min(l.scale.pool+add*l.sc.Scaling.PerWorkerCapacity, connections)
	l.writeLog(engine.LogInfo, nil, "The rate of %.6g/s is missed (%.6g/s): %d run worker(s) join the %d, for %d "+
		"connections in all", s.Target, s.Achieved, add, len(have), l.scale.pool)
	l.scale.joining = true
	var joined []*Worker
	for _, n := range engine.Spread(l.scale.pool, len(have)+add)[len(have):] {
		joined = append(joined, l.scale.join(ctx, min(n, l.SpareConnections(l.clock.Now(), l.scale.pool))))
	}
	l.scale.lastScaleOut.Add(before, l.sc.Scaling.PerWorkerCapacity, joined)
	l.sender.sendTargets(scaling.TargetChange{Reason: engine.TargetInitial}, joined)
	l.scale.rebalanceWhenReady()
	return true
}

// roomForRate is how many run workers may join the have there are, and how many
// connections all may hold together.
func (l *scaler) roomForRate(have int) (lifecycle.Headroom, int) {
	free := l.svc.admission.FreeConnections()
	return lifecycle.HeadroomForRate(l.sc, lifecycle.ScaleLimits{Workers: have, Pool: l.scale.pool,
		Allowed: l.plan.Server.MaxConnections, Spare: scaling.SpareSessions,
		Unlimited: free.Unbounded, Nodes: free.Connections,
		Slots: l.plan.Plan.KeySlots, SlotsUsed: len(l.Workers), Paused: l.clock.Now().Before(l.scale.nextJoin)})
}

// rebalanceWhenReady shares the load anew once everybody who joins is ready, or has failed to be.
func (l *scaler) rebalanceWhenReady() {
	if !l.scale.joining || !l.AllReady() || l.life.Stopping() {
		return
	}
	l.scale.joining = false
	var refused bool
	l.scale.pool, refused = l.scale.lastScaleOut.Settle(l.scale.pool)
	if why := l.scale.growth.RecordJoin(l.clock.Now(), refused); why != "" {
		l.writeLog(engine.LogWarning, nil, "%s", why)
		l.validity.AddNote(why)
	}
	if l.life.Search() == nil {
		l.scale.redistribute()
	}
}

// redistribute shares the connections of a run, and its rate if it has one, between the run workers that it has.
func (l *scaler) redistribute() {
	workers := l.ActiveWorkers()
	if len(workers) == 0 {
		return
	}
	now := l.clock.Now()
	l.scale.distribute(now, workers, l.scale.sharedLoad(now))
	l.sender.sendTargets(scaling.TargetChange{Reason: engine.TargetRedistribute}, workers)
}

// hasRateTargets reports whether the run workers are told their rates as they are divided.
func (l *scaler) hasRateTargets() bool {
	return scaling.ScalesWithRate(l.sc) || l.scale.userChanged && scaling.FirstRate(l.sc) != nil
}

// sharedLoad is what the run workers of a run without stages of connections share now.
func (l *scaler) sharedLoad(now time.Time) SharedLoad {
	load := SharedLoad{Connections: l.scale.pool, MaxPerWorker: max(l.sc.Scaling.PerWorkerCapacity, 1)}
	if l.scale.hasRateTargets() {
		rate := l.scale.wantedRate(now)
		load.Rate = &rate
	}
	return load
}

// distribute shares a load, and remembers whether somebody is to have more when others have less. It returns
// those whose part has changed.
func (l *scaler) distribute(now time.Time, workers []*Worker, load SharedLoad) (changed []*Worker) {
	changed, l.scale.increasesPending = l.Distribute(now, workers, load)
	if doubted := l.HasUnknownLoad(); doubted {
		l.scale.increasesPending, l.scale.boundsOnly = true, true
	} else if l.scale.boundsOnly {
		changed, l.scale.boundsOnly = workers, false // they may have less than they were told
	}
	return changed
}

// raiseUnderTarget gives run workers that bear too little their part of the load, as far as others bear less by now.
func (l *scaler) raiseUnderTarget(ctx context.Context, now time.Time) {
	if !l.scale.increasesPending || !l.life.Started() || l.life.Stopping() || l.scale.joining {
		return
	}
	switch search := l.life.Search(); {
	case scaling.Staged(l.sc):
		l.scale.followStages(ctx, now)
	case search == nil && scaling.StagesDriven(l.sc):
		l.scale.followRates(now)
	default:
		load := l.scale.sharedLoad(now)
		if search != nil {
			load = l.search.load
		}
		changed := l.scale.distribute(now, l.ActiveWorkers(), load)
		if search != nil {
			l.search.checkFullLoad(now)
		}
		if len(changed) > 0 {
			l.sender.sendTargets(scaling.TargetChange{Reason: engine.TargetRedistribute}, changed)
		}
	}
}

// replaceLost gives the load of lost run workers that must have stopped by now to others: to
// run workers that join in their place, or else to those that are left. Stages of connections
// and steps of a search place whom they need by themselves.
func (l *scaler) replaceLost(ctx context.Context, now time.Time) {
	if !l.writer.Owns(true) || l.writer.Away() {
		return // another server may own the run, and replace them; or nobody could join
	}
	lost, some := l.ReleaseExpired(now)
	if !some || l.life.Stopping() || scaling.Staged(l.sc) || l.life.Search() != nil {
		return
	}
	places := lifecycle.ReplacementLimitsOf(l.sc, len(l.ActiveWorkers()), l.plan.Plan.KeySlots-len(l.Workers))
	n, why := places.Replacements(len(lost))
	if why != "" {
		l.writeLog(engine.LogWarning, nil, "%d lost run worker(s) are not replaced: %s", len(lost)-n, why)
	}
	var joined []*Worker
	for _, connections := range lost[:n] {
		joined = append(joined, l.scale.join(ctx, min(connections, l.SpareConnections(now, l.scale.pool))))
	}
	if l.scale.joining = l.scale.joining || n > 0; n > 0 {
		l.sender.sendTargets(scaling.TargetChange{Reason: engine.TargetInitial}, joined)
		l.scale.rebalanceWhenReady()
	} else if !l.scale.joining {
		l.scale.redistribute()
	}
}

// wantedRate is the rate of the whole run now.
func (l *scaler) wantedRate(now time.Time) float64 {
	if l.life.Search() != nil {
		return l.search.meter.Level()
	}
	return l.sc.Workload.RateAt(l.life.MeasuredFor(now))
}

// followRates brings the run workers to the rate of the stages, up to the next
// second or the next border: a ramp is made of such pieces, and a step is announced at its time.
// While somebody joins the rate only falls: a joining one may take a minute.
func (l *scaler) followRates(now time.Time) {
	if !scaling.ScalesWithRate(l.sc) || !scaling.StagesDriven(l.sc) || !l.life.Started() || l.life.Stopping() {
		return
	}
	at := l.life.MeasuredFor(now)
	rate, ramp := l.sc.Workload.NextRate(at, scaling.StageRamp)
	workers := l.ActiveWorkers()
	if l.scale.joining {
		workers = slices.DeleteFunc(workers, func(w *Worker) bool { return w.Rate == nil || *w.Rate == 0 })
	}
	load := l.scale.sharedLoad(now)
	load.Rate, load.NoIncrease = &rate, l.scale.joining // settle gives more
	if changed := l.scale.distribute(now, workers, load); len(changed) > 0 {
		l.sender.sendTargets(scaling.TargetChange{Reason: engine.TargetStage, At: now, Ramp: ramp}, changed)
	}
}
