package load

import "time"

// waiter waits for short times as exactly as the system can.
type waiter interface {
	Wait(d time.Duration)
	Close()
}

// plainTimers waits with the runtime's timers.
type plainTimers struct{}

// Wait implements waiter.
func (plainTimers) Wait(d time.Duration) { time.Sleep(d) }

// Close implements waiter.
func (plainTimers) Close() {}
