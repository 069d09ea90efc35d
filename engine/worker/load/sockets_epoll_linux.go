package load

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/loadstone-db/loadstone/engine"
)

// epollSockets are told by epoll which sockets can be read, and read and write each with a call.
type epollSockets struct {
	l     *eventLoop
	epoll int
	bell  int // an eventfd; written to wake who waits
	ready []unix.EpollEvent
	n     int // of them that happened
	// buf is what answers are read into, and requests written in.
	buf []byte
	// touched is of no use: what is added to it must be read.
	touched int64
}

// Sockets are watched for edges: the kernel need not look again at each of those that it
// has reported. What arrives makes an edge, and a short read therefore ends the
// reading; only a stream's end may come without one after the last bytes, see handleEvent.
const (
	readable = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	hungUp   = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
)

const (
	loopBuffer = 16 << 10
	maxReady   = 64
	manyReady  = 32
)

func newEpollSockets(l *eventLoop) (*epollSockets, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making an epoll: %w", err)
	}
	p := &epollSockets{l: l, epoll: epoll, bell: -1, ready: make([]unix.EpollEvent, maxReady),
		buf: make([]byte, loopBuffer)}
	if p.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		// Edge-triggered, so that it need not be read.
		err = p.control(unix.EPOLL_CTL_ADD, p.bell, unix.EPOLLIN|unix.EPOLLET)
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("making an eventfd: %w", err)
	}
	return p, nil
}

// close gives back what the system gave; nobody may wake it afterwards.
func (p *epollSockets) close() {
	_ = unix.Close(p.epoll)
	if p.bell >= 0 {
		_ = unix.Close(p.bell)
	}
}

func (p *epollSockets) engine() engine.IOEngine { return engine.IOEvents }

func (p *epollSockets) wake() {
	one := [8]byte{1}
	_, _ = unix.Write(p.bell, one[:]) // full means that it rings already
}

func (p *epollSockets) control(op, fd int, events uint32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}))
}

func (p *epollSockets) watch(s *slot) error {
	return p.control(unix.EPOLL_CTL_ADD, s.event.fd, readable)
}

// forget has nothing to do: closing the socket ends its watch.
func (p *epollSockets) forget(*slot) {}

func (p *epollSockets) room() []byte { return p.buf }

func (p *epollSockets) send(s *slot, request []byte) error {
	n, err := sendNow(s.event.fd, request)
	if err == nil && n < len(request) {
		err = p.l.full(s, request[n:])
	}
	return err
}

func (p *epollSockets) full(s *slot) error {
	return p.control(unix.EPOLL_CTL_MOD, s.event.fd, unix.EPOLLOUT)
}

func (p *epollSockets) emptied(s *slot) error {
	return p.control(unix.EPOLL_CTL_MOD, s.event.fd, readable)
}

func (p *epollSockets) wait(left int64) bool {
	if p.l.pace.Holds(left) {
		p.l.pace.LetOthers(p.l.watched)
		var over bool
		if p.n, over = p.hold(busyWait); over {
			p.l.pace.NoteNothing()
		}
	} else {
		p.n = p.block(left)
	}
	return p.n > 0
}

// maxEvents is how many events are taken at once. A target on the same machine and
// the loop take turns; with more connections than one of these, shorter turns find what
// both touch still in the processor's cache.
func maxEvents(watched int) int {
	if watched > maxReady {
		return manyReady
	}
	return maxReady
}

// hold waits without telling the scheduler; over reports that d has passed.
func (p *epollSockets) hold(d time.Duration) (ready int, over bool) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll),
		uintptr(unsafe.Pointer(unsafe.SliceData(p.ready))), uintptr(maxEvents(p.l.watched)), uintptr(d.Milliseconds()), 0, 0)
	if errno != 0 {
		return 0, false // a signal; the loop comes back
	}
	return int(n), n == 0
}

// block waits as everything else does; left is in ns, negative for ever.
func (p *epollSockets) block(left int64) int {
	var until *unix.Timespec
	if left >= 0 {
		t := unix.NsecToTimespec(left)
		until = &t
	}
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll),
		uintptr(unsafe.Pointer(unsafe.SliceData(p.ready))), uintptr(len(p.ready)), uintptr(unsafe.Pointer(until)), 0, 0)
	if errno == unix.ENOSYS {
		ms := -1
		if left >= 0 {
			ms = int((left + 999_999) / 1_000_000)
		}
		ready, err := unix.EpollWait(p.epoll, p.ready, ms)
		if err != nil {
			return 0
		}
		return ready
	}
	if errno != 0 {
		return 0
	}
	return int(n)
}

func (p *epollSockets) handle() {
	events := p.ready[:p.n]
	p.n = 0
	p.touch(events)
	for i := range events {
		event := &events[i]
		if int(event.Fd) == p.bell {
			continue
		}
		if s := p.l.find(int(event.Fd)); s != nil {
			p.handleEvent(s, event.Events)
		}
	}
}

// touch reads a word in each part of the slots that are about to be looked at.
// With thousands of connections none of it is in the cache any more; reading one slot
// after the other waits for each part in turn, and this waits for many at once.
func (p *epollSockets) touch(events []unix.EpollEvent) {
	var sum int64
	for i := range events {
		if s := p.l.find(int(events[i].Fd)); s != nil {
			sum += s.event.first + s.due + s.ended + int64(s.work.Delay) + s.lag
		}
	}
	for i := range events {
		if s := p.l.find(int(events[i].Fd)); s != nil {
			sum += s.event.conn.Prefetch()
		}
	}
	p.touched += sum
}

// handleEvent takes an event of the slot's socket.
func (p *epollSockets) handleEvent(s *slot, events uint32) {
	fd := s.event.fd
	if s.event.at == atSending {
		p.l.writable(s)
	} else {
		p.receive(s)
	}
	if events&hungUp != 0 && p.l.find(fd) == s && s.event.at != atSending && !s.event.conn.Broken() {
		// The end comes behind the last bytes, and its edge has been spent on them.
		// Watching anew reports it again.
		_ = p.control(unix.EPOLL_CTL_MOD, fd, readable)
	}
}

// receive reads what has arrived of the answer. What comes behind it makes the socket readable again.
func (p *epollSockets) receive(s *slot) {
	fd := s.event.fd
	for {
		n, errno := receiveNow(fd, p.buf)
		switch {
		case errno == unix.EAGAIN:
			return
		case errno != 0:
			p.l.lost(s, os.NewSyscallError("receive", errno))
			return
		case n == 0:
			p.l.lost(s, io.EOF)
			return
		}
		if !p.l.received(s, p.buf[:n]) || n < len(p.buf) {
			return
		}
	}
}
