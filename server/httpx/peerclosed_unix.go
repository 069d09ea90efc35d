//go:build unix && !linux

package httpx

import (
	"errors"

	"golang.org/x/sys/unix"
)

// look tells whether the other side has closed a socket, or whether there is nothing to be seen yet. It takes nothing
// from what was sent. Over TLS the word with which a client takes its leave hides its end.
func peerClosed(fd uintptr) (closed, waits bool) {
	var b [1]byte
	n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT) //nolint:gosec // a file descriptor
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return false, true
	case err != nil:
		return true, false
	}
	return n == 0, false
}
