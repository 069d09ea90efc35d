package load

import (
	"time"

	baseclock "github.com/loadstone-db/loadstone/engine/base/clock"
)

// clock is the run's time line in nanoseconds: monotonic, anchored to the wall once.
type clock struct {
	base time.Time
	wall int64
}

func newClock(run *baseclock.Clock) clock {
	if run == nil {
		run = baseclock.New(nil)
	}
	now := time.Now()
	return clock{base: now, wall: run.At(now).UnixNano()}
}

// now returns nanoseconds since the Unix epoch on that line.
func (c *clock) now() int64 { return c.wall + int64(time.Since(c.base)) }

// at places a moment on the line; the zero time is 0.
func (c *clock) at(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return c.wall + int64(t.Sub(c.base))
}
