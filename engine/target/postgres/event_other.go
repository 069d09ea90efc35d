//go:build !linux

package postgres

// socket is an event loop's descriptor; there are none on this system.
type socket struct{}

func (*socket) shutdown() bool       { return false }
func (*socket) tryWrite([]byte) bool { return false }
