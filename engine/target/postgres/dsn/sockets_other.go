//go:build !linux

package dsn

import (
	"errors"
	"net"
)

// setUserTimeout does nothing: libpq does not either where the system has no such option.
func setUserTimeout(*net.TCPConn, int) error { return nil }

func peerOf(*net.UnixConn) (uint32, error) { return 0, errors.ErrUnsupported }
