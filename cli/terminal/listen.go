package terminal

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/loadstone-db/loadstone/engine"
)

// ListenError is the error of an address that a flag names and nobody can listen on: what is wrong with it, and what
// to do.
func ListenError(flag, address string, err error) error {
	e := &engine.Error{Code: engine.CodeInvalid, Cause: err}
	var wrong *net.AddrError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		e.Message = fmt.Sprintf("The address %s is in use.", address)
		e.Hint = fmt.Sprintf("stop what listens there, or choose another with %s", flag)
	case errors.Is(err, os.ErrPermission):
		e.Message = fmt.Sprintf("The address %s may not be listened on.", address)
		e.Hint = fmt.Sprintf("ports below 1024 need the capability CAP_NET_BIND_SERVICE; or choose another with %s and have "+
			"it forwarded", flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		e.Message = fmt.Sprintf("This machine does not have the address %s.", address)
		e.Hint = fmt.Sprintf("give %s one of its own, or :PORT for all of them", flag)
	case errors.As(err, &wrong):
		e.Message = fmt.Sprintf("%s is no address to listen on: %s.", address, wrong.Err)
		e.Hint = fmt.Sprintf("write %s host:port", flag)
	default:
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err // without the words of the system's call
		}
		e.Message = fmt.Sprintf("The address %s cannot be listened on: %v.", address, err)
		e.Hint = fmt.Sprintf("write %s host:port", flag)
	}
	return e
}

// CheckListen tries an address, so that what takes long to start need not start in vain; "" is one that gives way.
func CheckListen(flag, address string) error {
	if address == "" {
		return nil
	}
	l, err := net.Listen("tcp", address) //nolint:noctx // it listens at once, or not at all
	if err != nil {
		return ListenError(flag, address, err)
	}
	_ = l.Close() // it was tried
	return nil
}
