package engine

import "encoding/json"

// EventType is the type of a control event.
type EventType string

// The control events of a run.
const (
	EventStart           EventType = "START"
	EventStop            EventType = "STOP"
	EventSetPhase        EventType = "SET_PHASE"
	EventSetWorkerTarget EventType = "SET_WORKER_TARGET"
	// EventLoadChanged: a user has changed the load of the whole run; the targets that follow are events of their own.
	EventLoadChanged EventType = "LOAD_CHANGED"
)

// EventScope says whom an event is for.
type EventScope string

// The scopes of an event.
const (
	ScopeRun         EventScope = "RUN"
	ScopeWorkerGroup EventScope = "WORKER_GROUP"
	ScopeWorker      EventScope = "WORKER"
)

// The reasons of a SET_WORKER_TARGET.
const (
	// TargetInitial is the first target of a run worker.
	TargetInitial = "initial"
	// TargetStepAdvance belongs to the next step of a search, TargetStage to a stage of the workload.
	TargetStepAdvance = "step_advance"
	TargetStage       = "stage"
	// TargetRedistribute: others have joined or left, and the load is shared anew.
	TargetRedistribute = "redistribute"
	// TargetRetire is the last target of a run worker that is not needed any more.
	TargetRetire = "retire"
	// TargetChange: a user has changed the load while the run goes on.
	TargetChange = "change"
)

// EventData is the body of an event; fields that a type does not use stay empty.
// Targets are absolute, and those of one run worker: TargetQPS is its own rate.
type EventData struct {
	Scope               EventScope `json:"scope"`
	WorkerID            string     `json:"worker_id,omitempty"`
	WorkerGroupID       *int       `json:"worker_group_id,omitempty"`
	ExpectedWorkers     int        `json:"expected_workers,omitempty"`
	Phase               Phase      `json:"phase,omitempty"`
	EffectiveAt         *Time      `json:"effective_at,omitempty"`
	Reason              string     `json:"reason,omitempty"`
	Detail              string     `json:"detail,omitempty"`
	InitiatedBy         string     `json:"initiated_by,omitempty"`
	DrainTimeoutSeconds float64    `json:"drain_timeout_seconds,omitempty"`
	TargetConnections   *int       `json:"target_connections,omitempty"`
	TargetQPS           *float64   `json:"target_qps,omitempty"`
	// OldConnections and OldQPS are what a user has changed in the whole run.
	OldConnections *int     `json:"old_connections,omitempty"`
	OldQPS         *float64 `json:"old_qps,omitempty"`
	StepID         string   `json:"step_id,omitempty"`
	StepNumber     int      `json:"step_number,omitempty"`
	// SettleSeconds of a step pass before StepSeconds of it are measured.
	SettleSeconds float64 `json:"settle_seconds,omitempty"`
	StepSeconds   float64 `json:"step_seconds,omitempty"`
	// RampSeconds is how long the change takes; a SET_WORKER_TARGET always tells it.
	RampSeconds float64 `json:"ramp_seconds,omitempty"`
}

// MarshalJSON writes ramp_seconds with every target, also when it is 0.
func (d EventData) MarshalJSON() ([]byte, error) {
	type plain EventData
	out := struct {
		plain
		RampSeconds *float64 `json:"ramp_seconds,omitempty"`
	}{plain: plain(d)}
	if d.RampSeconds != 0 || d.TargetConnections != nil || d.TargetQPS != nil {
		out.RampSeconds = &d.RampSeconds
	}
	return json.Marshal(out)
}

// Event is one entry of a run's control stream. It is persisted before it is
// sent; SequenceID rises by one per run and a worker ignores what it has seen.
type Event struct {
	EventID    string    `json:"event_id"`
	RunID      string    `json:"run_id"`
	Type       EventType `json:"event_type"`
	SequenceID int64     `json:"sequence_id"`
	Data       EventData `json:"event_data"`
	CreatedAt  Time      `json:"created_at"`
}

// For reports whether the event addresses the given run worker.
func (e Event) For(workerID string, group int) bool {
	switch e.Data.Scope {
	case ScopeWorker:
		return e.Data.WorkerID == workerID
	case ScopeWorkerGroup:
		return e.Data.WorkerGroupID != nil && *e.Data.WorkerGroupID == group
	default:
		return true
	}
}

// LogLevel is the level of a line in a run's log.
type LogLevel string

// The levels of a run's log.
const (
	LogInfo     LogLevel = "INFO"
	LogWarning  LogLevel = "WARNING"
	LogError    LogLevel = "ERROR"
	LogCritical LogLevel = "CRITICAL"
)

// LogEntry is one line of a run's log. Seq rises by one per run.
type LogEntry struct {
	Seq       int64           `json:"seq"`
	RunID     string          `json:"run_id"`
	ResultID  string          `json:"test_id,omitempty"`
	WorkerID  string          `json:"worker_id,omitempty"`
	Level     LogLevel        `json:"level"`
	Message   string          `json:"message"`
	Details   json.RawMessage `json:"details,omitempty"`
	Timestamp Time            `json:"timestamp"`
}
