//go:build !linux

package load

// newWaiter returns the most exact waiter that the system gives.
func newWaiter() waiter { return plainTimers{} }
