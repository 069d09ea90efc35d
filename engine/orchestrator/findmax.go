package orchestrator

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/lifecycle"
	"github.com/loadstone-db/loadstone/engine/runlog"
	"github.com/loadstone-db/loadstone/engine/store"
)

// The bounds of a search whose template has none.
const (
	// spareSessions of a target are left to others.
	spareSessions = 10
	highestRate   = 10_000_000
)

// highestLevel is the highest level that a search may try: what the template
// says, and no more connections than the run workers and the target hold.
func highestLevel(sc engine.Scenario, targetHolds int) (level float64, why string) {
	f := sc.FindMax
	if f.Unit == engine.FindMaxRate {
		if f.MaxRate != nil {
			return *f.MaxRate, "find_max.max_rate"
		}
		return highestRate, "the highest rate there is"
	}
	most, why := sc.Scaling.Holds(), "what the run workers hold"
	if f.MaxConcurrency != nil && *f.MaxConcurrency <= most {
		most, why = *f.MaxConcurrency, "find_max.max_concurrency"
	}
	if left := targetHolds - spareSessions; targetHolds > 0 && left < most {
		most, why = left, fmt.Sprintf("the target's max_connections of %d, less %d for others", targetHolds, spareSessions)
	}
	return float64(max(most, f.StartConcurrency)), why
}

// loadOf is the workload as the run workers know it. Those of a search follow
// levels, in a closed loop or an open one, and know nothing of the search; those that come and go
// with stages are told their connections.
func loadOf(sc engine.Scenario) engine.Workload {
	w := sc.Workload
	if !w.Searches() {
		if len(w.Stages) > 0 && sc.Scaling.Elastic() && w.Arrival != engine.ArrivalWorkload {
			if rate := w.StartRate(); w.OpenLoop() && rate > 0 {
				w.TargetQPS = &rate
			}
			w.Stages = nil
		}
		return w
	}
	w.LoadMode = engine.LoadConcurrency
	if sc.FindMax.Unit == engine.FindMaxRate {
		w.LoadMode, w.TargetQPS = engine.LoadQPS, sc.FindMax.StartRate
	}
	return w
}

// beginStep tells the run workers of a step: absolute targets, and when to measure.
func (l *live) beginStep(a lifecycle.BeginStep) {
	workers, stop := l.carrying(), []engine.Event(nil)
	if l.sc.FindMax.Unit != engine.FindMaxRate {
		workers, stop = l.retire(workers, int(a.Level))
	}
	l.meter.Begin(a.Number, a.Level, idsOf(workers))
	l.step = control.Step{Number: a.Number, Settle: a.Settle, Length: a.Length}
	if l.sc.FindMax.Unit == engine.FindMaxRate {
		shareRate(workers, a.Level)
		if rated(l.sc) {
			shareConnections(workers, min(l.pool, len(workers)*max(l.sc.Scaling.PerWorkerCapacity, 1)))
		}
	} else {
		shareConnections(workers, int(a.Level))
	}
	l.tell(aiming{reason: engine.TargetStepAdvance, stepID: stepID(l.runID, a.Number), step: l.step}, workers, stop...)
	l.saveSearch(nil)
}

// carrying are the run workers that have neither ended nor been told to, in the order of their groups.
func (l *live) carrying() []*runWorker {
	var out []*runWorker
	for _, w := range l.workers {
		if !w.state.Status.Ended() && !w.retiring {
			out = append(out, w)
		}
	}
	return out
}

// stepSnapshot takes a snapshot into the step under way, and has the step
// judged when it was the last one.
func (l *live) stepSnapshot(ctx context.Context, s *engine.WorkerSnapshot) {
	if l.life.Search() == nil || s.Step == 0 {
		return
	}
	l.meter.Add(s)
	if s.StepOver && l.meter.Complete(l.hasLeft) {
		l.measure(ctx)
	}
}

func (l *live) hasLeft(id string) bool { return l.worker(id).state.Status.Ended() }

func (l *live) measure(ctx context.Context) {
	o, measured := l.meter.Observation()
	if l.retryStep(ctx, o) {
		return
	}
	l.happen(ctx, lifecycle.Measured{Number: l.meter.Number(), Observed: o, Length: measured})
}

// judged keeps a judged step and tells the log.
func (l *live) judged(step engine.FindMaxStep) {
	level := engine.LogInfo
	text := fmt.Sprintf("Step %d, %s: %.0f/s, P95 %s, %s", step.StepNumber, levelWords(step), step.QPS,
		millis(step.P95LatencyMs), step.Outcome)
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
	l.saveSearch([]engine.FindMaxStep{step})
	l.publish(false)
}

func levelWords(s engine.FindMaxStep) string {
	if s.TargetQPS != nil {
		return fmt.Sprintf("%.6g operations per second", *s.TargetQPS)
	}
	if s.TotalTargetConnections == 1 {
		return "1 connection"
	}
	return fmt.Sprintf("%d connections", s.TotalTargetConnections)
}

func unitWords(u engine.FindMaxUnit) string {
	if u == engine.FindMaxRate {
		return "operations per second"
	}
	return "connections"
}

func millis(ms *float64) string {
	if ms == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.3g ms", *ms)
}

// saveSearch queues the state of the search, with the steps that were judged since.
func (l *live) saveSearch(steps []engine.FindMaxStep) {
	state := l.searchState()
	l.keeper.Add("the search", func(ctx context.Context) error {
		return l.svc.opts.Store.SaveFindMax(ctx,
			store.FindMaxProgress{RunID: l.runID, Epoch: l.epoch, State: *state, Steps: steps})
	})
}

// searchState is the search as the page shows it, nil without one.
func (l *live) searchState() *engine.FindMaxState {
	s := l.life.Search()
	if s == nil {
		return nil
	}
	return s.State(l.clock.Now(), &l.meter, l.sc.Workload.ConcurrentConnections)
}

// idsOf are the ids of run workers, in their order.
func idsOf(workers []*runWorker) []string {
	ids := make([]string, len(workers))
	for i, w := range workers {
		ids[i] = w.id
	}
	return ids
}
