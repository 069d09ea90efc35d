package orchestrator

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/aggregate"
)

const (
	// stoodStill is how long the loop of a run must not have looked to say that
	// its process stood still: it looks every second.
	stoodStill = 3 * time.Second
	// clockNoise in a second is a clock that is slewed and not set.
	clockNoise = 100 * time.Millisecond
)

// timekeeper is what the loop knows of its own time.
type timekeeper struct {
	*live
	looked time.Time     // last
	judged time.Time     // the clock was, last
	offset time.Duration // of the wall clock, then
}

// look notices that this process stood still: it was stopped, or the machine was.
// Nobody was heard of meanwhile because nobody listened, and what waits for
// others has waited for nothing: those limits begin anew where they were.
func (l *timekeeper) look(now time.Time) {
	gap := now.Sub(l.time.looked)
	first := l.time.looked.IsZero()
	l.time.looked = now
	if first || gap <= stoodStill {
		return
	}
	for _, w := range l.workers {
		if w.heard = w.heard.Add(gap); w.heard.After(now) {
			w.heard = now
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
	offset, from := l.clock.Offset(), l.time.judged
	step := offset - l.time.offset
	l.time.judged, l.time.offset = now, offset
	if from.IsZero() || step.Abs() < clockNoise {
		return
	}
	l.validity.Stepped(from, now, l.life.Phase(), step)
	words := aggregate.SteppedWords(step)
	l.note(engine.LogWarning, nil, "T%s; the run goes on by the clock as it was at its start", words[1:])
}
