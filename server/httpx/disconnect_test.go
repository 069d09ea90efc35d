package httpx_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/server/httpx"
)

// wrapped is a connection inside of another, as the server has them.
type wrapped struct{ net.Conn }

func (w wrapped) NetConn() net.Conn { return w.Conn }

func pair(t *testing.T) (server net.Conn, client *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = s.Close(), c.Close() })
	return wrapped{s}, c.(*net.TCPConn)
}

func ended(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(time.Minute):
		return false
	}
}

// TestAClientThatIsGone: closed, reset or half closed, the context ends.
func TestAClientThatIsGone(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn) error{
		"closed":      (*net.TCPConn).Close,
		"half closed": (*net.TCPConn).CloseWrite,
		"reset": func(c *net.TCPConn) error {
			if err := c.SetLinger(0); err != nil {
				return err
			}
			return c.Close()
		},
	} {
		server, client := pair(t)
		ctx, stop := httpx.WatchDisconnect(t.Context(), server)
		if ctx.Err() != nil {
			t.Errorf("%s: it ended before", name)
		}
		if err := leave(client); err != nil {
			t.Fatal(err)
		}
		if !ended(ctx) {
			t.Errorf("%s: the context goes on", name)
		}
		stop()
	}
}

// TestAClientThatTakesItsLeave: over TLS it sends a word before it closes, which hides the end from who looks at what
// comes next alone.
func TestAClientThatTakesItsLeave(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what was sent hides the end of the connection here")
	}
	below, client := pair(t)
	cert, key, err := httpx.Sign([]string{"127.0.0.1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	own, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	server := tls.Server(below, &tls.Config{Certificates: []tls.Certificate{own}})
	other := tls.Client(client, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
	shaken := make(chan error, 1)
	go func() { shaken <- server.HandshakeContext(t.Context()) }()
	if err := errors.Join(other.HandshakeContext(t.Context()), <-shaken); err != nil {
		t.Fatal(err)
	}
	ctx, stop := httpx.WatchDisconnect(t.Context(), server)
	defer stop()
	if ctx.Err() != nil {
		t.Error("it ended before")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if !ended(ctx) {
		t.Error("the context goes on")
	}
}

// TestAClientThatStays: what it sends meanwhile is there afterwards, and reading is not bounded.
func TestAClientThatStays(t *testing.T) {
	for _, early := range []bool{true, false} {
		server, client := pair(t)
		// The bound of the request before is over.
		if err := server.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
		ctx, stop := httpx.WatchDisconnect(t.Context(), server)
		if early {
			if _, err := client.Write([]byte("next")); err != nil {
				t.Fatal(err)
			}
		}
		if ctx.Err() != nil {
			t.Error("the context ended")
		}
		stop()
		if ctx.Err() == nil {
			t.Error("the context goes on after stop")
		}
		if !early {
			if _, err := client.Write([]byte("next")); err != nil {
				t.Fatal(err)
			}
		}
		b := make([]byte, 4)
		if n, err := server.Read(b); err != nil || string(b[:n]) != "next" {
			t.Errorf("early %v: %q, %v", early, b[:n], err)
		}
	}
	inside, outside := net.Pipe() // no socket
	ctx, stop := httpx.WatchDisconnect(t.Context(), inside)
	_ = outside.Close()
	if ctx.Err() != nil {
		t.Error("a pipe was watched")
	}
	stop()
}
