package run

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/clock"
	runlive "github.com/loadstone-db/loadstone/engine/run/live"
)

// timekeeper is what the loop knows of its own time.
type timekeeper struct {
	*live
	watch clock.Watch
}

// look notices that this process stood still. Nobody was heard of meanwhile because nobody listened,
// and what waits for others has waited for nothing: those limits begin anew where they were.
func (l *timekeeper) look(now time.Time) {
	gap := l.time.watch.Gap(now)
	if gap == 0 {
		return
	}
	for _, w := range l.Workers {
		if w.Heard = w.Heard.Add(gap); w.Heard.After(now) {
			w.Heard = now
		}
	}
	l.life.StoodStill(gap)
	if !l.life.Status().Terminal() {
		l.note(engine.LogWarning, nil, "The process stood still for %.0f s: it was stopped, or the machine was",
			gap.Seconds())
	}
}

// judge notices that the wall clock was set. The run's times do not follow it.
func (l *timekeeper) judge(now time.Time) {
	from, step := l.time.watch.Step(now, l.clock.Offset())
	if step == 0 {
		return
	}
	l.validity.Stepped(from, now, l.life.Phase(), step)
	words := runlive.SteppedWords(step)
	l.note(engine.LogWarning, nil, "T%s; the run goes on by the clock as it was at its start", words[1:])
}
