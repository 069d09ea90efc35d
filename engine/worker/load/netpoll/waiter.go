package netpoll

import "time"

// Waiter waits for short times as exactly as the system can.
type Waiter interface {
	Wait(d time.Duration)
	Close()
}

// Timers waits with the runtime's timers.
type Timers struct{}

// Wait implements Waiter.
func (Timers) Wait(d time.Duration) { time.Sleep(d) }

// Close implements Waiter.
func (Timers) Close() {}
