package postgres

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres/wire"
)

// socket is a connection's own descriptor while an event loop has it. The loop
// reads and writes it without a lock; everyone else may only end the stream.
type socket struct {
	mu   sync.Mutex
	fd   int
	held bool
}

// shutdown ends the stream in both directions, which wakes the loop. It reports
// false when there is no socket of a loop.
func (s *socket) shutdown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.held {
		return false
	}
	_ = syscall.Shutdown(s.fd, syscall.SHUT_RDWR) // a stream that has ended already is as good
	return true
}

// tryWrite writes a few bytes if there is room for them.
func (s *socket) tryWrite(text []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		_, _ = syscall.Write(s.fd, text) // a farewell is a courtesy
	}
	return s.held
}

// Attach implements target.EventConn. The descriptor is a duplicate, and the
// original is closed: the runtime's own poller would be woken for every answer otherwise.
func (c *conn) Attach() (fd int, ok bool) {
	plain, isPlain := c.link.(*wire.RawLink)
	if !isPlain || c.closed.Load() {
		return 0, false
	}
	if fd, ok = plain.Duplicate(); !ok {
		return 0, false
	}
	c.loop.mu.Lock()
	c.loop.fd, c.loop.held = fd, true
	c.loop.mu.Unlock()
	_ = c.net.Close()
	c.out = nil // the loop brings its own
	if c.closed.Load() {
		c.loop.shutdown() // Close came in between
	}
	return fd, true
}

// Detach implements target.EventConn.
func (c *conn) Detach() {
	if !c.closed.Load() {
		_ = c.Close()
	}
	c.loop.mu.Lock()
	defer c.loop.mu.Unlock()
	if c.loop.held {
		c.loop.held = false
		_ = syscall.Close(c.loop.fd)
	}
}

// Send implements target.EventConn.
func (c *conn) Send(buf []byte, b *plugin.Batch, op plugin.Op) (sent bool, err error) {
	if c.broken.Load() {
		if c.closed.Load() {
			return false, net.ErrClosed
		}
		return false, io.EOF // it was lost while nothing was in flight
	}
	if cap(c.out) > cap(buf) {
		buf = c.out // an operation before was longer than the loop's buffer
	}
	request, err := c.request(buf, b, op)
	if err != nil {
		return false, err
	}
	if cap(request) > cap(buf) {
		c.keep(request, op)
	}
	c.answer.Reset()
	c.answer.KeepRow, c.answer.RowsSent = op.Referred, c.sendsRows(op)
	c.op, c.unsent = op, request
	c.begun = c.flight.Add(1)
	if sent, err = c.Flush(); !sent && err == nil {
		c.unsent = bytes.Clone(c.unsent) // the loop's buffer serves others meanwhile
	}
	return sent, err
}

// Flush implements target.EventConn.
func (c *conn) Flush() (sent bool, err error) {
	if sent, err = c.flush(); err != nil {
		var ignored target.Result
		err = c.ended(c.op, c.begun, wire.NewUnsent(err), &ignored)
	}
	return sent, err
}

func (c *conn) flush() (sent bool, err error) {
	for len(c.unsent) > 0 {
		// Not write: the kernel's way through its file layer costs more.
		n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(c.loop.fd),
			uintptr(unsafe.Pointer(unsafe.SliceData(c.unsent))), uintptr(len(c.unsent)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			c.unsent = c.unsent[n:]
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false, nil
		default:
			return false, os.NewSyscallError("send", errno)
		}
	}
	return true, nil
}

// Prefetch implements target.EventConn: a word of each part that an operation looks at.
func (c *conn) Prefetch() int64 {
	return int64(c.loop.fd) + int64(c.begun) + c.answer.Rows + int64(c.answer.Left)
}

// Receive implements target.EventConn.
func (c *conn) Receive(buf []byte, res *target.Result) (done bool, err error) {
	res.Rows, res.QueryID = 0, engine.QueryID{}
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.loop.fd),
			uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == syscall.EINTR:
			continue
		case errno == syscall.EAGAIN:
			return false, nil
		case errno != 0:
			return true, c.lost(os.NewSyscallError("receive", errno), res)
		case n == 0:
			return true, c.lost(io.EOF, res)
		}
		c.answer.Feed(buf[:n])
		if c.flight.Load()&1 == 0 {
			if c.answer.Broken != nil {
				return true, c.lost(c.answer.Broken, res)
			}
			return false, nil
		}
		if c.answer.Done || c.answer.Broken != nil {
			return true, c.ended(c.op, c.begun, nil, res)
		}
		if c.answer.Reply != nil {
			// It is short, and the server has read all that was sent before.
			c.unsent, c.answer.Reply = c.answer.Reply, nil
			if sent, err := c.flush(); err != nil || !sent {
				return true, c.lost(errors.Join(err, io.ErrShortWrite), res)
			}
		}
		if int(n) < len(buf) {
			// Whatever comes next makes the socket readable again.
			return false, nil
		}
	}
}

// lost ends the operation in flight, or an idle connection.
func (c *conn) lost(err error, res *target.Result) error {
	if c.flight.Load()&1 == 0 {
		c.kill()
		return err
	}
	return c.ended(c.op, c.begun, err, res)
}
