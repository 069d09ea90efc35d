// This part is the time line of a run.

package clock

import "time"

// Clock is the time line of a run: the wall clock as it stood when the run
// began, and from there on the machine's monotonic clock. Setting the wall
// clock moves no time of the run. A Clock does not change; it is safe for concurrent use.
type Clock struct {
	begin time.Time // with a monotonic reading
	line  time.Time // begin on the time line
	read  func() time.Time
}

// New begins a time line now. read is the clock, which must return monotonic readings too; nil means time.Now.
func New(read func() time.Time) *Clock {
	if read == nil {
		read = time.Now
	}
	begin := read()
	return &Clock{begin: begin, line: begin, read: read}
}

// WithOffset is the time line of another machine, which is ahead of this one by that much now.
func (c *Clock) WithOffset(by time.Duration) *Clock {
	return &Clock{begin: c.begin, line: c.line.Round(0).Add(by), read: c.read}
}

// Now is the present moment on the time line.
func (c *Clock) Now() time.Time { return c.At(c.read()) }

// At puts a moment that this process has read on the time line.
func (c *Clock) At(t time.Time) time.Time { return c.line.Add(t.Sub(c.begin)) }

// Offset is by how much the wall clock has been set forward since the time line
// began, less than 0 when it was set back. A clock that is slewed has no offset.
func (c *Clock) Offset() time.Duration {
	t := c.read()
	return t.Round(0).Sub(c.begin.Round(0)) - t.Sub(c.begin)
}
