package engine

// Status is the state of a run.
//
//	PREPARED ─start→ RUNNING ─duration elapsed→ STOPPING ──────────→ COMPLETED
//	    │               │                          └─user stop→ CANCELLING
//	    │               ├─user stop→ CANCELLING ────────────────→ CANCELLED
//	    │               └─guardrail, failure→ CANCELLING ───────→ FAILED
//	    └─stop before start→ CANCELLED
//
// The same table guards run_status in the database (a trigger), so a writer that skips this package is refused too.
type Status string

// The statuses of a run. COMPLETED, FAILED and CANCELLED are terminal.
const (
	StatusPrepared   Status = "PREPARED"
	StatusRunning    Status = "RUNNING"
	StatusStopping   Status = "STOPPING"
	StatusCancelling Status = "CANCELLING"
	StatusCompleted  Status = "COMPLETED"
	StatusFailed     Status = "FAILED"
	StatusCancelled  Status = "CANCELLED"
)

var transitions = map[Status][]Status{
	StatusPrepared:   {StatusRunning, StatusCancelled},
	StatusRunning:    {StatusStopping, StatusCancelling},
	StatusStopping:   {StatusCompleted, StatusCancelling},
	StatusCancelling: {StatusCancelled, StatusFailed},
}

// Terminal reports whether the status never changes again.
func (s Status) Terminal() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// Live reports whether workers may hold load for a run of this status.
func (s Status) Live() bool {
	return s == StatusRunning || s == StatusStopping || s == StatusCancelling
}

// CanBecome reports whether the transition s → next is allowed.
func (s Status) CanBecome(next Status) bool {
	for _, t := range transitions[s] {
		if t == next {
			return true
		}
	}
	return false
}

// Statuses lists every status in the order of a run's life.
func Statuses() []Status {
	return []Status{StatusPrepared, StatusRunning, StatusStopping, StatusCancelling,
		StatusCompleted, StatusFailed, StatusCancelled}
}

// Phase is the stage of a live run. The empty phase means that nothing is left to do.
type Phase string

// The phases of a run, in order.
const (
	PhasePreparing   Phase = "PREPARING"
	PhaseWarmup      Phase = "WARMUP"
	PhaseMeasurement Phase = "MEASUREMENT"
	PhaseCooldown    Phase = "COOLDOWN"
	PhaseProcessing  Phase = "PROCESSING"
	PhaseNone        Phase = ""
)

// StopReason says why a run was told to stop.
type StopReason string

// The stop reasons, and through them the status a run ends in.
const (
	StopDurationElapsed StopReason = "duration_elapsed"
	StopUserRequested   StopReason = "user_requested"
	StopGuardrail       StopReason = "guardrail"
	StopWorkerFailure   StopReason = "worker_failure"
	StopSetupFailure    StopReason = "setup_failure"
)

// Draining returns the intermediate status of a run that stops for this reason.
func (r StopReason) Draining() Status {
	if r == StopDurationElapsed {
		return StatusStopping
	}
	return StatusCancelling
}

// Outcome returns the terminal status of a run that stopped for this reason.
func (r StopReason) Outcome() Status {
	switch r {
	case StopDurationElapsed:
		return StatusCompleted
	case StopUserRequested:
		return StatusCancelled
	default:
		return StatusFailed
	}
}

// WorkerStatus is the state of one run worker.
type WorkerStatus string

// The states of a run worker, in order; FAILED and DEAD end it too.
const (
	WorkerStarting  WorkerStatus = "STARTING"
	WorkerReady     WorkerStatus = "READY"
	WorkerRunning   WorkerStatus = "RUNNING"
	WorkerDraining  WorkerStatus = "DRAINING"
	WorkerCompleted WorkerStatus = "COMPLETED"
	WorkerFailed    WorkerStatus = "FAILED"
	WorkerDead      WorkerStatus = "DEAD"
)

// Ended reports whether the run worker has left the run.
func (s WorkerStatus) Ended() bool {
	return s == WorkerCompleted || s == WorkerFailed || s == WorkerDead
}

// Health is derived from the age of a run worker's last heartbeat.
type Health string

// HEALTHY under 30 s, STALE from 30 s, DEAD over 60 s.
const (
	HealthHealthy Health = "HEALTHY"
	HealthStale   Health = "STALE"
	HealthDead    Health = "DEAD"
)
