package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/findmax"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/runlog"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/store"
)

// searcher carries out the steps of a search for the limit.
type searcher struct {
	*live
	// meter is the step under way, and what it has measured; step is what run workers know of it.
	meter lifecycle.Meter
	step  protocol.Step
	// load is what the run workers share in it.
	load Load
	// held is a step that waits for run workers to join.
	held *lifecycle.BeginStep
	// fullAt is when all of the step's load was given to somebody, zero before; later: others bore some of it as it
	// began. inVain counts how often in a row its level was not measured as a whole.
	fullAt time.Time
	later  bool
	inVain int
}

// beginStep tells the run workers of a step: absolute targets, and when to measure.
func (l *searcher) beginStep(a lifecycle.BeginStep) {
	workers, stop := l.Carrying(), []engine.Event(nil)
	if l.sc.FindMax.Unit != engine.FindMaxRate {
		workers, stop = l.scale.retire(workers, int(a.Level))
	}
	l.search.meter.Begin(a.Number, a.Level, IDsOf(workers))
	l.search.step = protocol.Step{Number: a.Number, Settle: a.Settle, Length: a.Length}
	load := Load{Connections: int(a.Level)}
	if l.sc.FindMax.Unit == engine.FindMaxRate {
		load = Load{Connections: l.scale.pool, Rate: &a.Level}
	}
	if l.sc.Scaling.Elastic() {
		load.Each = max(l.sc.Scaling.PerWorkerCapacity, 1)
	}
	l.search.load, l.search.fullAt = load, time.Time{}
	l.scale.divide(l.clock.Now(), workers, load)
	l.search.weigh(l.clock.Now())
	connections, rate := l.Held(l.clock.Now())
	l.search.later = l.scale.owed || connections > 0 || rate > 0
	l.sendTargets(scaling.ScalingChange{Reason: engine.TargetStepAdvance, StepID: scaling.StepID(l.runID, a.Number),
		Step: l.search.step}, workers, stop...)
	l.search.save(nil)
}

// add takes a snapshot into the step under way, and has the step
// keepStep when it was the last one.
func (l *searcher) add(ctx context.Context, s *engine.WorkerSnapshot) {
	if l.life.Search() == nil || s.Step == 0 {
		return
	}
	l.search.meter.Add(s)
	if s.StepOver && l.search.meter.Complete(l.search.hasLeft) {
		l.search.measure(ctx)
	}
}

func (l *searcher) hasLeft(id string) bool { return l.Worker(id).State.Status.Ended() }

func (l *searcher) measure(ctx context.Context) {
	o, measured := l.search.meter.Observation()
	if l.search.lacks(ctx, &o) || l.search.retryStep(ctx, o) {
		return
	}
	l.happen(ctx, lifecycle.Measured{Number: l.search.meter.Number(), Observed: o, Length: measured})
}

// mostInVain is how often in a row a level is measured again. It is longer than anybody may be silent.
const mostInVain = 12

// given is what of the step's load somebody was told to bear.
func (l *searcher) given() (sum float64) {
	for _, w := range l.Carrying() {
		if l.search.load.Rate == nil {
			sum += float64(w.Connections)
		} else if w.Rate != nil {
			sum += *w.Rate
		}
	}
	return sum
}

// weigh notes when all of the step's load is given.
func (l *searcher) weigh(now time.Time) {
	const rounding = 1e-6
	if l.search.fullAt.IsZero() && !l.Doubted() && l.search.given() >= l.search.meter.Level()*(1-rounding) {
		l.search.fullAt = now
	}
}

// lacks reports whether the step is measured again, because it was not borne at its level: a run worker was not heard
// to its end, or a part of its load was given to nobody until it was settled. What nobody is going to have is missing.
func (l *searcher) lacks(ctx context.Context, o *findmax.Observation) bool {
	if l.life.Stopping() {
		return false
	}
	s, number := l.life.Search(), l.search.meter.Number()
	absent, full := l.search.meter.Absent(), l.search.fullAt
	late := full.IsZero() && (l.search.later || l.scale.owed) || !full.IsZero() && s.Settled(number, full)
	if (len(absent) > 0 || late) && l.search.inVain < mostInVain {
		l.search.inVain++
		why := "a part of its load was borne too late"
		if len(absent) > 0 {
			why = "nothing was heard of " + strings.Join(absent, ", ") + " to its end"
		}
		l.note(engine.LogWarning, nil, "Step %d is measured again: %s", number, why)
		l.happen(ctx, lifecycle.MeasuredInVain{Number: number})
		return true
	}
	l.search.inVain = 0
	if l.search.load.Rate == nil {
		o.Missing += max(int(l.search.meter.Level()-l.search.given()), 0)
		for _, id := range absent {
			o.Missing += l.Worker(id).Connections
		}
	}
	return false
}

// keepStep keeps a judged step and tells the log.
func (l *searcher) keepStep(step engine.FindMaxStep) {
	level := engine.LogInfo
	text := runlog.OfStep(step)
	find := l.life.Search().Series()
	if find.Repeat() > 1 {
		text = fmt.Sprintf("Search %d of %d, s", step.Repetition, find.Repeat()) + text[1:]
	}
	if step.StopReason != "" {
		text += ". " + step.StopReason
	}
	l.noteWith(runlog.Details{"step": step}, level, nil, "%s", text)
	if ended := find.Ended(); find.Repeat() > 1 && len(ended) == step.Repetition {
		l.note(engine.LogInfo, nil, "Search %d of %d: %s", step.Repetition, find.Repeat(), ended[len(ended)-1].Reason)
	}
	if r := find.Result(); r != nil {
		l.note(engine.LogInfo, nil, "%s", r.Reason)
	}
	l.search.save([]engine.FindMaxStep{step})
	l.publish(false)
}

// save queues the state of the search, with the steps that were judged since.
func (l *searcher) save(steps []engine.FindMaxStep) {
	state := l.search.state()
	l.keeper.Add("the search", func(ctx context.Context) error {
		return l.svc.opts.Store.SaveFindMax(ctx,
			store.FindMaxProgress{RunID: l.runID, Epoch: l.epoch, State: *state, Steps: steps})
	})
}

// state is the search as the page shows it, nil without one.
func (l *searcher) state() *engine.FindMaxState {
	s := l.life.Search()
	if s == nil {
		return nil
	}
	return s.State(l.clock.Now(), &l.search.meter, l.sc.Workload.ConcurrentConnections)
}

// nextStep has as many run workers join as the step's level needs, and begins it when they are there.
func (l *searcher) nextStep(ctx context.Context, a lifecycle.BeginStep) {
	if l.scale.joining {
		l.search.held = &a // those that join have a part in it
		return
	}
	have := len(l.Carrying())
	need := l.sc.Scaling.Workers(int(a.Level))
	if !l.scale.elastic() || need <= have || len(l.Workers)+need-have > l.plan.Plan.KeySlots {
		l.search.beginStep(a)
		return
	}
	l.search.held = &a
	var joined []*Worker
	for _, n := range engine.Spread(int(a.Level), need)[have:] {
		// The step gives them what others have until then.
		joined = append(joined, l.scale.join(ctx, min(n, l.Spare(l.clock.Now(), int(a.Level)))))
	}
	l.sendTargets(scaling.ScalingChange{Reason: engine.TargetInitial}, joined)
	if l.Joined() {
		l.search.beginHeld()
	}
}

// beginHeld begins the step that waited for run workers; it reports whether there was one.
func (l *searcher) beginHeld() bool {
	a := l.search.held
	if a == nil || l.life.Stopping() {
		return false
	}
	l.search.held = nil
	l.search.beginStep(*a)
	return true
}

// retryStep gives the step of a search over the rate further run workers, when
// those there have missed it: the same level is measured again with them.
func (l *searcher) retryStep(ctx context.Context, o findmax.Observation) bool {
	if l.life.Search() == nil || !scaling.Rated(l.sc) || l.life.Stopping() || l.scale.joining ||
		l.scale.growth.Stopped() != "" {
		return false
	}
	s := lifecycle.Seen{Wanted: l.search.meter.Level(), Achieved: o.QPS, Short: true, CPUPercent: l.second.Peak.CPUPercent}
	if o.Operations == 0 || !s.Misses() {
		return false
	}
	decide := func(have int, room lifecycle.Room) (int, string) { return l.scale.growth.Judge(s, have, room) }
	if !l.scale.grow(ctx, decide, s) {
		return false
	}
	l.happen(ctx, lifecycle.MeasuredInVain{Number: l.search.meter.Number()})
	return true
}
