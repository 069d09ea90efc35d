package clock_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/loadstone-db/loadstone/engine/base/clock"
)

// set returns a time whose wall clock was set forward by whole seconds, as
// time.Now returns it then: the monotonic reading stays.
func set(t time.Time, seconds int64) time.Time {
	type layout struct {
		wall uint64 // one bit, 33 bits of seconds, 30 bits of nanoseconds
		ext  int64
		loc  *time.Location
	}
	l := (*layout)(unsafe.Pointer(&t))
	l.wall = uint64(int64(l.wall) + seconds<<30)
	return t
}

func TestAClockDoesNotFollowTheWall(t *testing.T) {
	var step int64
	c := clock.New(func() time.Time { return set(time.Now(), step) })
	began := c.Now()
	for _, step = range []int64{3600, -3600, 0} {
		read := set(time.Now(), step)
		if want := time.Duration(step) * time.Second; (c.Offset()-want).Abs() > time.Millisecond ||
			(read.Round(0).Sub(began.Round(0))-want).Abs() > time.Minute {
			t.Fatalf("the clock was set by %v, and its offset is %v", want, c.Offset())
		}
		for _, now := range []time.Time{c.Now(), c.At(read)} {
			if d := now.Round(0).Sub(began.Round(0)); d < 0 || d > time.Minute || now.Sub(began) < 0 {
				t.Fatalf("set by %d s: %v after %v", step, now, began)
			}
		}
	}
}
