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
	if l.mayHold && l.gap < busyGap && (left < 0 || left > int64(busyWait)) {
		l.letOthers()
		var over bool
		if n, over = l.poll(busyWait); over {
			l.gap = busyGap
		}
	} else {
		n = l.block(left)
	}
	l.asleep.Store(false)
	l.waited = true
	return n
}

// most is how many events the loop takes at once. A target on the same machine and
// the loop take turns; with more connections than one of these, shorter turns find what
// both touch still in the processor's cache.
func (l *eventLoop) most() int {
	if l.watched > maxReady {
		return manyReady
	}
	return maxReady
}

// poll waits without telling the scheduler; over reports that d has passed.
func (l *eventLoop) poll(d time.Duration) (ready int, over bool) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll),
		uintptr(unsafe.Pointer(unsafe.SliceData(l.ready))), uintptr(l.most()), uintptr(d.Milliseconds()), 0, 0)
	if errno != 0 {
		return 0, false // a signal; the loop comes back
	}
	return int(n), n == 0
}

// yielding decides whether a loop lets the threads that wait for its
// processor go first, before it asks for events.
//
// Where the server's sessions share the loop's processor, they have their
// answers ready when it is back: it finds many at once, and the sessions need not wake
// it. Elsewhere nobody waits and the call is for nothing, or somebody takes the processor for long.
// Both show in how long it takes.
type yielding struct {
	score int
	skip  int
	// rest is until when none is tried.
	rest int64
}

const (
	// A call that takes less has let nobody run.
	yieldNothing = 2_000
	// One that takes more than a session's part for each connection, and some time
	// besides, has let somebody run who is no session.
	yieldSession = 50_000
	yieldExcess  = 500_000
	yieldRest    = int64(time.Second)
	// While it is of no use, one wait in so many tries.
	yieldProbe = 64
	yieldScore = 16
)

// due reports whether this wait should yield.
func (y *yielding) due(now int64) bool {
	if now < y.rest {
		return false
	}
	if y.score > 0 {
		return true
	}
	y.skip++
	return y.skip%yieldProbe == 0
}

// took notes how long a yield with so many connections lasted, in ns.
func (y *yielding) took(ns, now int64, connections int) {
	switch {
	case ns < yieldNothing:
		y.score = max(y.score-1, 0)
	case ns > yieldSession*int64(connections)+yieldExcess:
		y.score, y.rest = 0, now+yieldRest
	default:
		y.score = min(y.score+2, yieldScore)
	}
}

func (l *eventLoop) letOthers() {
	if !l.yield.due(l.read) {
		return
	}
	before := l.g.clock.now()
	_, _, _ = syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	after := l.g.clock.now()
	l.yield.took(after-before, after, l.watched)
}

// block waits as everything else does; left is in ns, negative for ever.
func (l *eventLoop) block(left int64) int {
	var until *unix.Timespec
	if left >= 0 {
		t := unix.NsecToTimespec(left)
		until = &t
	}
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.epoll),
		uintptr(unsafe.Pointer(unsafe.SliceData(l.ready))), uintptr(len(l.ready)), uintptr(unsafe.Pointer(until)), 0, 0)
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
