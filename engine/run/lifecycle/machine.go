package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// drainGrace is what a run worker gets beyond its drain limit to cancel, flush and
// report, before it counts as dead.
const drainGrace = 10 * time.Second

// Machine decides the life of one run.
//
//	state                 event                        actions
//	RUNNING/PREPARING     (begun)                      prepare
//	                      prepared                     place
//	                      all workers READY            START, SET_PHASE
//	                      120 s since place            stop(setup_failure)
//	RUNNING/WARMUP        warm-up over                 SET_PHASE MEASUREMENT
//	RUNNING/MEASUREMENT   a stage begins               targets
//	                      duration over                stop(duration_elapsed)
//	                      a search: see Search
//	RUNNING               user, guardrail, lost worker stop(reason)
//	STOPPING              user, lost worker            → CANCELLING
//	STOPPING, CANCELLING  all workers left             → terminal/PROCESSING, finish
//	terminal/PROCESSING   finished                     enrich, or → phase none, end
//	                      enriched                     → phase none, end
//
// A run starts with all of its workers or not at all. A FIXED one fails when it
// loses one; others go on with those that are left, and with those that join.
type Machine struct {
	plan     Plan
	expected int // run workers that have not been sent away

	status     engine.Status
	phase      engine.Phase
	preparing  bool
	placed     bool
	started    bool
	finishing  bool
	enriching  bool
	ended      bool
	workers    map[string]engine.WorkerStatus
	carried    map[string]bool // the run workers that have carried load
	reason     engine.StopReason
	message    string
	placedAt   time.Time
	loadAt     time.Time // all run workers were ready and told so; warm-up begins
	startAt    time.Time // when START has them begin; zero is at once
	measureAt  time.Time
	stoppedAt  time.Time
	stopSentAt time.Time // of the STOP that holds: a run that ends by itself can still be cancelled
	// stage is how many stages have begun.
	stage int
	// measurementSent: the run workers know of the measurement, and measureAt is when they heard.
	measurementSent bool
}

// Plan is what a run is to do, as far as its life depends on it.
type Plan struct {
	// Workers are the ids of the run workers that it begins with.
	Workers []string
	// Duration is that of the measurement, or the longest time of a search.
	Warmup, Duration time.Duration
	// Stages are those of the workload; each one that begins is an action.
	Stages []engine.Stage
	// Elastic runs go on without a run worker that died, and with others that join.
	Elastic bool
	// StartLimit is how long placed run workers may take until all are ready.
	StartLimit time.Duration
	// Drain is how long operations in flight may take after a STOP for a reason.
	Drain func(engine.StopReason) time.Duration
	// Search is nil in a run that does not look for the limit.
	Search *Search
}

// New is a run that has just become RUNNING.
func New(p Plan) *Machine {
	m := &Machine{plan: p, expected: len(p.Workers), status: engine.StatusRunning, phase: engine.PhasePreparing,
		workers: map[string]engine.WorkerStatus{}, carried: map[string]bool{}}
	for _, id := range p.Workers {
		m.workers[id] = engine.WorkerStarting
	}
	return m
}

// Status is the run's status.
func (m *Machine) Status() engine.Status { return m.status }

// Phase is the run's phase.
func (m *Machine) Phase() engine.Phase { return m.phase }

// Preparing reports whether the target is being made ready.
func (m *Machine) Preparing() bool { return m.preparing }

// Placed reports whether the run workers have been given to nodes.
func (m *Machine) Placed() bool { return m.placed }

// Started reports whether the run workers have been told to begin.
func (m *Machine) Started() bool { return m.started }

// StartAt is when START has the run workers begin; zero where it has them begin at once, and in
// a run that another process has started, by a clock of its own.
func (m *Machine) StartAt() time.Time { return m.startAt }

// Ended reports whether nothing is left to do.
func (m *Machine) Ended() bool { return m.ended }

// Stopping reports whether the run has been told to end.
func (m *Machine) Stopping() bool { return m.reason != "" }

// StopReason is why the run ends, empty while it goes on.
func (m *Machine) StopReason() engine.StopReason { return m.reason }

// MeasureAt is when the measurement began, zero before it.
func (m *Machine) MeasureAt() time.Time { return m.measureAt }

// PlannedEnd is when the load ends by plan, or about when before the measurement; zero before START and after a STOP.
func (m *Machine) PlannedEnd() time.Time {
	switch {
	case !m.started || m.Stopping():
		return time.Time{}
	case m.phase == engine.PhaseMeasurement:
		return m.measureAt.Add(m.plan.Duration)
	}
	return m.loadAt.Add(m.plan.Warmup + m.plan.Duration)
}

// LoadEndOf is when the load of a run worker ends by plan that was heard of last at a time: it does not know of a STOP
// after that. Zero is not known.
func (m *Machine) LoadEndOf(heard time.Time) time.Time {
	if m.measureAt.IsZero() || heard.Before(m.measureAt) {
		return time.Time{}
	}
	return m.measureAt.Add(m.plan.Duration)
}

// CarriedLoad reports whether a run worker has carried load.
func (m *Machine) CarriedLoad(id string) bool { return m.carried[id] }

// Drain is how long operations in flight may take after a STOP for a reason.
func (m *Machine) Drain(r engine.StopReason) time.Duration { return m.plan.Drain(r) }

// Search is the run's search for the limit, nil without one.
func (m *Machine) Search() *Search { return m.plan.Search }

// Apply takes what happened at now and returns what is to be done, in order.
func (m *Machine) Apply(now time.Time, event Event) []Action {
	switch h := event.(type) {
	case RunStarted:
		m.preparing = true
		return []Action{Prepare{}}
	case RunResumed:
		return m.onResumed(now)
	case Prepared:
		if m.plan.Search != nil {
			m.plan.Search.setMaxLevel(h.MaxLevel)
		}
		return m.onPrepared(now)
	case WorkerJoined:
		if m.placed && !m.Stopping() {
			m.workers[h.ID] = engine.WorkerStarting
			m.expected++
		}
		return nil
	case StepMeasured:
		return m.onMeasured(now, h)
	case StepInvalid:
		return m.repeatStep(now, h.Number)
	case PrepareFailed:
		m.preparing = false
		out := m.stop(now, engine.StopSetupFailure, "Set-up failed: "+h.Message, "")
		return append(out, m.endWhenLeft(now)...)
	case WorkerChanged:
		return m.onWorkerChanged(now, h)
	case WorkersLost:
		return m.onWorkersLost(now, h)
	case StopRequested:
		out := m.stop(now, h.Reason, h.Message, h.By)
		return append(out, m.endWhenLeft(now)...)
	case Tick:
		return m.tick(now)
	case FiguresReady:
		if !m.finishing || m.enriching {
			return nil
		}
		if h.Enrich {
			m.enriching = true
			return []Action{StartEnrichment{}}
		}
		return m.end()
	case EnrichmentDone:
		if !m.enriching {
			return nil
		}
		return m.end()
	default:
		panic(fmt.Sprintf("lifecycle: unknown event %T", event))
	}
}

// end takes the last step of a terminal run.
func (m *Machine) end() []Action {
	if m.ended {
		return nil
	}
	m.ended, m.phase = true, engine.PhaseNone
	none := engine.PhaseNone
	return []Action{Change{From: m.status, Phase: &none}, End{}}
}

func (m *Machine) onPrepared(now time.Time) []Action {
	if !m.preparing {
		return nil
	}
	m.preparing = false
	if m.Stopping() {
		return m.endWhenLeft(now)
	}
	m.placed, m.placedAt = true, now
	return []Action{AssignWorkers{}}
}

func (m *Machine) onWorkerChanged(now time.Time, h WorkerChanged) []Action {
	if !m.placed || m.status.Terminal() || m.workers[h.ID].Ended() {
		return nil
	}
	m.workers[h.ID] = h.Status
	m.carried[h.ID] = m.carried[h.ID] || h.Status == engine.WorkerRunning
	var out []Action
	switch {
	case h.Status == engine.WorkerFailed && m.plan.Elastic && m.started && !m.carried[h.ID] && !m.allLeft():
		// One that could not join takes no load with it: its connections are missing, and judged as that.
	case h.Status == engine.WorkerFailed && m.started:
		out = m.stop(now, engine.StopWorkerFailure, "Worker failure: "+h.Message, "")
	case h.Status == engine.WorkerFailed:
		out = m.stop(now, engine.StopSetupFailure, "Set-up failed: "+h.Message, "")
	case h.Status == engine.WorkerReady && !m.started && !m.Stopping() && m.count(engine.WorkerReady) == m.expected:
		out = m.start(now, h.StartIn)
	}
	if m.allLeft() && m.started {
		// Without a STOP, workers leave because the workload has ended.
		out = append(out, m.stop(now, engine.StopDurationElapsed, "", "")...)
	}
	return append(out, m.endWhenLeft(now)...)
}

func (m *Machine) onWorkersLost(now time.Time, h WorkersLost) []Action {
	n := 0
	for _, id := range h.IDs {
		if !m.workers[id].Ended() {
			m.workers[id] = engine.WorkerDead
			n++
		}
	}
	if n == 0 || m.status.Terminal() {
		return nil
	}
	if m.goesOnWithoutLost() {
		return m.endWhenLeft(now)
	}
	why := h.Message
	if why == "" {
		why = fmt.Sprintf("%d worker(s) stopped responding", n)
	}
	out := m.stop(now, engine.StopWorkerFailure, "Worker failure: "+why, "")
	return append(out, m.endWhenLeft(now)...)
}

// goesOnWithoutLost reports whether the run is not failed by run workers that were lost, and is no longer valid: others
// of an elastic run go on, or have borne the load to the planned end of the run.
func (m *Machine) goesOnWithoutLost() bool {
	return m.plan.Elastic && m.started &&
		(!m.allLeft() || m.reason == engine.StopDurationElapsed && m.count(engine.WorkerCompleted) > 0)
}

func (m *Machine) count(s engine.WorkerStatus) int {
	n := 0
	for _, have := range m.workers {
		if have == s {
			n++
		}
	}
	return n
}

// allLeft reports whether all placed workers have ended.
func (m *Machine) allLeft() bool {
	ended := 0
	for _, s := range m.workers {
		if s.Ended() {
			ended++
		}
	}
	return !m.placed || ended == m.expected
}

// missing are the ids of workers that have not ended, sorted.
func (m *Machine) missing() []string {
	var ids []string
	for id, s := range m.workers {
		if !s.Ended() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// start begins the load on all workers, in the run's first phase: at an instant that lies
// ahead, or as soon as each hears of it.
func (m *Machine) start(now time.Time, in time.Duration) []Action {
	begin := now
	if in > 0 {
		begin = now.Add(in).Truncate(time.Millisecond) // as it is stored and sent
	}
	m.started, m.loadAt = true, begin
	t := Change{From: engine.StatusRunning, WarmupStartTime: begin}
	m.phase = engine.PhaseWarmup
	if m.plan.Warmup <= 0 {
		m.phase, m.measureAt, t.WarmupEndTime = engine.PhaseMeasurement, begin, begin
	}
	at := engine.At(begin)
	phase := m.phase
	t.Phase = &phase
	first := engine.EventData{Scope: engine.ScopeRun, ExpectedWorkers: m.expected, Phase: phase}
	if begin.After(now) {
		m.startAt, first.EffectiveAt = begin, &at
	}
	t.Events = []engine.Event{
		{Type: engine.EventStart, Data: first},
		{Type: engine.EventSetPhase, Data: engine.EventData{Scope: engine.ScopeRun, Phase: phase, EffectiveAt: &at}},
	}
	out := []Action{t, SendTargets{}}
	if phase == engine.PhaseMeasurement {
		out = append(out, m.nextStep(now)...)
	}
	return out
}

// nextStageAt is when the next stage begins; ok is false when none follows.
func (m *Machine) nextStageAt() (at time.Time, ok bool) {
	if m.phase != engine.PhaseMeasurement || !m.measurementSent || m.stage >= len(m.plan.Stages) {
		return time.Time{}, false
	}
	at = m.measureAt
	for _, s := range m.plan.Stages[:m.stage] {
		at = at.Add(s.Duration())
	}
	return at, true
}

// nextStage begins the stages whose time has come.
func (m *Machine) nextStage(now time.Time) (out []Action) {
	for {
		at, ok := m.nextStageAt()
		if !ok || now.Before(at) {
			return out
		}
		out = append(out, BeginStage{Index: m.stage, At: at})
		m.stage++
	}
}

func (m *Machine) tick(now time.Time) []Action {
	switch {
	case m.status.Terminal():
		return nil
	case m.Stopping():
		if ids := m.missing(); len(ids) > 0 && now.After(m.drainDeadline()) {
			for _, id := range ids {
				m.workers[id] = engine.WorkerDead
			}
			out := []Action{MarkLost{IDs: ids, Reason: "did not end in time after STOP"}}
			if m.goesOnWithoutLost() {
				return append(out, m.endWhenLeft(now)...)
			}
			out = append(out, m.stop(now, engine.StopWorkerFailure,
				fmt.Sprintf("Worker failure: %d worker(s) stopped responding", len(ids)), "")...)
			return append(out, m.endWhenLeft(now)...)
		}
		return m.endWhenLeft(now)
	case m.placed && !m.started && now.Sub(m.placedAt) >= m.plan.StartLimit:
		var late []string
		for _, id := range m.missing() {
			if m.workers[id] != engine.WorkerReady {
				late = append(late, id)
			}
		}
		return m.stop(now, engine.StopSetupFailure,
			fmt.Sprintf("Set-up failed: %s not ready within %.0f s", strings.Join(late, ", "), m.plan.StartLimit.Seconds()), "")
	case m.phase == engine.PhaseWarmup && now.Sub(m.loadAt) >= m.plan.Warmup:
		m.phase, m.measureAt = engine.PhaseMeasurement, now
		phase, at := m.phase, engine.At(now)
		out := []Action{Change{From: engine.StatusRunning, Phase: &phase, WarmupEndTime: now,
			Events: []engine.Event{{Type: engine.EventSetPhase,
				Data: engine.EventData{Scope: engine.ScopeRun, Phase: phase, EffectiveAt: &at}}}}}
		return append(out, m.nextStep(now)...)
	case m.phase == engine.PhaseMeasurement && now.Sub(m.measureAt) >= m.plan.Duration:
		return append(m.stop(now, engine.StopDurationElapsed, "", ""), m.endWhenLeft(now)...)
	}
	return append(m.nextStage(now), m.searchTick(now)...)
}

// PhaseSent notes that the workers were told of a phase at now. Its time counts
// from here and not from the decision: what the store took must not shorten it. The load
// begins no earlier than START says.
func (m *Machine) PhaseSent(now time.Time, phase engine.Phase) {
	switch {
	case m.Stopping() || phase != m.phase:
	case phase == engine.PhaseWarmup:
		m.loadAt = Later(now, m.startAt)
	case phase == engine.PhaseMeasurement:
		m.measureAt, m.measurementSent = Later(now, m.startAt), true
	}
}

// Due is the next moment at which tick decides something by time, zero when none.
func (m *Machine) Due() time.Time {
	switch {
	case m.status.Terminal():
		return time.Time{}
	case m.Stopping():
		return m.drainDeadline().Add(time.Millisecond)
	case m.placed && !m.started:
		return m.placedAt.Add(m.plan.StartLimit)
	case m.phase == engine.PhaseWarmup:
		return m.loadAt.Add(m.plan.Warmup)
	case m.phase == engine.PhaseMeasurement:
		end := m.measureAt.Add(m.plan.Duration)
		if border, ok := m.nextStageAt(); ok && border.Before(end) {
			end = border
		}
		if s := m.plan.Search; s != nil && s.number > 0 && !s.measureRequested && s.deadline().Before(end) {
			return s.deadline()
		}
		return end
	}
	return time.Time{}
}

// drainDeadline is until when the run workers may take to leave after STOP.
func (m *Machine) drainDeadline() time.Time {
	return m.stopSentAt.Add(m.plan.Drain(m.reason) + drainGrace)
}

// stop ends the run for a reason. The first one stays, except that a run that
// ends by itself can still be cancelled, or lose a worker.
func (m *Machine) stop(now time.Time, reason engine.StopReason, sentence, by string) []Action {
	next := reason.Draining()
	if m.status.Terminal() || !m.status.CanBecome(next) {
		return nil
	}
	var out []Action
	if m.preparing {
		out = append(out, CancelPrepare{})
	}
	t := Change{From: m.status, To: next, StopReason: reason, CancellationReason: sentence, Urgent: true}
	m.status, m.reason, m.message, m.stopSentAt = next, reason, sentence, now
	if m.stoppedAt.IsZero() {
		m.stoppedAt = now
		m.endSearch(reason, now)
		if m.phase == engine.PhaseMeasurement {
			t.MeasurementEndTime = now
		}
		m.phase = engine.PhaseCooldown
		phase := m.phase
		t.Phase = &phase
	}
	t.Events = []engine.Event{{Type: engine.EventStop,
		Data: engine.EventData{Scope: engine.ScopeRun, Reason: string(reason), Detail: sentence,
			InitiatedBy: by, DrainTimeoutSeconds: m.plan.Drain(reason).Seconds()}}}
	return append(out, t)
}

// endWhenLeft ends a stopping run whose workers have all left.
func (m *Machine) endWhenLeft(now time.Time) []Action {
	if !m.Stopping() || m.preparing || m.status.Terminal() || !m.allLeft() {
		return nil
	}
	from := m.status
	m.status, m.phase, m.finishing = m.reason.Outcome(), engine.PhaseProcessing, true
	phase := m.phase
	return []Action{Change{From: from, To: m.status, Phase: &phase, EndTime: now}, ComputeFigures{}}
}

// MeasuredFor is the time since the measurement began, less than 0 before it.
func (m *Machine) MeasuredFor(now time.Time) time.Duration {
	if m.phase == engine.PhaseWarmup {
		return min(now.Sub(m.loadAt.Add(m.plan.Warmup)), 0)
	}
	return now.Sub(m.measureAt)
}

// ExtendDeadlines gives the run workers the time back in which they could not be
// heard, because this process did not run. The phases of the load go on: they
// are time on the target.
func (m *Machine) ExtendDeadlines(gap time.Duration) {
	if !m.placedAt.IsZero() {
		m.placedAt = m.placedAt.Add(gap)
	}
	if !m.stoppedAt.IsZero() {
		m.stoppedAt, m.stopSentAt = m.stoppedAt.Add(gap), m.stopSentAt.Add(gap)
	}
}
