package postgres

import (
	"io"
	"net"
	"sync"
	"syscall"

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

// Begin implements target.EventConn.
func (c *conn) Begin(buf []byte, b *plugin.Batch, op plugin.Op) (request []byte, err error) {
	if c.broken.Load() {
		if c.closed.Load() {
			return nil, net.ErrClosed
		}
		return nil, io.EOF // it was lost while nothing was in flight
	}
	if cap(c.out) > cap(buf) {
		buf = c.out // an operation before was longer than the loop's room
	}
	request, err = c.request(buf, b, op)
	if err != nil {
		return nil, err
	}
	if cap(request) > cap(buf) {
		c.keep(request, op)
	}
	c.answer.Reset()
	c.answer.KeepRow, c.answer.RowsSent = op.Referred, c.sendsRows(op)
	c.op = op
	c.begun = c.flight.Add(1)
	return request, nil
}

// Prefetch implements target.EventConn: a word of each part that an operation looks at.
func (c *conn) Prefetch() int64 {
	return int64(c.loop.fd) + int64(c.begun) + c.answer.Rows + int64(c.answer.Left)
}

// Feed implements target.EventConn.
func (c *conn) Feed(data []byte, res *target.Result) (done bool, reply []byte, err error) {
	res.Rows, res.QueryID = 0, engine.QueryID{}
	c.answer.Feed(data)
	if c.flight.Load()&1 == 0 {
		if c.answer.Broken != nil {
			return true, nil, c.Fail(c.answer.Broken, res)
		}
		return false, nil, nil
	}
	if c.answer.Done || c.answer.Broken != nil {
		return true, nil, c.ended(c.op, c.begun, nil, res)
	}
	reply, c.answer.Reply = c.answer.Reply, nil
	return false, reply, nil
}

// Fail implements target.EventConn.
func (c *conn) Fail(cause error, res *target.Result) error {
	res.Rows, res.QueryID = 0, engine.QueryID{}
	if c.flight.Load()&1 == 0 {
		c.kill()
		return cause
	}
	return c.ended(c.op, c.begun, cause, res)
}
