package server

import (
	"container/list"
	"net"
	"sync"

	"github.com/gofiber/fiber/v2"
)

// crowd is a listener that keeps room for callers who are known. Of more connections
// than most, the oldest of strangers is closed for a new one: who opens thousands and
// sends nothing, or sends slowly, shuts out neither the probes nor those who watch a run, and
// leaves the file descriptors that runs need.
type crowd struct {
	net.Listener
	most int

	mu        sync.Mutex
	open      int
	strangers list.List // of *member, the oldest first
}

// member is a connection of the crowd.
type member struct {
	net.Conn
	crowd *crowd
	// place is where it stands among the strangers, nil once its caller is known or it is closed.
	place  *list.Element
	closed bool
}

// Accept returns the next connection that there is room for.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		m := &member{Conn: conn, crowd: c}
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
func (c *crowd) admit(m *member) (out *member, room bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.most {
		oldest := c.strangers.Front()
		if oldest == nil {
			return nil, false // everybody is known: the last one has to wait
		}
		out, _ = oldest.Value.(*member)
	}
	c.open++
	m.place = c.strangers.PushBack(m)
	return out, true
}

// Close ends the connection and makes room. Twice is safe.
func (m *member) Close() error {
	m.crowd.mu.Lock()
	if !m.closed {
		m.closed = true
		m.crowd.open--
		m.leave()
	}
	m.crowd.mu.Unlock()
	return m.Conn.Close()
}

// leave takes the connection from among the strangers; the crowd is locked.
func (m *member) leave() {
	if m.place != nil {
		m.crowd.strangers.Remove(m.place)
		m.place = nil
	}
}

// welcome keeps the connection of a caller who is known; it comes after the guard.
func (s *Server) welcome(c *fiber.Ctx) error {
	if m := memberOf(c.Context().Conn()); m != nil && !s.public(c.Method(), c.Path()) {
		m.crowd.mu.Lock()
		m.leave()
		m.crowd.mu.Unlock()
	}
	return c.Next()
}

// memberOf is the member below a connection, nil where there is none.
func memberOf(conn net.Conn) *member {
	for {
		if m, ok := conn.(*member); ok {
			return m
		}
		over, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		conn = over.NetConn()
	}
}

// roomFor is how many connections a process may have that can open so many files:
// half of them, for runs and the store need the others.
func roomFor(files uint64) int {
	return int(min(files/2, maxConnections))
}

// NetConn is the connection itself.
func (m *member) NetConn() net.Conn { return m.Conn }
