//go:build !linux

package netpoll

// NewWaiter returns the most exact waiter that the system gives.
func NewWaiter() Waiter { return Timers{} }
