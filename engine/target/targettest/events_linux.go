package targettest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// Events wraps a driver so that its load connections are used the way an event
// loop does: the whole suite then runs over target.EventConn. A connection that
// cannot be used so is an error.
func Events(d target.Driver) target.Driver { return eventDriver{d} }

type eventDriver struct{ target.Driver }

func (d eventDriver) Open(cfg target.Config) (target.Database, error) {
	db, err := d.Driver.Open(cfg)
	return eventDatabase{db}, err
}

type eventDatabase struct{ target.Database }

func (d eventDatabase) Connect(ctx context.Context, statements []engine.Statement) (target.Conn, error) {
	c, err := d.Database.Connect(ctx, statements)
	if err != nil {
		return nil, err
	}
	e, ok := c.(target.EventConn)
	if !ok {
		return nil, fmt.Errorf("%T is not a target.EventConn", c)
	}
	fd, ok := e.Attach()
	if !ok {
		return nil, fmt.Errorf("%T does not enter an event loop", c)
	}
	return &eventConn{EventConn: e, fd: fd, buf: make([]byte, 512)}, nil
}

// eventConn is a loop of one connection. Its buffer is small, so that answers arrive in pieces.
type eventConn struct {
	target.EventConn
	fd  int
	buf []byte
	mu  sync.Mutex // held by Exec
}

// Transaction implements target.TransactionConn.
func (c *eventConn) Transaction() target.Transaction { return target.TransactionOf(c.EventConn) }

// Close leaves the loop once nothing is in flight.
func (c *eventConn) Close() error {
	err := c.EventConn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Detach()
	return err
}

const (
	readable = 0x1
	writable = 0x4
)

// ready waits until the socket can be read or written.
func (c *eventConn) ready(events int16) error {
	poll := struct {
		fd      int32
		events  int16
		revents int16
	}{fd: int32(c.fd), events: events}
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&poll)), 1, 0, 0, 0, 0)
		if errno == 0 {
			return nil
		}
		if errno != syscall.EINTR {
			return fmt.Errorf("waiting for the socket: %w", errno)
		}
	}
}

// send sends everything, and waits for room where there is none.
func (c *eventConn) send(request []byte) error {
	for len(request) > 0 {
		n, err := syscall.SendmsgN(c.fd, request, nil, nil, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
		switch {
		case errors.Is(err, syscall.EAGAIN):
			if err := c.ready(writable); err != nil {
				return err
			}
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return os.NewSyscallError("send", err)
		default:
			request = request[n:]
		}
	}
	return nil
}

func (c *eventConn) Exec(_ context.Context, b *plugin.Batch, op plugin.Op, res *target.Result) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	request, err := c.Begin(c.buf, b, op)
	if err != nil {
		return err
	}
	if err := c.send(request); err != nil {
		return c.Fail(err, res)
	}
	for {
		if err := c.ready(readable); err != nil {
			return err
		}
		n, _, err := syscall.Recvfrom(c.fd, c.buf, syscall.MSG_DONTWAIT)
		switch {
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return c.Fail(os.NewSyscallError("receive", err), res)
		case n == 0:
			return c.Fail(io.EOF, res)
		}
		done, reply, err := c.Feed(c.buf[:n], res)
		if done {
			return err
		}
		if err := c.send(reply); err != nil {
			return c.Fail(err, res)
		}
	}
}
