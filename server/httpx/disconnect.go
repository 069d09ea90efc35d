// This part ends the context of a request when its client goes away, which fasthttp does not tell.

package httpx

import (
	"context"
	"net"
	"syscall"
	"time"
)

// WatchDisconnect returns a context that ends with the request's, or once the client has closed its connection or the
// connection is broken. A client that only says that it sends no more is taken for gone, as net/http takes it. Nothing
// may read from the connection until stop was called, which has to be; it leaves the connection without a read
// deadline.
//
// Beside Linux, a client that has sent its next request already is not watched: what it sent hides its end.
func WatchDisconnect(ctx context.Context, conn net.Conn) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	raw := rawConnOf(conn)
	if raw == nil || conn.SetReadDeadline(time.Time{}) != nil {
		return ctx, cancel
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The runtime waits until there is something to read; the bound of stop ends that.
		if err := raw.Read(func(fd uintptr) (over bool) {
			closed, waits := peerClosed(fd)
			if closed {
				cancel()
			}
			return !waits
		}); err != nil && conn.SetReadDeadline(time.Time{}) != nil {
			cancel() // closed by this side
		}
	}()
	return ctx, func() {
		_ = conn.SetReadDeadline(time.Unix(1, 0))
		<-done
		_ = conn.SetReadDeadline(time.Time{})
		cancel()
	}
}

// rawConnOf is the socket of a connection, nil where there is none.
func rawConnOf(conn net.Conn) syscall.RawConn {
	for {
		if c, ok := conn.(syscall.Conn); ok {
			raw, err := c.SyscallConn()
			if err != nil {
				return nil
			}
			return raw
		}
		inside, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		conn = inside.NetConn()
	}
}
