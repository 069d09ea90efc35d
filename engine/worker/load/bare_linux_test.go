package load_test

import (
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/jackc/pgx/v5/pgproto3"
)

// bare drives connections as barely as can be: two threads that send the same
// bytes and count what comes back. It parses, decides and records nothing. What it loses
// between few and many connections is lost by the system and the target, and by any client.
func bare(b *testing.B, address string, connections int, length time.Duration) (tps, cost float64) {
	b.Helper()
	const threads = 2
	var (
		wg    sync.WaitGroup
		ends  atomic.Bool
		total [threads]struct {
			n atomic.Int64
			_ [56]byte
		}
		request, fds = bareConnections(b, address, connections)
	)
	for i := range threads {
		mine := fds[i*connections/threads : (i+1)*connections/threads]
		epoll, err := unix.EpollCreate1(0)
		if err != nil {
			b.Fatal(err)
		}
		for _, fd := range mine {
			if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd,
				&unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(fd)}); err != nil {
				b.Fatal(err)
			}
		}
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			buf, ready := make([]byte, 4096), make([]unix.EpollEvent, 64)
			for _, fd := range mine {
				_, _ = unix.Write(fd, request)
			}
			for !ends.Load() {
				n, _ := unix.EpollWait(epoll, ready, 100)
				for _, e := range ready[:max(n, 0)] {
					if n, err := unix.Read(int(e.Fd), buf); err != nil || n <= 0 || buf[n-6] != 'Z' {
						continue // an edge from before
					}
					total[i].n.Add(1)
					_, _ = unix.Write(int(e.Fd), request)
				}
			}
			_ = unix.Close(epoll)
		})
	}
	time.Sleep(time.Second)
	sum := func() (n int64) {
		for i := range total {
			n += total[i].n.Load()
		}
		return n
	}
	from, used, begin := sum(), cpu(), time.Now()
	time.Sleep(length)
	n := float64(sum() - from)
	tps, cost = n/time.Since(begin).Seconds(), float64((cpu()-used).Nanoseconds())/n
	ends.Store(true)
	wg.Wait()
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
	return tps, cost
}

// bareConnections opens sockets that do not block, with a prepared statement, and gives the request that runs it.
func bareConnections(b *testing.B, address string, connections int) (request []byte, fds []int) {
	var hello []byte
	for _, m := range []pgproto3.FrontendMessage{
		&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "null"}},
		&pgproto3.Parse{Name: "ls0", Query: lookupPlan().Statements[0].SQL}, &pgproto3.Sync{},
	} {
		var err error
		if hello, err = m.Encode(hello); err != nil {
			b.Fatal(err)
		}
	}
	for _, m := range []pgproto3.FrontendMessage{
		&pgproto3.Bind{PreparedStatement: "ls0", ParameterFormatCodes: []int16{1},
			Parameters: [][]byte{{0, 0, 0, 0, 0, 0, 0, 7}}, ResultFormatCodes: []int16{1}},
		&pgproto3.Execute{}, &pgproto3.Sync{},
	} {
		var err error
		if request, err = m.Encode(request); err != nil {
			b.Fatal(err)
		}
	}
	for range connections {
		c, err := (&net.Dialer{}).DialContext(b.Context(), "unix", address)
		if err != nil {
			b.Fatal(err)
		}
		front := pgproto3.NewFrontend(c, c)
		_, err = c.Write(hello)
		for ready := 0; err == nil && ready < 2; {
			var m pgproto3.BackendMessage
			if m, err = front.Receive(); err == nil {
				if _, ok := m.(*pgproto3.ReadyForQuery); ok {
					ready++
				}
			}
		}
		raw, err2 := c.(*net.UnixConn).SyscallConn()
		if err := errors.Join(err, err2); err != nil {
			b.Fatal(err)
		}
		var fd int
		if err := raw.Control(func(original uintptr) {
			fd,
				err2 = unix.FcntlInt(original, unix.F_DUPFD_CLOEXEC, 0)
		}); err != nil || err2 != nil {
			b.Fatal(err, err2)
		}
		_ = c.Close()
		fds = append(fds, fd)
	}
	return request, fds
}
