package run

import (
	"context"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// judgeRate adds run workers to a run that misses its rate, and says when it adds no more.
func (l *scaler) judgeRate(ctx context.Context, now time.Time) {
	if !scaling.Rated(l.sc) || l.life.Search() != nil || !l.life.Started() || l.life.Stopping() ||
		l.scale.joining || l.keeper.Away() || l.plan == nil || len(l.second.Snapshots) == 0 {
		return
	}
	p := &l.second.Payload
	s := lifecycle.Seen{Achieved: p.Ops.CurrentPerSec, Short: p.Waiting > 0 ||
		p.DroppedPerSec > 0, CPUPercent: l.second.Peak.CPUPercent}
	if p.TargetQPS != nil {
		s.Wanted = *p.TargetQPS
	}
	decide := func(have int, room lifecycle.Room) (int, string) { return l.scale.growth.Second(now, s, have, room) }
	l.scale.grow(ctx, decide, s)
}

// grow asks for a decision and carries it out; it reports whether run workers join.
func (l *scaler) grow(ctx context.Context, decide func(have int, room lifecycle.Room) (int, string),
	s lifecycle.Seen) bool {
	have := l.Carrying()
	room, connections := l.scale.roomForRate(len(have))
	add, why := decide(len(have), room)
	if why != "" {
		l.note(engine.LogWarning, nil, "%s", why)
		l.validity.Note(why)
	}
	if add == 0 {
		return false
	}
	before := l.scale.pool
	l.scale.pool = min(l.scale.pool+add*l.sc.Scaling.PerWorkerCapacity, connections)
	l.note(engine.LogInfo, nil, "The rate of %.6g/s is missed (%.6g/s): %d run worker(s) join the %d, for %d "+
		"connections in all", s.Wanted, s.Achieved, add, len(have), l.scale.pool)
	l.scale.joining = true
	var joined []*Worker
	for _, n := range engine.Spread(l.scale.pool, len(have)+add)[len(have):] {
		joined = append(joined, l.scale.join(ctx, min(n, l.Spare(l.clock.Now(), l.scale.pool))))
	}
	l.scale.grown.Add(before, l.sc.Scaling.PerWorkerCapacity, joined)
	l.sendTargets(scaling.ScalingChange{Reason: engine.TargetInitial}, joined)
	l.scale.settle()
	return true
}

// roomForRate is how many run workers may join the have there are, and how many
// connections all may hold together.
func (l *scaler) roomForRate(have int) (lifecycle.Room, int) {
	free := l.svc.doorman.Free()
	return lifecycle.RoomForRate(l.sc, lifecycle.Bounds{Have: have, Pool: l.scale.pool,
		Allowed: l.plan.Server.MaxConnections, Spare: scaling.SpareSessions,
		Unlimited: free.Unbounded, Nodes: free.Connections,
		Slots: l.plan.Plan.KeySlots, SlotsUsed: len(l.Workers), Paused: l.clock.Now().Before(l.scale.nextJoin)})
}

// settle shares the load anew once everybody who joins is ready, or has failed to be.
func (l *scaler) settle() {
	if !l.scale.joining || !l.Joined() || l.life.Stopping() {
		return
	}
	l.scale.joining = false
	var refused bool
	l.scale.pool, refused = l.scale.grown.Settled(l.scale.pool)
	if why := l.scale.growth.Joined(l.clock.Now(), refused); why != "" {
		l.note(engine.LogWarning, nil, "%s", why)
		l.validity.Note(why)
	}
	if l.life.Search() == nil {
		l.scale.redistribute()
	}
}

// redistribute shares the connections of a run, and its rate if it has one, between the run workers that it has.
func (l *scaler) redistribute() {
	workers := l.Carrying()
	if len(workers) == 0 {
		return
	}
	now := l.clock.Now()
	l.scale.divide(now, workers, l.scale.load(now))
	l.sendTargets(scaling.ScalingChange{Reason: engine.TargetRedistribute}, workers)
}

// rated reports whether the run workers are told their rates as they are divided.
func (l *scaler) rated() bool {
	return scaling.Rated(l.sc) || l.scale.steered && scaling.FirstRate(l.sc) != nil
}

// load is what the run workers of a run without stages of connections share now.
func (l *scaler) load(now time.Time) Load {
	load := Load{Connections: l.scale.pool, Each: max(l.sc.Scaling.PerWorkerCapacity, 1)}
	if l.scale.rated() {
		rate := l.scale.wantedRate(now)
		load.Rate = &rate
	}
	return load
}

// divide shares a load, and remembers whether somebody is to have more when others have less. It returns
// those whose part has changed.
func (l *scaler) divide(now time.Time, workers []*Worker, load Load) (changed []*Worker) {
	changed, l.scale.owed = l.Divide(now, workers, load)
	if doubted := l.Doubted(); doubted {
		l.scale.owed, l.scale.bounded = true, true
	} else if l.scale.bounded {
		changed, l.scale.bounded = workers, false // they may have less than they were told
	}
	return changed
}

// raise gives run workers that bear too little their part of the load, as far as others bear less by now.
func (l *scaler) raise(ctx context.Context, now time.Time) {
	if !l.scale.owed || !l.life.Started() || l.life.Stopping() || l.scale.joining {
		return
	}
	switch search := l.life.Search(); {
	case scaling.Staged(l.sc):
		l.scale.followStages(ctx, now)
	case search == nil && scaling.ScalingFollowed(l.sc):
		l.scale.followRates(now)
	default:
		load := l.scale.load(now)
		if search != nil {
			load = l.search.load
		}
		changed := l.scale.divide(now, l.Carrying(), load)
		if search != nil {
			l.search.weigh(now)
		}
		if len(changed) > 0 {
			l.sendTargets(scaling.ScalingChange{Reason: engine.TargetRedistribute}, changed)
		}
	}
}

// replaceLost gives the load of lost run workers that must have stopped by now to others: to
// run workers that join in their place, or else to those that are left. Stages of connections
// and steps of a search place whom they need by themselves.
func (l *scaler) replaceLost(ctx context.Context, now time.Time) {
	if !l.keeper.Owns(true) || l.keeper.Away() {
		return // another server may own the run, and replace them; or nobody could join
	}
	lost, some := l.Freed(now)
	if !some || l.life.Stopping() || scaling.Staged(l.sc) || l.life.Search() != nil {
		return
	}
	places := lifecycle.CrewOf(l.sc, len(l.Carrying()), l.plan.Plan.KeySlots-len(l.Workers))
	n, why := places.Replacements(len(lost))
	if why != "" {
		l.note(engine.LogWarning, nil, "%d lost run worker(s) are not replaced: %s", len(lost)-n, why)
	}
	var joined []*Worker
	for _, connections := range lost[:n] {
		joined = append(joined, l.scale.join(ctx, min(connections, l.Spare(now, l.scale.pool))))
	}
	if l.scale.joining = l.scale.joining || n > 0; n > 0 {
		l.sendTargets(scaling.ScalingChange{Reason: engine.TargetInitial}, joined)
		l.scale.settle()
	} else if !l.scale.joining {
		l.scale.redistribute()
	}
}

// wantedRate is the rate of the whole run now.
func (l *scaler) wantedRate(now time.Time) float64 {
	if l.life.Search() != nil {
		return l.search.meter.Level()
	}
	return l.sc.Workload.RateAt(l.life.SinceMeasuring(now))
}

// followRates brings the run workers to the rate of the stages, up to the next
// second or the next border: a ramp is made of such pieces, and a step is announced at its time.
// While somebody joins the rate only falls: a joining one may take a minute.
func (l *scaler) followRates(now time.Time) {
	if !scaling.Rated(l.sc) || !scaling.ScalingFollowed(l.sc) || !l.life.Started() || l.life.Stopping() {
		return
	}
	at := l.life.SinceMeasuring(now)
	rate, ramp := l.sc.Workload.NextRate(at, scaling.StageRamp)
	workers := l.Carrying()
	if l.scale.joining {
		workers = slices.DeleteFunc(workers, func(w *Worker) bool { return w.Rate == nil || *w.Rate == 0 })
	}
	load := l.scale.load(now)
	load.Rate, load.Fall = &rate, l.scale.joining // settle gives more
	if changed := l.scale.divide(now, workers, load); len(changed) > 0 {
		l.sendTargets(scaling.ScalingChange{Reason: engine.TargetStage, At: now, Ramp: ramp}, changed)
	}
}
