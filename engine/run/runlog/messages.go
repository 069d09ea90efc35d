package runlog

import (
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
)

// StatusMessage says in the run's log what a new status means.
func StatusMessage(s engine.Status) string {
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

// PhaseMessage says in the run's log what a new phase means.
func PhaseMessage(p engine.Phase) string {
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

// StepMessage says what the step of a search gave, and of which search it is where there are several.
func StepMessage(s engine.FindMaxStep, searches int) string {
	level := fmt.Sprintf("%d connections", s.TotalTargetConnections)
	switch {
	case s.TargetQPS != nil:
		level = fmt.Sprintf("%.6g operations per second", *s.TargetQPS)
	case s.TotalTargetConnections == 1:
		level = "1 connection"
	}
	p95 := "unknown"
	if ms := s.P95LatencyMs; ms != nil {
		p95 = fmt.Sprintf("%.3g ms", *ms)
	}
	step := "Step"
	if searches > 1 {
		step = fmt.Sprintf("Search %d of %d, step", s.Repetition, searches)
	}
	return fmt.Sprintf("%s %d, %s: %.0f/s, P95 %s, %s", step, s.StepNumber, level, s.QPS, p95, s.Outcome)
}
