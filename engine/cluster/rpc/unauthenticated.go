package rpc

import (
	"container/list"
	"sync"
	"time"
)

// How many connections may stand whose owner has not shown that it is a server of this node,
// for how long, and how many bytes each may send: what is read of calls that anybody may make.
const (
	maxUnauthenticated      = 256
	unauthenticatedTimeout  = 30 * time.Second
	maxUnauthenticatedBytes = 256 << 10
)

// unauthenticatedConns are the strangers: connections that have not said yet what they want, probes, and
// whoever else finds the port. When they are too many the one that came first has to go, so
// that they keep no server out.
type unauthenticatedConns struct {
	mu  sync.Mutex
	all *list.List // of *peekedConn, oldest first
	// max and limit are mostStrangers and strangerFor, less in tests.
	max   int
	limit time.Duration
}

func newUnauthenticatedConns() *unauthenticatedConns {
	return &unauthenticatedConns{all: list.New(), max: maxUnauthenticated, limit: unauthenticatedTimeout}
}

// add takes a connection in.
func (c *unauthenticatedConns) add(conn *peekedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn.unauthenticated = c
	conn.place = c.all.PushBack(conn)
	conn.deadline = time.AfterFunc(c.limit, func() { _ = conn.raw.Close() })
	if c.all.Len() > c.max {
		first := c.all.Remove(c.all.Front()).(*peekedConn)
		first.place = nil
		first.deadline.Stop()
		_ = first.raw.Close()
	}
}

// authenticated takes a connection out for good: it is a server's.
func (c *unauthenticatedConns) authenticated(conn *peekedConn) {
	conn.authenticated.Store(true)
	c.remove(conn)
}

// remove takes a connection out: it is a server's, or closed.
func (c *unauthenticatedConns) remove(conn *peekedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.place != nil {
		c.all.Remove(conn.place)
		conn.place = nil
		conn.deadline.Stop()
	}
}
