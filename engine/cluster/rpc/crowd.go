package rpc

import (
	"container/list"
	"sync"
	"time"
)

// How many connections may stand whose owner has not shown that it is a server of this node,
// for how long, and how many bytes each may send: what is read of calls that anybody may make.
const (
	mostStrangers = 256
	strangerFor   = 30 * time.Second
	strangerSays  = 256 << 10
)

// crowd are the strangers: connections that have not said yet what they want, probes, and
// whoever else finds the port. When they are too many the one that came first has to go, so
// that they keep no server out.
type crowd struct {
	mu  sync.Mutex
	all *list.List // of *peekedConn, oldest first
	// most and limit are mostStrangers and strangerFor, less in tests.
	most  int
	limit time.Duration
}

func newCrowd() *crowd { return &crowd{all: list.New(), most: mostStrangers, limit: strangerFor} }

// enter takes a connection in.
func (c *crowd) enter(conn *peekedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn.crowd = c
	conn.place = c.all.PushBack(conn)
	conn.late = time.AfterFunc(c.limit, func() { _ = conn.raw.Close() })
	if c.all.Len() > c.most {
		first := c.all.Remove(c.all.Front()).(*peekedConn)
		first.place = nil
		first.late.Stop()
		_ = first.raw.Close()
	}
}

// admitted takes a connection out for good: it is a server's.
func (c *crowd) admitted(conn *peekedConn) {
	conn.believed.Store(true)
	c.known(conn)
}

// known takes a connection out: it is a server's, or closed.
func (c *crowd) known(conn *peekedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.place != nil {
		c.all.Remove(conn.place)
		conn.place = nil
		conn.late.Stop()
	}
}
