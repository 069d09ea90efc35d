package server

import (
	"container/list"
	"net"
	"sync"

	"github.com/gofiber/fiber/v2"
)

// connLimiter is a listener that keeps room for callers who are known. Of more connections
// than most, the oldest of strangers is closed for a new one: who opens thousands and
// sends nothing, or sends slowly, shuts out neither the probes nor those who watch a run, and
// leaves the file descriptors that runs need.
type connLimiter struct {
	net.Listener
	max int

	mu        sync.Mutex
	open      int
	anonymous list.List // of *member, the oldest first
}

// limitedConn is a connection of the crowd.
type limitedConn struct {
	net.Conn
	limiter *connLimiter
	// element is where it stands among the strangers, nil once its caller is known or it is closed.
	element *list.Element
	closed  bool
}

// Accept returns the next connection that there is room for.
func (c *connLimiter) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		m := &limitedConn{Conn: conn, limiter: c}
		out, room := c.admit(m)
		if out != nil {
			_ = out.Close()
		}
		if room {
			return m, nil
		}
		_ = conn.Close()
	}
}

// admit counts a new connection, and names the one that has to go for it.
func (c *connLimiter) admit(m *limitedConn) (out *limitedConn, room bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.max {
		oldest := c.anonymous.Front()
		if oldest == nil {
			return nil, false // everybody is known: the last one has to wait
		}
		out, _ = oldest.Value.(*limitedConn)
	}
	c.open++
	m.element = c.anonymous.PushBack(m)
	return out, true
}

// Close ends the connection and makes room. Twice is safe.
func (m *limitedConn) Close() error {
	m.limiter.mu.Lock()
	if !m.closed {
		m.closed = true
		m.limiter.open--
		m.untrack()
	}
	m.limiter.mu.Unlock()
	return m.Conn.Close()
}

// untrack takes the connection from among the strangers; the crowd is locked.
func (m *limitedConn) untrack() {
	if m.element != nil {
		m.limiter.anonymous.Remove(m.element)
		m.element = nil
	}
}

// markAuthenticated keeps the connection of a caller who is known; it comes after the guard.
func (s *Server) markAuthenticated(c *fiber.Ctx) error {
	if m := limitedConnOf(c.Context().Conn()); m != nil && !s.isPublic(c.Method(), c.Path()) {
		m.limiter.mu.Lock()
		m.untrack()
		m.limiter.mu.Unlock()
	}
	return c.Next()
}

// limitedConnOf is the member below a connection, nil where there is none.
func limitedConnOf(conn net.Conn) *limitedConn {
	for {
		if m, ok := conn.(*limitedConn); ok {
			return m
		}
		over, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		conn = over.NetConn()
	}
}

// maxConnectionsFor is how many connections a process may have that can open so many files:
// half of them, for runs and the store need the others.
func maxConnectionsFor(files uint64) int {
	return int(min(files/2, maxConnections))
}

// NetConn is the connection itself.
func (m *limitedConn) NetConn() net.Conn { return m.Conn }
