package load

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wait waits for events, mail, or the next timer, and returns how many events are ready.
func (l *eventLoop) wait() int {
	left := int64(-1)
	if len(l.timers) > 0 {
		left = max(l.timers[0].event.until-l.g.clock.now(), 0)
	}
	l.asleep.Store(true)
	if l.mail.Load() {
		left = 0
	}
	var n int
	if hold := l.gap < busyGap && (left < 0 || left > int64(busyWait)); hold && holding.Add(1) <= l.mayHold {
		n = l.poll(busyWait)
		holding.Add(-1)
		if n == 0 {
			l.gap = busyGap
		}
	} else {
		if hold {
			holding.Add(-1)
		}
		n = l.block(left)
	}
	l.asleep.Store(false)
	l.waited = true
	return n
}

// poll waits without telling the scheduler.
func (l *eventLoop) poll(d time.Duration) int {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(unsafe.SliceData(l.ready))), uintptr(len(l.ready)), uintptr(d.Milliseconds()), 0, 0)
	if errno != 0 {
		return 0 // a signal; the loop comes back
	}
	return int(n)
}

// block waits as everything else does; left is in ns, negative for ever.
func (l *eventLoop) block(left int64) int {
	var until *unix.Timespec
	if left >= 0 {
		t := unix.NsecToTimespec(left)
		until = &t
	}
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.epoll), uintptr(unsafe.Pointer(unsafe.SliceData(l.ready))), uintptr(len(l.ready)), uintptr(unsafe.Pointer(until)), 0, 0)
	if errno == unix.ENOSYS {
		ms := -1
		if left >= 0 {
			ms = int((left + 999_999) / 1_000_000)
		}
		ready, err := unix.EpollWait(l.epoll, l.ready, ms)
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

// eventTimers is a heap of the slots that wait for a time.
type eventTimers []*slot

func (t eventTimers) Len() int           { return len(t) }
func (t eventTimers) Less(i, j int) bool { return t[i].event.until < t[j].event.until }
func (t eventTimers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].event.place, t[j].event.place = i, j
}

// Push implements heap.Interface.
func (t *eventTimers) Push(x any) {
	s := x.(*slot)
	s.event.place = len(*t)
	*t = append(*t, s)
}

// Pop implements heap.Interface.
func (t *eventTimers) Pop() any {
	old := *t
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	return s
}
