package postgres

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Lost implements target.IdleConn.
func (c *conn) Lost() bool {
	if c.broken.Load() {
		return true
	}
	under := c.net
	if encrypted, is := under.(*tls.Conn); is {
		under = encrypted.NetConn()
	}
	socket, able := under.(syscall.Conn)
	if !able {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	lost := false
	err = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		_, err := unix.Poll(fds, 0)
		lost = err == nil && fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return lost || errors.Is(err, net.ErrClosed)
}
