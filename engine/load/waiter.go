package load

import "time"

// waiter waits for short times as exactly as the system can.
type waiter interface {
	wait(d time.Duration)
	close()
}

// timers waits with the runtime's timers.
type timers struct{}

func (timers) wait(d time.Duration) { time.Sleep(d) }
func (timers) close()               {}
