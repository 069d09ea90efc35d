package load

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// minTimer is the least that a timer is set for: arrivals that are closer are
// started together, up to so much late, and cost one wake-up.
const minTimer = 100 * time.Microsecond

// timerWaiter waits on a timer of the kernel through the runtime's poller,
// which rounds its own timers up to whole milliseconds.
type timerWaiter struct {
	fd   int
	file *os.File
}

// newWaiter returns the most exact waiter that the system gives.
func newWaiter() waiter {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return plainTimers{}
	}
	return &timerWaiter{fd: fd, file: os.NewFile(uintptr(fd), "timer")}
}

func (w *timerWaiter) Wait(d time.Duration) {
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, minTimer)))}
	if err := unix.TimerfdSettime(w.fd, 0, &at, nil); err != nil {
		time.Sleep(d)
		return
	}
	var expired [8]byte
	if _, err := w.file.Read(expired[:]); err != nil {
		time.Sleep(d)
	}
}

func (w *timerWaiter) Close() { _ = w.file.Close() } // nothing was written
