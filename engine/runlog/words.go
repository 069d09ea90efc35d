package runlog

import "github.com/loadstone-db/loadstone/engine"

// OfStatus says in the run's log what a new status means.
func OfStatus(s engine.Status) string {
	switch s {
	case engine.StatusRunning:
		return "The run started"
	case engine.StatusStopping:
		return "The measurement is over; operations in flight are finished"
	case engine.StatusCancelling:
		return "The run is being stopped"
	case engine.StatusCompleted:
		return "The run completed"
	case engine.StatusFailed:
		return "The run failed"
	case engine.StatusCancelled:
		return "The run was cancelled"
	default:
		return "The run is " + string(s)
	}
}

// OfPhase says in the run's log what a new phase means.
func OfPhase(p engine.Phase) string {
	switch p {
	case engine.PhasePreparing:
		return "The target is being prepared"
	case engine.PhaseWarmup:
		return "Warm-up began"
	case engine.PhaseMeasurement:
		return "The measurement began"
	case engine.PhaseCooldown:
		return "The run workers finish what is in flight"
	case engine.PhaseProcessing:
		return "Every execution is read for the exact figures"
	default:
		return "The phase is " + string(p)
	}
}
