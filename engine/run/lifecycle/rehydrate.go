package lifecycle

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/findmax"
)

// StoredRun is what the store keeps of the life of a run, whose process has ended.
type StoredRun struct {
	Run engine.Run
	// Events are all of the run's, in order.
	Events []engine.Event
	// Workers are the run workers as they were heard of last.
	Workers map[string]engine.WorkerStatus
	// LastSeen is when the run was heard of last.
	LastSeen time.Time
	// Search is the state of its search with the judged steps; nil without one.
	Search *engine.FindMaxState
}

// Rehydrate is the run as it was when the last of it was stored, for who goes on with it.
// why says why nobody can, empty otherwise: what was under way before the load began, and
// after it ended, was in the memory of the process.
func Rehydrate(p Plan, s StoredRun) (m *Machine, why string) {
	run := s.Run
	switch {
	case !run.Status.Live():
		return nil, "its load is over"
	case run.WarmupStartTime.IsZero():
		return nil, "its load had not begun"
	case p.Search != nil && s.Search == nil:
		return nil, "its search has left no state"
	}
	m = New(p)
	m.expected = len(s.Workers)
	m.workers = make(map[string]engine.WorkerStatus, len(s.Workers))
	for id, status := range s.Workers {
		m.workers[id] = status
		switch status {
		case engine.WorkerRunning, engine.WorkerDraining, engine.WorkerCompleted:
			m.carried[id] = true
		}
	}
	m.status, m.phase = run.Status, run.Phase
	m.placedAt, m.loadAt = run.WarmupStartTime.Time, run.WarmupStartTime.Time
	m.placed, m.started = true, true
	m.measureAt = run.WarmupEndTime.Time
	m.measurementSent = m.phase == engine.PhaseMeasurement
	m.reason = run.StopReason
	if run.CancellationReason != nil {
		m.message = *run.CancellationReason
	}
	m.restoreStops(s.Events)
	for {
		at, ok := m.nextStageAt()
		if !ok || s.LastSeen.Before(at) {
			break
		}
		m.stage++
	}
	if p.Search != nil {
		p.Search.restore(s)
		if m.Stopping() {
			m.endSearch(m.reason, m.stoppedAt)
		}
	}
	return m, ""
}

// restoreStops takes the times of the STOPs of the whole run: the first ended the load, the last
// is the one that holds.
func (m *Machine) restoreStops(events []engine.Event) {
	for _, e := range events {
		if e.Type != engine.EventStop || e.Data.Scope != engine.ScopeRun {
			continue
		}
		if m.stoppedAt.IsZero() {
			m.stoppedAt = e.CreatedAt.Time
		}
		m.stopSentAt = e.CreatedAt.Time
	}
}

// restore makes the search that which has judged the steps of its state. Its step under way is
// one that nobody measures: RunResumed has it begun anew.
func (s *Search) restore(from StoredRun) {
	s.series = findmax.ReplaySeries(searchConfig(s.config, from.Search.UpperBound), s.repeat, from.Search.Steps)
	s.number, s.beganAt = from.Search.CurrentStep, from.LastSeen
	// An event may have been stored, and the state of its step not.
	for _, e := range from.Events {
		s.number = max(s.number, e.Data.StepNumber)
	}
}

// onResumed goes on with a run whose process has ended: the step of a search that was under
// way is measured once more, under the next number. Who is to leave is told so again.
func (m *Machine) onResumed(now time.Time) []Action {
	if m.Stopping() {
		m.stopSentAt = now
		return nil
	}
	if m.plan.Search == nil || m.phase != engine.PhaseMeasurement {
		return nil
	}
	return m.nextStep(now)
}

// AdjustTimes takes when the load of a run that was gone on with began, and when its measurement did, as the run
// workers have heard of it: later than it was decided, or not before somebody went on. Zero says nothing.
func (m *Machine) AdjustTimes(began, measured time.Time) {
	m.loadAt = Later(m.loadAt, began)
	if m.phase == engine.PhaseMeasurement {
		m.measureAt = Later(m.measureAt, measured)
	}
}
