package orchestrator

import (
	"context"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/findmax"
	"github.com/loadstone-db/loadstone/engine/histogram"
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

// meter adds up what the run workers measured in the step under way.
type meter struct {
	number  int
	level   float64
	workers map[string]*metered
	// queued: the warehouse had queries waiting during the step.
	queued bool
}

// metered is one run worker's part. Its time is that of its ticks in the step.
type metered struct {
	seconds              float64
	operations, failures int64
	dropped              int64
	missing              int
	latency              *histogram.Histogram
	over                 bool
}

// begin forgets the step before and expects reports of the given workers.
func (m *meter) begin(number int, level float64, workers []*runWorker) {
	*m = meter{number: number, level: level, workers: map[string]*metered{}}
	for _, w := range workers {
		m.workers[w.id] = &metered{latency: histogram.New()}
	}
}

// add takes a snapshot; one that does not lie in the step changes nothing.
func (m *meter) add(s *engine.WorkerSnapshot) {
	w := m.workers[s.WorkerID]
	if s.Step == 0 || s.Step != m.number || w == nil || w.over {
		return
	}
	w.seconds += s.TickSeconds
	w.operations += s.TickStarted
	w.failures += s.TickErrors
	w.dropped += s.TickDropped
	w.missing, w.over = s.StepMissing, s.StepOver
	// A histogram that is not well-formed counts as one that was not sent.
	if s.TickLatency != nil {
		_ = w.latency.MergeData(s.TickLatency)
	}
}

// complete reports whether every worker that has not left has told all of the step.
func (m *meter) complete(left func(id string) bool) bool {
	for id, w := range m.workers {
		if !w.over && !left(id) {
			return false
		}
	}
	return m.number > 0
}

// observation is the step so far: P50 of all run workers together, P95 and P99
// of the slowest, and the longest time that one of them has measured.
func (m *meter) observation() (findmax.Observation, time.Duration) {
	o := findmax.Observation{Queued: m.queued}
	all := histogram.New()
	longest := 0.0
	for _, w := range m.workers {
		o.Operations += w.operations
		o.Errors += w.failures
		o.Dropped += w.dropped
		o.Missing += w.missing
		longest = max(longest, w.seconds)
		if w.seconds > 0 {
			o.QPS += float64(w.operations) / w.seconds
		}
		if w.latency.Count() == 0 {
			continue
		}
		all.Merge(w.latency)
		o.P95, o.P99 = slower(o.P95, w.latency.Quantile(0.95)), slower(o.P99, w.latency.Quantile(0.99))
	}
	if all.Count() > 0 {
		o.P50 = slower(nil, all.Quantile(0.5))
	}
	return o, time.Duration(longest * float64(time.Second))
}

// slower is the greater latency; ns becomes milliseconds.
func slower(than *float64, ns float64) *float64 {
	if ms := ns / 1e6; than == nil || ms > *than {
		return &ms
	}
	return than
}

// beginStep tells the run workers of a step: absolute targets, and when to measure.
func (l *live) beginStep(a actStep) {
	workers, stop := l.carrying(), []engine.Event(nil)
	if l.sc.FindMax.Unit != engine.FindMaxRate {
		workers, stop = l.retire(workers, int(a.level))
	}
	l.meter.begin(a.step.Number, a.level, workers)
	l.step = a.step
	if l.sc.FindMax.Unit == engine.FindMaxRate {
		shareRate(workers, a.level)
		if rated(l.sc) {
			shareConnections(workers, min(l.pool, len(workers)*max(l.sc.Scaling.PerWorkerCapacity, 1)))
		}
	} else {
		shareConnections(workers, int(a.level))
	}
	l.tell(aiming{reason: engine.TargetStepAdvance, stepID: stepID(l.runID, a.step.Number), step: a.step}, workers, stop...)
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
	if l.core.search == nil || s.Step == 0 {
		return
	}
	l.meter.add(s)
	if s.StepOver && l.meter.complete(l.hasLeft) {
		l.measure(ctx)
	}
}

func (l *live) hasLeft(id string) bool { return l.worker(id).state.Status.Ended() }

func (l *live) measure(ctx context.Context) {
	o, measured := l.meter.observation()
	if l.retryStep(ctx, o) {
		return
	}
	l.happen(ctx, hapMeasured{number: l.meter.number, observed: o, measured: measured})
}

// judged keeps a judged step and tells the log.
func (l *live) judged(step engine.FindMaxStep) {
	level := engine.LogInfo
	text := fmt.Sprintf("Step %d, %s: %.0f/s, P95 %s, %s", step.StepNumber, levelWords(step), step.QPS, millis(step.P95LatencyMs), step.Outcome)
	find := l.core.search.find
	if find.Repeat() > 1 {
		text = fmt.Sprintf("Search %d of %d, s", step.Repetition, find.Repeat()) + text[1:]
	}
	if step.StopReason != "" {
		text += ". " + step.StopReason
	}
	l.noteWith(details{"step": step}, level, nil, "%s", text)
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
	state := l.searchState(l.clock.Now())
	l.keeper.add("the search", func(ctx context.Context) error {
		return l.svc.opts.Store.SaveFindMax(ctx, store.FindMaxProgress{RunID: l.runID, Epoch: l.epoch, State: *state, Steps: steps})
	})
}

// searchState is the search as the page shows it, nil without one. It shares no memory that changes later.
func (l *live) searchState(now time.Time) *engine.FindMaxState {
	s := l.core.search
	if s == nil {
		return nil
	}
	steps := s.find.Steps()
	level, stage, _ := s.find.Next()
	st := &engine.FindMaxState{Unit: s.config.Unit, CurrentStep: s.number, Status: stage, BaselineP95Ms: s.find.Baseline(), UpperBound: s.find.Max(),
		StepDuration: (s.config.Settle() + s.config.StepDuration()).Seconds(), Steps: append([]engine.FindMaxStep{}, steps...), LastUpdated: engine.At(now)}
	if s.number > 0 {
		st.StepID = stepID(l.runID, s.number)
	}
	st.LastStable, st.FirstUnstable = s.find.Bounds()
	st.Repetition, st.Repeat, st.Repetitions = s.find.Repetition(), s.find.Repeat(), s.find.Ended()
	if s.config.Unit == engine.FindMaxRate {
		st.TargetQPS, st.TargetWorkers = &level, l.sc.Workload.ConcurrentConnections
	} else {
		st.TargetWorkers = int(level)
	}
	if r := s.find.Result(); r != nil {
		same := *r
		st.Result = &same
	}
	if !s.begun.IsZero() && stage != engine.StageDone {
		st.StepElapsed = max(min(now.Sub(s.begun).Seconds(), st.StepDuration), 0)
	}
	o, _ := l.meter.observation()
	if o.Operations == 0 || l.meter.number != s.number {
		// The step under way has told nothing yet: the one before is shown.
		if n := len(steps); n > 0 {
			last := steps[n-1]
			st.CurrentP95Ms, st.P95VsBaselinePct, st.QPS, st.QPSVsPriorPct, st.ErrorRate, st.QueueDetected = last.P95LatencyMs, last.P95VsBaselinePct, last.QPS, last.QPSVsPriorPct, last.ErrorRate, last.QueueDetected
		}
		return st
	}
	st.CurrentP95Ms, st.QPS, st.QueueDetected = o.P95, o.QPS, o.Queued
	st.ErrorRate = float64(o.Errors) / float64(o.Operations)
	if b := st.BaselineP95Ms; b != nil && *b > 0 && o.P95 != nil {
		over := (*o.P95 - *b) / *b * 100
		st.P95VsBaselinePct = &over
	}
	if n := len(steps); n > 0 && steps[n-1].QPS > 0 {
		gain := (o.QPS - steps[n-1].QPS) / steps[n-1].QPS * 100
		st.QPSVsPriorPct = &gain
	}
	return st
}

// restingSearch is the state of a search that is over.
func restingSearch(r *engine.FindMaxResult) *engine.FindMaxState {
	if r == nil {
		return nil
	}
	st := &engine.FindMaxState{Unit: r.Unit, CurrentStep: r.Steps, Status: engine.StageDone, BaselineP95Ms: r.BaselineP95Ms, QPS: r.QPS, CurrentP95Ms: r.P95LatencyMs,
		ErrorRate: r.ErrorRate, UpperBound: r.UpperBound, FirstUnstable: r.FirstUnstable, Steps: r.History, Repetition: max(len(r.Repetitions), 1), Repeat: 1, Repetitions: r.Repetitions, Result: r}
	if r.Spread != nil {
		st.Repeat = r.Spread.Asked
	}
	if level, ok := r.Level(); ok {
		st.LastStable = &level
		if r.Unit == engine.FindMaxRate {
			st.TargetQPS = &level
		} else {
			st.TargetWorkers = int(level)
		}
	}
	return st
}

// recoveredSearch is the answer of a search whose process has ended: what its judged steps say.
func recoveredSearch(sc engine.Scenario, state *engine.FindMaxState) *engine.FindMaxResult {
	if !sc.Workload.Searches() {
		return nil
	}
	if state == nil {
		state = &engine.FindMaxState{}
	}
	s := findmax.ReplaySeries(searchConfig(sc.FindMax, state.UpperBound), sc.Workload.Repeat, state.Steps)
	s.End("The server restarted before the search was over")
	return s.Result()
}
