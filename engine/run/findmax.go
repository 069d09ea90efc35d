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
	*runLoop
	// meter is the step under way, and what it has measured; step is what run workers know of it.
	meter lifecycle.Meter
	step  protocol.Step
	// load is what the run workers share in it.
	load SharedLoad
	// pendingStep is a step that waits for run workers to join.
	pendingStep *lifecycle.BeginStep
	// fullLoadAt is when all of the step's load was given to somebody, zero before; later: others bore some of it as it
	// began. inVain counts how often in a row its level was not measured as a whole.
	fullLoadAt     time.Time
	reachedLate    bool
	failedAttempts int
}

// beginStep tells the run workers of a step: absolute targets, and when to measure.
func (l *searcher) beginStep(a lifecycle.BeginStep) {
	workers, stop := l.ActiveWorkers(), []engine.Event(nil)
	if l.sc.FindMax.Unit != engine.FindMaxRate {
		workers, stop = l.scale.retire(workers, int(a.Level))
	}
	l.search.meter.Begin(a.Number, a.Level, WorkerIDs(workers))
	l.search.step = protocol.Step{Number: a.Number, Settle: a.Settle, Length: a.Length}
	load := SharedLoad{Connections: int(a.Level)}
	if l.sc.FindMax.Unit == engine.FindMaxRate {
		load = SharedLoad{Connections: l.scale.pool, Rate: &a.Level}
	}
	if l.sc.Scaling.Elastic() {
		load.MaxPerWorker = max(l.sc.Scaling.PerWorkerCapacity, 1)
	}
	l.search.load, l.search.fullLoadAt = load, time.Time{}
	l.scale.distribute(l.clock.Now(), workers, load)
	l.search.checkFullLoad(l.clock.Now())
	connections, rate := l.HeldByLost(l.clock.Now())
	l.search.reachedLate = l.scale.increasesPending || connections > 0 || rate > 0
	l.sender.sendTargets(scaling.TargetChange{Reason: engine.TargetStepAdvance, StepID: scaling.StepID(l.runID, a.Number),
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
	if s.StepOver && l.search.meter.Complete(l.search.workerLeft) {
		l.search.measure(ctx)
	}
}

func (l *searcher) workerLeft(id string) bool { return l.Worker(id).State.Status.Ended() }

func (l *searcher) measure(ctx context.Context) {
	o, measured := l.search.meter.Observation()
	if l.search.mustRepeat(ctx, &o) || l.search.retryStep(ctx, o) {
		return
	}
	l.apply(ctx, lifecycle.StepMeasured{Number: l.search.meter.Number(), Observation: o, Length: measured})
}

// maxFailedAttempts is how often in a row a level is measured again. It is longer than anybody may be silent.
const maxFailedAttempts = 12

// sentLoad is what of the step's load somebody was told to bear.
func (l *searcher) sentLoad() (sum float64) {
	for _, w := range l.ActiveWorkers() {
		if l.search.load.Rate == nil {
			sum += float64(w.Connections)
		} else if w.Rate != nil {
			sum += *w.Rate
		}
	}
	return sum
}

// checkFullLoad notes when all of the step's load is given.
func (l *searcher) checkFullLoad(now time.Time) {
	const rounding = 1e-6
	if l.search.fullLoadAt.IsZero() && !l.HasUnknownLoad() && l.search.sentLoad() >= l.search.meter.Level()*(1-rounding) {
		l.search.fullLoadAt = now
	}
}

// mustRepeat reports whether the step is measured again, because it was not borne at its level: a run worker was not heard
// to its end, or a part of its load was given to nobody until it was settled. What nobody is going to have is missing.
func (l *searcher) mustRepeat(ctx context.Context, o *findmax.Observation) bool {
	if l.life.Stopping() {
		return false
	}
	s, number := l.life.Search(), l.search.meter.Number()
	absent, full := l.search.meter.Missing(), l.search.fullLoadAt
	late := full.IsZero() && (l.search.reachedLate || l.scale.increasesPending) || !full.IsZero() && s.Settled(number, full)
	if (len(absent) > 0 || late) && l.search.failedAttempts < maxFailedAttempts {
		l.search.failedAttempts++
		why := "a part of its load was borne too late"
		if len(absent) > 0 {
			why = "nothing was heard of " + strings.Join(absent, ", ") + " to its end"
		}
		l.writeLog(engine.LogWarning, nil, "Step %d is measured again: %s", number, why)
		l.apply(ctx, lifecycle.StepInvalid{Number: number})
		return true
	}
	l.search.failedAttempts = 0
	if l.search.load.Rate == nil {
		o.Missing += max(int(l.search.meter.Level()-l.search.sentLoad()), 0)
		for _, id := range absent {
			o.Missing += l.Worker(id).Connections
		}
	}
	return false
}

// recordStep keeps a judged step and tells the log.
func (l *searcher) recordStep(step engine.FindMaxStep) {
	level := engine.LogInfo
	text := runlog.StepMessage(step)
	find := l.life.Search().Series()
	if find.Repeat() > 1 {
		text = fmt.Sprintf("Search %d of %d, s", step.Repetition, find.Repeat()) + text[1:]
	}
	if step.StopReason != "" {
		text += ". " + step.StopReason
	}
	l.writeLogWith(runlog.Details{"step": step}, level, nil, "%s", text)
	if ended := find.Ended(); find.Repeat() > 1 && len(ended) == step.Repetition {
		l.writeLog(engine.LogInfo, nil, "Search %d of %d: %s", step.Repetition, find.Repeat(), ended[len(ended)-1].Reason)
	}
	if r := find.Result(); r != nil {
		l.writeLog(engine.LogInfo, nil, "%s", r.Reason)
	}
	l.search.save([]engine.FindMaxStep{step})
	l.publish(false)
}

// save queues the state of the search, with the steps that were judged since.
func (l *searcher) save(steps []engine.FindMaxStep) {
	state := l.search.state()
	l.writer.Add("the search", func(ctx context.Context) error {
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
		l.search.pendingStep = &a // those that join have a part in it
		return
	}
	have := len(l.ActiveWorkers())
	need := l.sc.Scaling.Workers(int(a.Level))
	if !l.scale.elastic() || need <= have || len(l.Workers)+need-have > l.plan.Plan.KeySlots {
		l.search.beginStep(a)
		return
	}
	l.search.pendingStep = &a
	var joined []*Worker
	for _, n := range engine.Spread(int(a.Level), need)[have:] {
		// The step gives them what others have until then.
		joined = append(joined, l.scale.join(ctx, min(n, l.SpareConnections(l.clock.Now(), int(a.Level)))))
	}
	l.sender.sendTargets(scaling.TargetChange{Reason: engine.TargetInitial}, joined)
	if l.AllReady() {
		l.search.beginPending()
	}
}

// beginPending begins the step that waited for run workers; it reports whether there was one.
func (l *searcher) beginPending() bool {
	a := l.search.pendingStep
	if a == nil || l.life.Stopping() {
		return false
	}
	l.search.pendingStep = nil
	l.search.beginStep(*a)
	return true
}

// retryStep gives the step of a search over the rate further run workers, when
// those there have missed it: the same level is measured again with them.
func (l *searcher) retryStep(ctx context.Context, o findmax.Observation) bool {
	if l.life.Search() == nil || !scaling.ScalesWithRate(l.sc) || l.life.Stopping() || l.scale.joining ||
		l.scale.growth.StopReason() != "" {
		return false
	}
	s := lifecycle.RateSample{Target: l.search.meter.Level(), Achieved: o.QPS, Saturated: true, CPUPercent: l.second.Peak.CPUPercent}
	if o.Operations == 0 || !s.MissesRate() {
		return false
	}
	decide := func(have int, room lifecycle.Headroom) (int, string) { return l.scale.growth.Decide(s, have, room) }
	if !l.scale.scaleOut(ctx, decide, s) {
		return false
	}
	l.apply(ctx, lifecycle.StepInvalid{Number: l.search.meter.Number()})
	return true
}
