package rpc

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/cluster/protocoltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cable is a way through which connections go, until it is cut.
type cable struct {
	net.Listener
	to    string
	mu    sync.Mutex
	conns []net.Conn
	work  sync.WaitGroup
}

func newCable(t *testing.T, to string) *cable {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{Listener: l, to: to}
	c.work.Go(c.run)
	t.Cleanup(func() { _ = l.Close(); c.cut(); c.work.Wait() })
	return c
}

func (c *cable) run() {
	for {
		in, err := c.Accept()
		if err != nil {
			return
		}
		out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", c.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		c.mu.Lock()
		c.conns = append(c.conns, in, out)
		c.mu.Unlock()
		for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
			c.work.Go(func() {
				_, _ = io.Copy(way[0], way[1])
				_ = way[0].Close()
				_ = way[1].Close()
			})
		}
	}
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
	c.conns = nil
}

// linked is a listener and a dialler with the same security on both sides.
func linked(t *testing.T, listen ListenOptions, dial DialOptions) (*Listener, *Dialer, *cable) {
	t.Helper()
	listen.Address, listen.Log = "127.0.0.1:0", zerolog.Nop()
	l, err := Listen(t.Context(), listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := newCable(t, l.Addr().String())
	dial.Address = c.Addr().String()
	if dial.Process == "" {
		dial.Process = "server-1"
	}
	d, err := NewDialer(dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return l, d, c
}

func TestGRPCConforms(t *testing.T) {
	t.Parallel()
	protocoltest.Run(t, func(t *testing.T) protocoltest.Link {
		l, d, c := linked(t, ListenOptions{}, DialOptions{})
		return protocoltest.Link{Dialer: d, Listener: l, Break: c.cut}
	})
}

func TestGRPCOverTLSConforms(t *testing.T) {
	t.Parallel()
	node, server := certificates(t)
	protocoltest.Run(t, func(t *testing.T) protocoltest.Link {
		l, d, c := linked(t, ListenOptions{Security: Security{TLS: node, Token: secret.New("secret")}},
			DialOptions{Security: Security{TLS: server, Token: secret.New("secret")}})
		return protocoltest.Link{Dialer: d, Listener: l, Break: c.cut}
	})
}
