package cli

import (
	"slices"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/matrix"
)

// resultExitCode maps a result onto the exit code.
func resultExitCode(s *engine.Summary, setupFailed, requireValid bool) int {
	switch {
	case s.Status == engine.StatusFailed && setupFailed:
		return terminal.ExitUsage
	case s.Status != engine.StatusCompleted:
		return terminal.ExitFailed
	case !s.Accounting.Balanced:
		// Records are missing: whatever the figures say, they do not say it of the whole run.
		return terminal.ExitFailed
	}
	for _, t := range s.Thresholds {
		if !t.Passed {
			return terminal.ExitThresholds
		}
	}
	if !s.HasSuccess() {
		return terminal.ExitFailed
	}
	if requireValid && s.Validity != engine.VerdictValid {
		return terminal.ExitInvalid
	}
	return terminal.ExitPassed
}

// matrixExitCode is the exit code of all targets together: that of the worst.
func matrixExitCode(r matrix.Report, requireValid bool) int {
	var codes []int
	for _, t := range r.Targets {
		codes = append(codes, targetExitCode(t, requireValid))
	}
	for _, code := range []int{terminal.ExitFailed, terminal.ExitUsage, terminal.ExitThresholds, terminal.ExitInvalid} {
		if slices.Contains(codes, code) {
			return code
		}
	}
	return terminal.ExitPassed
}

func targetExitCode(t matrix.TargetReport, requireValid bool) int {
	if t.Summary == nil {
		if t.SetupFailed {
			return terminal.ExitUsage
		}
		return terminal.ExitFailed
	}
	return resultExitCode(t.Summary, t.SetupFailed, requireValid)
}
