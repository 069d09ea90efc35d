package controlrpc

import (
	"bufio"
	"crypto/tls"
	"net"
	"sync"
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
}

func newSplit(socket net.Listener, config *tls.Config) *split {
	s := &split{socket: socket, done: make(chan struct{})}
	if config != nil {
		s.tls = config.Clone()
		s.tls.NextProtos = []string{"h2", "http/1.1"}
	}
	s.rpc, s.http = &branch{split: s, conns: make(chan net.Conn)}, &branch{split: s, conns: make(chan net.Conn)}
	return s
}

// mostGreeting bounds how many connections may be about to say what they want.
const mostGreeting = 256

// run accepts connections until the socket closes.
func (s *split) run() {
	defer s.greeting.Wait()
	room := make(chan struct{}, mostGreeting)
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
		select {
		case room <- struct{}{}:
		case <-s.done:
			_ = conn.Close()
			return
		}
		s.greeting.Go(func() {
			defer func() { <-room }()
			s.greet(conn)
		})
	}
}

// greet finds out what a connection speaks, and hands it on.
func (s *split) greet(conn net.Conn) {
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
	if s.tls != nil {
		conn = tls.Server(conn, s.tls)
	}
	peeked := &peekedConn{Conn: conn, r: bufio.NewReaderSize(conn, 512)}
	start, err := peeked.r.Peek(3)
	if err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	to := s.http
	if string(start) == "PRI" {
		to = s.rpc
	}
	select {
	case to.conns <- peeked:
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
}

func (c *peekedConn) Read(b []byte) (int, error) { return c.r.Read(b) }

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
