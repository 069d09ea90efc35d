package cli

import (
	"slices"

	"github.com/loadstone-db/loadstone/cli/command"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/matrix"
)

// judge maps a result onto the exit code.
func judge(s *engine.Summary, setupFailed, requireValid bool) int {
	switch {
	case s.Status == engine.StatusFailed && setupFailed:
		return command.ExitUsage
	case s.Status != engine.StatusCompleted:
		return command.ExitFailed
	case !s.Accounting.Balanced:
		// Records are missing: whatever the figures say, they do not say it of the whole run.
		return command.ExitFailed
	}
	for _, t := range s.Thresholds {
		if !t.Passed {
			return command.ExitThresholds
		}
	}
	if !s.Worked() {
		return command.ExitFailed
	}
	if requireValid && s.Validity != engine.VerdictValid {
		return command.ExitInvalid
	}
	return command.ExitPassed
}

// judgeMatrix is the exit code of all targets together: that of the worst.
func judgeMatrix(r matrix.Report, requireValid bool) int {
	var codes []int
	for _, t := range r.Targets {
		codes = append(codes, judgeTarget(t, requireValid))
	}
	for _, code := range []int{command.ExitFailed, command.ExitUsage, command.ExitThresholds, command.ExitInvalid} {
		if slices.Contains(codes, code) {
			return code
		}
	}
	return command.ExitPassed
}

func judgeTarget(t matrix.TargetReport, requireValid bool) int {
	if t.Summary == nil {
		if t.SetupFailed {
			return command.ExitUsage
		}
		return command.ExitFailed
	}
	return judge(t.Summary, t.SetupFailed, requireValid)
}
