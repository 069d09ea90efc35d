package clock

import "time"

const (
	// stoodStill is how long the loop of a run must not have looked to say that its process stood still: it
	// looks every second.
	stoodStill = 3 * time.Second
	// clockNoise in a second is a clock that is slewed and not set.
	clockNoise = 100 * time.Millisecond
)

// Watch is what the loop of a run knows of its own time.
type Watch struct {
	looked time.Time     // last
	judged time.Time     // the clock was, last
	offset time.Duration // of the wall clock, then
}

// Gap is for how long this process stood still before now: it was stopped, or the machine was. 0 where it ran on.
func (w *Watch) Gap(now time.Time) time.Duration {
	gap := now.Sub(w.looked)
	first := w.looked.IsZero()
	w.looked = now
	if first || gap <= stoodStill {
		return 0
	}
	return gap
}

// Step is by how much the wall clock was set since from, where it is now off by that much; 0 where it was not.
func (w *Watch) Step(now time.Time, offset time.Duration) (from time.Time, step time.Duration) {
	from, step = w.judged, offset-w.offset
	w.judged, w.offset = now, offset
	if from.IsZero() || step.Abs() < clockNoise {
		return from, 0
	}
	return from, step
}
