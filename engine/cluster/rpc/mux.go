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

// protocolMux tells on one address who speaks gRPC from who speaks HTTP: a connection
// of the former begins with the preface of HTTP/2.
type protocolMux struct {
	socket          net.Listener
	tls             *tls.Config
	rpc, http       *muxListener
	done            chan struct{}
	once            sync.Once
	detecting       sync.WaitGroup
	unauthenticated *unauthenticatedConns
	// onRejected is called when who dials ends the handshake; it may be nil.
	onRejected func()
}

func newProtocolMux(socket net.Listener, config *tls.Config) *protocolMux {
	s := &protocolMux{socket: socket, done: make(chan struct{}), unauthenticated: newUnauthenticatedConns()}
	if config != nil {
		s.tls = config.Clone()
		s.tls.NextProtos = []string{"h2", "http/1.1"}
	}
	s.rpc, s.http = &muxListener{split: s, conns: make(chan net.Conn)}, &muxListener{split: s, conns: make(chan net.Conn)}
	return s
}

// run accepts connections until the socket closes.
func (s *protocolMux) run() {
	defer s.detecting.Wait()
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
		s.unauthenticated.add(peeked)
		s.detecting.Go(func() { s.detect(peeked) })
	}
}

// detect finds out what a connection speaks, and hands it on.
func (s *protocolMux) detect(conn *peekedConn) {
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-s.done:
			_ = conn.Close()
		case <-stopped:
		}
	}()
	_ = conn.SetDeadline(time.Now().Add(helloTimeout))
	start, err := conn.r.Peek(3)
	if err != nil {
		var remote *net.OpError
		if s.onRejected != nil && errors.As(err, &remote) && remote.Op == "remote error" {
			s.onRejected()
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
func (s *protocolMux) Close() (err error) {
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
	unauthenticated *unauthenticatedConns
	place           *list.Element
	deadline        *time.Timer
	// received is what it has sent while it was a stranger; one reads at a time.
	received      int
	authenticated atomic.Bool
}

var errTooMuch = errors.New("a stranger says too much")

func (c *peekedConn) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	if c.authenticated.Load() {
		return n, err
	}
	if c.received += n; c.received > maxUnauthenticatedBytes {
		_ = c.raw.Close()
		return 0, errTooMuch
	}
	return n, err
}

func (c *peekedConn) Close() error {
	c.unauthenticated.remove(c)
	return c.Conn.Close()
}

// muxListener is the listener of one of the two.
type muxListener struct {
	split *protocolMux
	conns chan net.Conn
}

func (b *muxListener) Accept() (net.Conn, error) {
	select {
	case conn := <-b.conns:
		return conn, nil
	case <-b.split.done:
		return nil, net.ErrClosed
	}
}

// Close leaves the socket to the split.
func (b *muxListener) Close() error { return nil }

func (b *muxListener) Addr() net.Addr { return b.split.socket.Addr() }
