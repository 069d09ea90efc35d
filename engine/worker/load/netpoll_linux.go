package load

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/loadstone-db/loadstone/engine/base/host"
)

// poller waits for sockets, for a bell that others ring, and for a time. All but Ring
// is for the one goroutine that waits, which should be locked to its thread.
type poller struct {
	epoll int
	bell  int // an eventfd; written to wake who waits
	now   func() int64
	ready []unix.EpollEvent
	yield yieldPolicy
	// read is the last reading of the clock that Answered was told, gap a running mean of
	// how long waits last, in ns; waited is true from a wait to the next answer.
	read, gap int64
	waited    bool
	// ownsProcessor: there is a processor for it alone, and it may wait without telling the scheduler.
	ownsProcessor bool
}

const (
	maxReady  = 64
	manyReady = 32
	// One whose waits are shorter than busyGap waits without telling the
	// scheduler, which saves more than a tenth of the CPU of an operation, and at most
	// for busyWait. While it does, its processor, which was lent to it, runs nothing else;
	// the signal by which the scheduler and the garbage collector stop a goroutine ends the wait.
	busyGap  = 2_000_000
	busyWait = 5 * time.Millisecond
)

// newPoller returns a poller that reads the time, in ns, with now.
func newPoller(now func() int64) (*poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making an epoll: %w", err)
	}
	p := &poller{epoll: epoll, bell: -1, now: now, ready: make([]unix.EpollEvent, maxReady), gap: busyGap}
	if p.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		// Edge-triggered, so that it need not be read.
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, p.bell,
			&unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(p.bell)})
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("making an eventfd: %w", err)
	}
	return p, nil
}

// Close gives back what the system gave; nobody may ring afterwards.
func (p *poller) Close() {
	_ = unix.Close(p.epoll)
	if p.bell >= 0 {
		_ = unix.Close(p.bell)
	}
}

// AcquireProcessor takes a processor for the one who waits, if there is one.
func (p *poller) AcquireProcessor() { p.ownsProcessor = host.LendProcessor() }

// ReleaseProcessor gives back what Hold took.
func (p *poller) ReleaseProcessor() {
	if p.ownsProcessor {
		p.ownsProcessor = false
		host.ReturnProcessor()
	}
}

// Ring ends the wait that is under way, or the next one.
func (p *poller) Ring() {
	one := [8]byte{1}
	_, _ = unix.Write(p.bell, one[:]) // full means that it rings already
}

// Control watches a socket for events, changes what for, or watches it no longer, as op says.
func (p *poller) Control(op, fd int, events uint32) error {
	return unix.EpollCtl(p.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// Rang reports whether an event is the bell's.
func (p *poller) Rang(e *unix.EpollEvent) bool { return int(e.Fd) == p.bell }

// NoteIdle notes the time without an answer.
func (p *poller) NoteIdle(now int64) { p.read = now }

// NoteActivity notes that something has arrived, and learns how long waits last.
func (p *poller) NoteActivity(now int64) {
	if p.waited {
		p.waited = false
		p.gap += (now - p.read - p.gap) / 8
	}
	p.read = now
}

// Wait returns what has happened to so many sockets, after left ns at most; negative
// is for ever. The events are valid until the next wait.
func (p *poller) Wait(left int64, watched int) []unix.EpollEvent {
	var n int
	if p.ownsProcessor && p.gap < busyGap && (left < 0 || left > int64(busyWait)) {
		p.letOthers(watched)
		var over bool
		if n, over = p.poll(busyWait, watched); over {
			p.gap = busyGap
		}
	} else {
		n = p.block(left)
	}
	p.waited = true
	return p.ready[:n]
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

// poll waits without telling the scheduler; over reports that d has passed.
func (p *poller) poll(d time.Duration, watched int) (ready int, over bool) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll),
		uintptr(unsafe.Pointer(unsafe.SliceData(p.ready))), uintptr(maxEvents(watched)), uintptr(d.Milliseconds()), 0, 0)
	if errno != 0 {
		return 0, false // a signal; the loop comes back
	}
	return int(n), n == 0
}

func (p *poller) letOthers(watched int) {
	if !p.yield.due(p.read) {
		return
	}
	before := p.now()
	_, _, _ = syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	after := p.now()
	p.yield.took(after-before, after, watched)
}

// block waits as everything else does; left is in ns, negative for ever.
func (p *poller) block(left int64) int {
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
