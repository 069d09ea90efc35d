package rpc

import (
	"bufio"
	"container/list"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// split tells on one address who speaks gRPC from who speaks HTTP: a connection
// of the former begins with the preface of HTTP/2.
type split struct {
	socket    net.Listener
	tls       *tls.Config
	rpc, http *branch
	done      chan struct{}
	once      sync.Once
	greeting  sync.WaitGroup
	crowd     *crowd
	// disbelieved is called when who dials ends the handshake; it may be nil.
	disbelieved func()
}

func newSplit(socket net.Listener, config *tls.Config) *split {
	s := &split{socket: socket, done: make(chan struct{}), crowd: newCrowd()}
	if config != nil {
		s.tls = config.Clone()
		s.tls.NextProtos = []string{"h2", "http/1.1"}
	}
	s.rpc, s.http = &branch{split: s, conns: make(chan net.Conn)}, &branch{split: s, conns: make(chan net.Conn)}
	return s
}

// run accepts connections until the socket closes.
func (s *split) run() {
	defer s.greeting.Wait()
	for {
		conn, err := s.socket.Accept()
		if err != nil {
			select {
			case <-s.done:
				return
			case <-time.After(10 * time.Millisecond): // out of files, for one
				continue
			}
		}
		peeked := &peekedConn{Conn: conn}
		if s.tls != nil {
			peeked.Conn = tls.Server(conn, s.tls)
		}
		peeked.raw, peeked.r = conn, bufio.NewReaderSize(peeked.Conn, 512)
		s.crowd.enter(peeked)
		s.greeting.Go(func() { s.greet(peeked) })
	}
}

// greet finds out what a connection speaks, and hands it on.
func (s *split) greet(conn *peekedConn) {
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-s.done:
			_ = conn.Close()
		case <-stopped:
		}
	}()
	_ = conn.SetDeadline(time.Now().Add(helloLimit))
	start, err := conn.r.Peek(3)
	if err != nil {
		var remote *net.OpError
		if s.disbelieved != nil && errors.As(err, &remote) && remote.Op == "remote error" {
			s.disbelieved()
		}
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	to := s.http
	if string(start) == "PRI" {
		to = s.rpc
	}
	select {
	case to.conns <- conn:
	case <-s.done:
		_ = conn.Close()
	}
}

// Close stops accepting.
func (s *split) Close() (err error) {
	s.once.Do(func() {
		close(s.done)
		err = s.socket.Close()
	})
	return err
}

// peekedConn gives back what was read of it.
type peekedConn struct {
	net.Conn
	r *bufio.Reader
	// raw is below TLS: closing it says nothing to the peer, and waits for nothing.
	raw net.Conn
	// The others are the crowd's.
	crowd *crowd
	place *list.Element
	late  *time.Timer
	// said is what it has sent while it was a stranger; one reads at a time.
	said     int
	believed atomic.Bool
}

var errTooMuch = errors.New("a stranger says too much")

func (c *peekedConn) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	if c.believed.Load() {
		return n, err
	}
	if c.said += n; c.said > strangerSays {
		_ = c.raw.Close()
		return 0, errTooMuch
	}
	return n, err
}

func (c *peekedConn) Close() error {
	c.crowd.known(c)
	return c.Conn.Close()
}

// branch is the listener of one of the two.
type branch struct {
	split *split
	conns chan net.Conn
}

func (b *branch) Accept() (net.Conn, error) {
	select {
	case conn := <-b.conns:
		return conn, nil
	case <-b.split.done:
		return nil, net.ErrClosed
	}
}

// Close leaves the socket to the split.
func (b *branch) Close() error { return nil }

func (b *branch) Addr() net.Addr { return b.split.socket.Addr() }
