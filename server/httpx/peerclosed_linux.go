package httpx

import (
	"errors"

	"golang.org/x/sys/unix"
)

// peerClosed tells whether the other side has closed a socket, or whether it has not yet. It takes nothing from what
// was sent, and looks past it: over TLS a client takes its leave with a word before it closes.
func peerClosed(fd uintptr) (closed, waits bool) {
	ask := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	if _, err := unix.Poll(ask, 0); err != nil && !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
		return false, false
	}
	closed = ask[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	return closed, !closed
}
