package run

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// checkStall notices that this process stood still. Nobody was heard of meanwhile because nobody listened,
// and what waits for others has waited for nothing: those limits begin anew where they were.
func (l *runLoop) checkStall(now time.Time) {
	gap := l.watch.Gap(now)
	if gap == 0 {
		return
	}
	l.Excuse(gap, now)
	l.life.ExtendDeadlines(gap)
	if !l.life.Status().Terminal() {
		l.writeLog(engine.LogWarning, nil, "The process stood still for %.0f s: it was stopped, or the machine was",
			gap.Seconds())
	}
}

// checkClock notices that the wall clock was set. The run's times do not follow it.
func (l *runLoop) checkClock(now time.Time) {
	from, step := l.watch.Step(now, l.clock.Offset())
	if step == 0 {
		return
	}
	l.validity.ClockStepped(from, now, l.life.Phase(), step)
	l.writeLog(
		engine.LogWarning,
		nil,
		"The machine's clock was set %s; the run goes on by the clock as it was at its start",
		engine.ClockStep(step.Seconds()),
	)
}
