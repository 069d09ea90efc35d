package run

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	runlive "github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/run/recovery"
)

// clockMonitor is what the loop knows of its own time.
type clockMonitor struct {
	*runLoop
	watch recovery.Monitor
}

// checkStall notices that this process stood still. Nobody was heard of meanwhile because nobody listened,
// and what waits for others has waited for nothing: those limits begin anew where they were.
func (l *clockMonitor) checkStall(now time.Time) {
	gap := l.time.watch.Gap(now)
	if gap == 0 {
		return
	}
	for _, w := range l.Workers {
		if w.LastSeen = w.LastSeen.Add(gap); w.LastSeen.After(now) {
			w.LastSeen = now
		}
	}
	l.life.ExtendDeadlines(gap)
	if !l.life.Status().Terminal() {
		l.writeLog(engine.LogWarning, nil, "The process stood still for %.0f s: it was stopped, or the machine was",
			gap.Seconds())
	}
}

// checkClock notices that the wall clock was set. The run's times do not follow it.
func (l *clockMonitor) checkClock(now time.Time) {
	from, step := l.time.watch.Step(now, l.clock.Offset())
	if step == 0 {
		return
	}
	l.validity.ClockStepped(from, now, l.life.Phase(), step)
	words := runlive.ClockStepNote(step)
	l.writeLog(engine.LogWarning, nil, "T%s; the run goes on by the clock as it was at its start", words[1:])
}
