package exec

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is how much processor time f takes on this thread: on a machine that is busy, time by the clock says little.
func cpuTime(f func() error) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, began := threadTime(), time.Now()
	err := f()
	after := threadTime()
	if before < 0 || after < 0 {
		return time.Since(began), err
	}
	return after - before, err
}

// threadTime is how long this thread has had a processor, less than 0 where that is not known.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return -1
	}
	return time.Duration(t.Nano())
}
