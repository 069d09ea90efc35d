package dsn

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// setUserTimeout sets how long sent data may go unacknowledged, in ms.
func setUserTimeout(c *net.TCPConn, ms int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return fmt.Errorf("setting tcp_user_timeout: %w", err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, ms)
	}); err != nil {
		failed = err
	}
	if failed != nil {
		return fmt.Errorf("setting tcp_user_timeout: %w", failed)
	}
	return nil
}

// peerOf returns the id of the user whose process has the other end.
func peerOf(c *net.UnixConn) (id uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("asking a socket: %w", err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		var credentials *unix.Ucred
		if credentials, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); failed == nil {
			id = credentials.Uid
		}
	}); err != nil {
		failed = err
	}
	return id, failed
}
