package orchestrator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/store"
)

// drainGrace is what a worker gets beyond its drain limit to cancel, flush and
// report, before it counts as dead.
const drainGrace = 10 * time.Second

// core decides the life of one run. It is a pure function of what has happened
// and when: no clock, no goroutine, no I/O.
//
//	state                 happening                    actions
//	RUNNING/PREPARING     (begun)                      prepare
//	                      prepared                     place
//	                      all workers READY            START, SET_PHASE
//	                      120 s since place            stop(setup_failure)
//	RUNNING/WARMUP        warm-up over                 SET_PHASE MEASUREMENT
//	RUNNING/MEASUREMENT   a stage begins               targets
//	                      duration over                stop(duration_elapsed)
//	                      a search: see searching
//	RUNNING               user, guardrail, lost worker stop(reason)
//	STOPPING              user, lost worker            → CANCELLING
//	STOPPING, CANCELLING  all workers left             → terminal/PROCESSING, finish
//	terminal/PROCESSING   finished                     enrich, or → phase none, end
//	                      enriched                     → phase none, end
//
// A run starts with all of its workers or not at all. A FIXED one fails when it
// loses one; others go on with those that are left, and with those that join.
type core struct {
	warmup, duration time.Duration
	expected         int
	// drain is how long operations in flight may take after a STOP.
	drain func(engine.StopReason) time.Duration

	status     engine.Status
	phase      engine.Phase
	preparing  bool
	placed     bool
	started    bool
	finishing  bool
	enriching  bool
	ended      bool
	workers    map[string]engine.WorkerStatus
	reason     engine.StopReason
	sentence   string
	startedAt  time.Time // of the run
	placedAt   time.Time
	loadAt     time.Time // all workers were ready and told so; warm-up begins
	measureAt  time.Time
	measureEnd time.Time
	stoppedAt  time.Time
	toldAt     time.Time // of the STOP that holds: a run that ends by itself can still be cancelled
	endedAt    time.Time // terminal
	// elastic runs go on without a worker that died, and with others that join.
	elastic bool
	ran     map[string]bool // the run workers that have carried load
	// search is nil in a run that does not look for the limit.
	search *searching
	// stages are those of the workload, stage is how many of them have begun.
	stages []engine.Stage
	stage  int
	// told: the run workers know of the measurement, and measureAt is when they heard.
	told bool
}

// newCore is a run that has just become RUNNING, with the ids of its run workers.
func newCore(w engine.Workload, workers []string) *core {
	c := &core{warmup: w.Warmup(), duration: w.Duration(), expected: len(workers), stages: w.Stages,
		drain:  func(r engine.StopReason) time.Duration { return control.DrainOf(w, r) },
		status: engine.StatusRunning, phase: engine.PhasePreparing, workers: map[string]engine.WorkerStatus{}, ran: map[string]bool{}}
	for _, id := range workers {
		c.workers[id] = engine.WorkerStarting
	}
	return c
}

// What happens to a run.
type (
	hapBegun struct{}
	// hapPrepared comes with the highest level that a search may try.
	hapPrepared      struct{ most float64 }
	hapPrepareFailed struct{ message string }
	hapWorker        struct {
		id      string
		status  engine.WorkerStatus
		message string
	}
	// hapJoined: a run worker was placed while the run goes on.
	hapJoined struct{ id string }
	// hapLost: the workers have not been heard of for too long.
	hapLost struct{ ids []string }
	hapStop struct {
		reason   engine.StopReason
		sentence string
		by       string
	}
	hapTick struct{}
	// hapFinished: the figures are there; enrich: the history is to be asked.
	hapFinished struct{ enrich bool }
	hapEnriched struct{}
)

// What is to be done about it.
type (
	actPrepare       struct{}
	actCancelPrepare struct{}
	actPlace         struct{}
	// actChange is a transition with its events. Urgent events go to the workers
	// at once, the store follows.
	actChange struct {
		t      store.Transition
		urgent bool
	}
	// actLost marks workers dead that did not leave in time.
	actLost struct {
		ids []string
		why string
	}
	// actTargets tells the run workers their first targets.
	actTargets struct{}
	// actStage: the stage of that index has begun, at that time.
	actStage struct {
		index int
		at    time.Time
	}
	actFinish struct{}
	actEnrich struct{}
	actEnd    struct{}
)

func (c *core) apply(now time.Time, happening any) []any {
	switch h := happening.(type) {
	case hapBegun:
		c.startedAt, c.preparing = now, true
		return []any{actPrepare{}}
	case hapPrepared:
		if c.search != nil {
			c.search.bound(h.most)
		}
		return c.prepared(now)
	case hapJoined:
		if c.placed && !c.stopping() {
			c.workers[h.id] = engine.WorkerStarting
			c.expected++
		}
		return nil
	case hapMeasured:
		return c.measured(now, h)
	case hapAgain:
		return c.again(now, h.number)
	case hapPrepareFailed:
		c.preparing = false
		out := c.stop(now, engine.StopSetupFailure, "Set-up failed: "+h.message, "")
		return append(out, c.leave(now)...)
	case hapWorker:
		return c.worker(now, h)
	case hapLost:
		return c.lost(now, h.ids)
	case hapStop:
		out := c.stop(now, h.reason, h.sentence, h.by)
		return append(out, c.leave(now)...)
	case hapTick:
		return c.tick(now)
	case hapFinished:
		if !c.finishing || c.enriching {
			return nil
		}
		if h.enrich {
			c.enriching = true
			return []any{actEnrich{}}
		}
		return c.end()
	case hapEnriched:
		if !c.enriching {
			return nil
		}
		return c.end()
	default:
		panic(fmt.Sprintf("orchestrator: unknown happening %T", happening))
	}
}

// end takes the last step of a terminal run.
func (c *core) end() []any {
	if c.ended {
		return nil
	}
	c.ended, c.phase = true, engine.PhaseNone
	none := engine.PhaseNone
	return []any{actChange{t: store.Transition{From: []engine.Status{c.status}, Phase: &none}}, actEnd{}}
}

func (c *core) stopping() bool { return c.reason != "" }

func (c *core) prepared(now time.Time) []any {
	if !c.preparing {
		return nil
	}
	c.preparing = false
	if c.stopping() {
		return c.leave(now)
	}
	c.placed, c.placedAt = true, now
	return []any{actPlace{}}
}

func (c *core) worker(now time.Time, h hapWorker) []any {
	if !c.placed || c.status.Terminal() || c.workers[h.id].Ended() {
		return nil
	}
	c.workers[h.id] = h.status
	c.ran[h.id] = c.ran[h.id] || h.status == engine.WorkerRunning
	var out []any
	switch {
	case h.status == engine.WorkerFailed && c.elastic && c.started && !c.ran[h.id] && !c.left():
		// One that could not join takes no load with it: its connections are missing, and judged as that.
	case h.status == engine.WorkerFailed && c.started:
		out = c.stop(now, engine.StopWorkerFailure, "Worker failure: "+h.message, "")
	case h.status == engine.WorkerFailed:
		out = c.stop(now, engine.StopSetupFailure, "Set-up failed: "+h.message, "")
	case h.status == engine.WorkerReady && !c.started && !c.stopping() && c.count(engine.WorkerReady) == c.expected:
		out = c.start(now)
	}
	if c.left() && c.started {
		// Without a STOP, workers leave because the workload has ended.
		out = append(out, c.stop(now, engine.StopDurationElapsed, "", "")...)
	}
	return append(out, c.leave(now)...)
}

func (c *core) lost(now time.Time, ids []string) []any {
	n := 0
	for _, id := range ids {
		if !c.workers[id].Ended() {
			c.workers[id] = engine.WorkerDead
			n++
		}
	}
	if n == 0 || c.status.Terminal() {
		return nil
	}
	if c.elastic && c.started && !c.left() {
		// The others go on, in a run that is no longer valid.
		return c.leave(now)
	}
	out := c.stop(now, engine.StopWorkerFailure, fmt.Sprintf("Worker failure: %d worker(s) stopped responding", n), "")
	return append(out, c.leave(now)...)
}

func (c *core) count(s engine.WorkerStatus) int {
	n := 0
	for _, have := range c.workers {
		if have == s {
			n++
		}
	}
	return n
}

// left reports whether all placed workers have ended.
func (c *core) left() bool {
	ended := 0
	for _, s := range c.workers {
		if s.Ended() {
			ended++
		}
	}
	return !c.placed || ended == c.expected
}

// missing are the ids of workers that have not ended, sorted.
func (c *core) missing() []string {
	var ids []string
	for id, s := range c.workers {
		if !s.Ended() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// start begins the load on all workers, in the run's first phase.
func (c *core) start(now time.Time) []any {
	c.started, c.loadAt = true, now
	t := store.Transition{From: []engine.Status{engine.StatusRunning}, WarmupStartTime: now}
	c.phase = engine.PhaseWarmup
	if c.warmup <= 0 {
		c.phase, c.measureAt, t.WarmupEndTime = engine.PhaseMeasurement, now, now
	}
	at := engine.At(now)
	phase := c.phase
	t.Phase = &phase
	t.Events = []engine.Event{
		{Type: engine.EventStart, Data: engine.EventData{Scope: engine.ScopeRun, ExpectedWorkers: c.expected, Phase: phase}},
		{Type: engine.EventSetPhase, Data: engine.EventData{Scope: engine.ScopeRun, Phase: phase, EffectiveAt: &at}},
	}
	out := []any{actChange{t: t}, actTargets{}}
	if phase == engine.PhaseMeasurement {
		out = append(out, c.nextStep(now)...)
	}
	return out
}

// border is when the next stage begins; ok is false when none follows.
func (c *core) border() (at time.Time, ok bool) {
	if c.phase != engine.PhaseMeasurement || !c.told || c.stage >= len(c.stages) {
		return time.Time{}, false
	}
	at = c.measureAt
	for _, s := range c.stages[:c.stage] {
		at = at.Add(s.Duration())
	}
	return at, true
}

// nextStage begins the stages whose time has come.
func (c *core) nextStage(now time.Time) (out []any) {
	for {
		at, ok := c.border()
		if !ok || now.Before(at) {
			return out
		}
		out = append(out, actStage{index: c.stage, at: at})
		c.stage++
	}
}

func (c *core) tick(now time.Time) []any {
	switch {
	case c.status.Terminal():
		return nil
	case c.stopping():
		if ids := c.missing(); len(ids) > 0 && now.After(c.patience()) {
			for _, id := range ids {
				c.workers[id] = engine.WorkerDead
			}
			out := []any{actLost{ids: ids, why: "did not end in time after STOP"}}
			out = append(out, c.stop(now, engine.StopWorkerFailure, fmt.Sprintf("Worker failure: %d worker(s) stopped responding", len(ids)), "")...)
			return append(out, c.leave(now)...)
		}
		return c.leave(now)
	case c.placed && !c.started && now.Sub(c.placedAt) >= control.StartLimit:
		var late []string
		for _, id := range c.missing() {
			if c.workers[id] != engine.WorkerReady {
				late = append(late, id)
			}
		}
		return c.stop(now, engine.StopSetupFailure, fmt.Sprintf("Set-up failed: %s not ready within %.0f s", strings.Join(late, ", "), control.StartLimit.Seconds()), "")
	case c.phase == engine.PhaseWarmup && now.Sub(c.loadAt) >= c.warmup:
		c.phase, c.measureAt = engine.PhaseMeasurement, now
		phase, at := c.phase, engine.At(now)
		out := []any{actChange{t: store.Transition{From: []engine.Status{engine.StatusRunning}, Phase: &phase, WarmupEndTime: now,
			Events: []engine.Event{{Type: engine.EventSetPhase, Data: engine.EventData{Scope: engine.ScopeRun, Phase: phase, EffectiveAt: &at}}}}}}
		return append(out, c.nextStep(now)...)
	case c.phase == engine.PhaseMeasurement && now.Sub(c.measureAt) >= c.duration:
		return append(c.stop(now, engine.StopDurationElapsed, "", ""), c.leave(now)...)
	}
	return append(c.nextStage(now), c.searchTick(now)...)
}

// entered notes that the workers were told of a phase at now. Its time counts
// from here and not from the decision: what the store took must not shorten it.
func (c *core) entered(now time.Time, phase engine.Phase) {
	switch {
	case c.stopping() || phase != c.phase:
	case phase == engine.PhaseWarmup:
		c.loadAt = now
	case phase == engine.PhaseMeasurement:
		c.measureAt, c.told = now, true
	}
}

// due is the next moment at which tick decides something by time, zero when none.
func (c *core) due() time.Time {
	switch {
	case c.status.Terminal():
		return time.Time{}
	case c.stopping():
		return c.patience().Add(time.Millisecond)
	case c.placed && !c.started:
		return c.placedAt.Add(control.StartLimit)
	case c.phase == engine.PhaseWarmup:
		return c.loadAt.Add(c.warmup)
	case c.phase == engine.PhaseMeasurement:
		end := c.measureAt.Add(c.duration)
		if border, ok := c.border(); ok && border.Before(end) {
			end = border
		}
		if s := c.search; s != nil && s.number > 0 && !s.asked && s.late().Before(end) {
			return s.late()
		}
		return end
	}
	return time.Time{}
}

// patience is until when the run workers may take to leave after STOP.
func (c *core) patience() time.Time { return c.toldAt.Add(c.drain(c.reason) + drainGrace) }

// stop ends the run for a reason. The first one stays, except that a run that
// ends by itself can still be cancelled, or lose a worker.
func (c *core) stop(now time.Time, reason engine.StopReason, sentence, by string) []any {
	next := reason.Draining()
	if c.status.Terminal() || !c.status.CanBecome(next) {
		return nil
	}
	var out []any
	if c.preparing {
		out = append(out, actCancelPrepare{})
	}
	t := store.Transition{From: []engine.Status{c.status}, To: next, StopReason: reason, CancellationReason: sentence}
	c.status, c.reason, c.sentence, c.toldAt = next, reason, sentence, now
	if c.stoppedAt.IsZero() {
		c.stoppedAt = now
		c.endSearch(reason, now)
		if c.phase == engine.PhaseMeasurement {
			c.measureEnd, t.MeasurementEndTime = now, now
		}
		c.phase = engine.PhaseCooldown
		phase := c.phase
		t.Phase = &phase
	}
	t.Events = []engine.Event{{Type: engine.EventStop, Data: engine.EventData{Scope: engine.ScopeRun, Reason: string(reason), Detail: sentence,
		InitiatedBy: by, DrainTimeoutSeconds: c.drain(reason).Seconds()}}}
	return append(out, actChange{t: t, urgent: true})
}

// leave ends a stopping run whose workers have all left.
func (c *core) leave(now time.Time) []any {
	if !c.stopping() || c.preparing || c.status.Terminal() || !c.left() {
		return nil
	}
	from := c.status
	c.status, c.phase, c.endedAt, c.finishing = c.reason.Outcome(), engine.PhaseProcessing, now, true
	phase := c.phase
	return []any{actChange{t: store.Transition{From: []engine.Status{from}, To: c.status, Phase: &phase, EndTime: now}}, actFinish{}}
}
