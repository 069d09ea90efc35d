//go:build !linux

package load

// eventState is the part of a slot that an event loop uses; there are none on this system.
type eventState struct{}

func newEventLoops(*Group) ioEngine { return nil }
