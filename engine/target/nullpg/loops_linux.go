package nullpg

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loops are the event loops of a server. Its mutex guards them.
type loops struct {
	all  []*loop
	next int
}

const (
	// maxLoops is more than a generator on the same machine leaves processors for.
	maxLoops = 4
	// Sockets are watched for edges, see happened.
	watched    = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	hungUp     = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	maxReady   = 64
	manyReady  = 32
	loopBuffer = 16 << 10
)

// take gives a connection to a loop; false says that it cannot be. It needs s.mu.
func (ls *loops) take(s *Server, c net.Conn) bool {
	if ls.all == nil {
		for range min(runtime.GOMAXPROCS(0), maxLoops) {
			l, err := newLoop(s)
			if err != nil {
				break
			}
			ls.all = append(ls.all, l)
			s.wg.Go(l.run)
		}
	}
	if len(ls.all) == 0 {
		return false
	}
	// The descriptor is a duplicate, and the original is closed: the runtime's poller would be woken, too.
	plain, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := plain.SyscallConn()
	if err != nil {
		return false
	}
	fd := -1
	if err := raw.Control(func(original uintptr) {
		if copied, err := unix.FcntlInt(original, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			fd = copied
		}
	}); err != nil || fd < 0 {
		return false
	}
	_ = c.Close()
	ls.next++
	ls.all[ls.next%len(ls.all)].add(fd)
	return true
}

// end ends the loops. It needs the server's mutex.
func (ls *loops) end() {
	for _, l := range ls.all {
		l.post(nil)
	}
	ls.all = nil
}

// loop serves connections whose answers are due at once.
type loop struct {
	s     *Server
	epoll int
	bell  int // an eventfd; written when there is mail
	// byFD finds a socket's connection.
	byFD    []*loopConn
	watched int
	// touched is of no use: what is added to it must be read, see touch.
	touched int

	mu    sync.Mutex
	inbox []*loopConn // nil: the end
	over  bool
}

// loopConn is a connection of a loop.
type loopConn struct {
	session
	l  *loop
	fd int
	// rest is what the socket had no room for.
	rest []byte
}

func newLoop(s *Server) (*loop, error) {
	l := &loop{s: s}
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("making an epoll: %w", err)
	}
	if l.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		if err = l.control(unix.EPOLL_CTL_ADD, l.bell, watched); err == nil {
			return l, nil
		}
		_ = unix.Close(l.bell)
	}
	_ = unix.Close(l.epoll)
	return nil, fmt.Errorf("making an eventfd: %w", err)
}

func (l *loop) control(op, fd int, events uint32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}))
}

func (l *loop) add(fd int) {
	c := &loopConn{l: l, fd: fd}
	c.session = session{s: l.s, to: c, params: map[string]int{}}
	l.post(c)
}

// post brings a connection, or with nil the end.
func (l *loop) post(c *loopConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		if c != nil {
			_ = unix.Close(c.fd)
		}
		return
	}
	l.inbox = append(l.inbox, c)
	one := [8]byte{1}
	_, _ = unix.Write(l.bell, one[:]) // full means that it rings already
}

func (l *loop) run() {
	ready := make([]unix.EpollEvent, maxReady)
	buf := make([]byte, loopBuffer)
	full := false
	out := make([]byte, 0, loopBuffer) // of whichever session is being answered
	for {
		if full {
			// The generator takes these answers while what both touch is in the cache.
			_, _, _ = syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
		most := maxReady
		if l.watched > maxReady {
			most = manyReady
		}
		n, err := unix.EpollWait(l.epoll, ready[:most], -1)
		full = n == manyReady && most == manyReady
		if err != nil && err != unix.EINTR {
			n = 0
		}
		l.touch(ready[:max(n, 0)])
		for i := range max(n, 0) {
			e := &ready[i]
			if int(e.Fd) == l.bell {
				if !l.receivePosts() {
					l.close()
					return
				}
				continue
			}
			c := l.find(int(e.Fd))
			if c == nil {
				continue
			}
			c.out = out[:0]
			if err := c.handleEvent(e.Events, buf); err != nil {
				l.drop(c)
				continue
			}
			out, c.out = c.out[:0], nil
		}
	}
}

func (l *loop) find(fd int) *loopConn {
	if fd < len(l.byFD) {
		return l.byFD[fd]
	}
	return nil
}

// touch reads what is about to be needed of each connection, so that the loop waits
// for the memory of many at once; of thousands none is in the cache any more.
func (l *loop) touch(events []unix.EpollEvent) {
	sum := 0
	for i := range events {
		if c := l.find(int(events[i].Fd)); c != nil {
			sum += c.fd + c.ran + len(c.in)
		}
	}
	l.touched += sum
}

// receivePosts takes what was posted; false is the end.
func (l *loop) receivePosts() bool {
	l.mu.Lock()
	inbox := l.inbox
	l.inbox = nil
	l.mu.Unlock()
	for i, c := range inbox {
		if c == nil {
			for _, c := range inbox[i+1:] {
				if c != nil {
					_ = unix.Close(c.fd)
				}
			}
			return false
		}
		if c.fd >= len(l.byFD) {
			l.byFD = append(l.byFD, make([]*loopConn, c.fd+1-len(l.byFD))...)
		}
		l.byFD[c.fd] = c
		l.watched++
		if err := l.control(unix.EPOLL_CTL_ADD, c.fd, watched); err != nil {
			l.drop(c)
		}
	}
	return true
}

func (l *loop) drop(c *loopConn) {
	l.byFD[c.fd] = nil
	l.watched--
	_ = unix.Close(c.fd)
}

func (l *loop) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, c := range l.inbox {
		if c != nil {
			_ = unix.Close(c.fd)
		}
	}
	for _, c := range l.byFD {
		if c != nil {
			_ = unix.Close(c.fd)
		}
	}
	_ = unix.Close(l.bell)
	_ = unix.Close(l.epoll)
}

// handleEvent reads and answers. A read that does not fill buf has taken
// everything, but for the end of the stream, which has no edge of its own.
func (c *loopConn) handleEvent(events uint32, buf []byte) error {
	if len(c.rest) > 0 && events&(unix.EPOLLOUT|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		rest := c.rest
		c.rest = nil
		if _, err := c.Write(rest); err != nil {
			return err
		}
		if len(c.rest) == 0 {
			return c.l.control(unix.EPOLL_CTL_MOD, c.fd, watched) // which tells again what has arrived
		}
	}
	// Nothing is read from a client that does not take its answers: they would pile up here.
	for len(c.rest) == 0 {
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))),
			uintptr(len(buf)), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			return nil
		case errno != 0:
			return os.NewSyscallError("receive", errno)
		case n == 0:
			return net.ErrClosed
		}
		if err := c.feed(buf[:n]); err != nil {
			return err
		}
		if int(n) < len(buf) && events&hungUp == 0 {
			return nil
		}
	}
	return nil
}

// Write implements io.Writer; it never waits, and keeps what the socket has no room for.
func (c *loopConn) Write(p []byte) (int, error) {
	if len(c.rest) > 0 {
		c.rest = append(c.rest, p...)
		return len(p), nil
	}
	for left := p; len(left) > 0; {
		n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(unsafe.SliceData(left))),
			uintptr(len(left)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			left = left[n:]
		case unix.EINTR:
		case unix.EAGAIN:
			c.rest = append(c.rest, left...)
			return len(p), c.l.control(unix.EPOLL_CTL_MOD, c.fd, watched|unix.EPOLLOUT)
		default:
			return 0, os.NewSyscallError("send", errno)
		}
	}
	return len(p), nil
}
