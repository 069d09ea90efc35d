package clock

import "time"

const (
	// stallThreshold is how long the loop of a run must not have looked to say that its process stood still: it
	// looks every second.
	stallThreshold = 3 * time.Second
	// slewTolerance in a second is a clock that is slewed and not set.
	slewTolerance = 100 * time.Millisecond
)

// Monitor is what the loop of a run knows of its own time.
type Monitor struct {
	lastCheck    time.Time     // last
	clockChecked time.Time     // the clock was, last
	offset       time.Duration // of the wall clock, then
}

// Gap is for how long this process stood still before now: it was stopped, or the machine was. 0 where it ran on.
func (w *Monitor) Gap(now time.Time) time.Duration {
	gap := now.Sub(w.lastCheck)
	first := w.lastCheck.IsZero()
	w.lastCheck = now
	if first || gap <= stallThreshold {
		return 0
	}
	return gap
}

// Step is by how much the wall clock was set since from, where it is now off by that much; 0 where it was not.
func (w *Monitor) Step(now time.Time, offset time.Duration) (from time.Time, step time.Duration) {
	from, step = w.clockChecked, offset-w.offset
	w.clockChecked, w.offset = now, offset
	if from.IsZero() || step.Abs() < slewTolerance {
		return from, 0
	}
	return from, step
}
