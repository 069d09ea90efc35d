package load

import (
	"container/heap"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

// eventLoops drives slots with a few goroutines, each of which waits for all of
// its connections at once. An operation costs one write, one read and its part
// of a wait; a goroutine for each connection pays a switch and a wake-up on top.
//
// A slot stays with the loop that its connection entered. What takes long
// happens outside: connections are opened by goroutines of their own, which
// bring the slot back with add. Slots of connections that cannot enter a loop (TLS) are driven
// by goroutines beside it.
type eventLoops struct {
	g     *Group
	plain goroutines
	// expected is how many connections the group has at first.
	expected int
	// entered counts the connections that did enter a loop.
	entered atomic.Int64

	mu     sync.Mutex
	made   []*eventLoop // in the order in which they were made
	failed bool         // to make another
}

// connectionsPerLoop is how many connections are worth a loop of their own.
const connectionsPerLoop = 8

// loopCount is how many loops a group gets: at most half of the processors, since a
// target on the same machine needs the others, but two where there are two. One
// loop beside a busy server leaves a processor idle while it goes through the
// answers, because the kernel puts the backends it wakes on its own processor.
func loopCount(connections, procs int) int {
	most := max(procs/2, min(procs, 2))
	return max(1, min(most, (connections+connectionsPerLoop-1)/connectionsPerLoop))
}

func newEventLoops(g *Group) ioEngine {
	return &eventLoops{g: g, plain: goroutines{g}, expected: g.target}
}

// seat gives a connection its place on the loop that has the fewest, nil when no
// loop can be made. The loops are made when the first connection that can
// enter one arrives, and more as the group grows; none ends before the group does.
func (e *eventLoops) seat() *eventLoop {
	e.mu.Lock()
	defer e.mu.Unlock()
	var least *eventLoop
	seated := 0
	for _, l := range e.made {
		n := int(l.seated.Load())
		seated += n
		if least == nil || n < int(least.seated.Load()) {
			least = l
		}
	}
	for want := loopCount(max(e.expected, seated+1), processors.own()); len(e.made) < want && !e.failed; {
		l, err := newEventLoop(e)
		if err != nil {
			e.g.cfg.Log.Warn().Err(err).Msg("no event loop could be made")
			e.failed = true
			break
		}
		if e.made = append(e.made, l); len(e.made) == 1 {
			go e.watch()
		}
		go l.run()
		least = l
	}
	if least != nil {
		least.seated.Add(1)
	}
	return least
}

// loops are those that there are.
func (e *eventLoops) loops() []*eventLoop {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.made)
}

func (e *eventLoops) name() string {
	if e.entered.Load() > 0 {
		return string(engine.IOEvents)
	}
	return e.plain.name()
}

// watch tells the loops what goroutines see by waiting on channels.
func (e *eventLoops) watch() {
	g := e.g
	tell := func() {
		for _, l := range e.loops() {
			l.post(nil)
		}
	}
	select {
	case <-g.begun:
	case <-g.stopping:
	case <-g.done:
	}
	tell()
	select {
	case <-g.stopping:
	case <-g.done:
	}
	tell()
	<-g.done
	tell()
}

// add puts the slot on a loop; it comes with a new connection each time.
func (e *eventLoops) add(s *slot) {
	conn, ok := s.conn.(target.EventConn)
	if !ok {
		e.plain.add(s)
		return
	}
	l := e.seat()
	if l == nil {
		e.plain.add(s)
		return
	}
	fd, ok := conn.Enter()
	if !ok {
		l.seated.Add(-1)
		e.plain.add(s)
		return
	}
	e.entered.Add(1)
	s.event = eventState{conn: conn, fd: fd, at: atNew}
	s.seat = l
	l.post(s)
}

func (e *eventLoops) nudge(*slot) {
	// The slot may be between two seats; only its loop knows, so all look.
	if e.entered.Load() == 0 {
		return
	}
	for _, l := range e.loops() {
		l.post(nil)
	}
}

// eventAt is what a slot on a loop waits for.
type eventAt uint8

const (
	atNew      eventAt = iota // the group to begin
	atThinking                // its operation to become due
	atIdle                    // an arrival
	atSending                 // room in the socket
	atAnswer                  // the answer
	atPause                   // the time of the next try
)

// eventState is the part of a slot that only its loop uses.
type eventState struct {
	conn target.EventConn
	fd   int
	at   eventAt
	// begun is when the group of operations began, sent when the one in flight did,
	// first when its answer began to arrive, 0 before.
	begun, sent, first int64
	// until is when the wait of atThinking and atPause is over; place is the slot's in the heap.
	until int64
	place int
	// own is the slot's own batch while it executes an arrival.
	own *private
	// handed is what the queue has given since the loop looked last.
	handed atomic.Int32
}

const (
	handedNothing = iota
	handedArrival
	handedLeave
)

// eventLoop waits for the sockets, the timers and the mail of its slots.
type eventLoop struct {
	e     *eventLoops
	g     *Group
	epoll int
	bell  int // an eventfd; written to wake the loop

	// seated counts the connections that were given a place here and have not left it.
	seated atomic.Int32
	// byFD finds a socket's slot, watched counts them.
	byFD    []*slot
	watched int
	timers  eventTimers
	ready   []unix.EpollEvent
	buf     []byte
	// read is the last reading of the clock, woke the one after the last wait.
	read, woke int64
	// gap is a running mean of how long waits last, in ns; waited is true from a
	// wait to the next reading of the clock.
	gap    int64
	waited bool
	yield  yielding
	// mayHold: the loop has a processor of its own, and may wait without telling the scheduler.
	mayHold bool

	asleep atomic.Bool
	mail   atomic.Bool // inbox or all is set
	mu     sync.Mutex
	inbox  []*slot
	all    bool
	closed bool
}

// Sockets are watched for edges: the kernel need not look again at each of those that it
// has reported. What arrives makes an edge, and a short read therefore ends the
// reading; only a stream's end may come without one after the last bytes, see happened.
const (
	readable = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	hungUp   = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
)

const (
	maxReady   = 64
	loopBuffer = 16 << 10
	// A loop whose waits are shorter than busyGap waits without telling the
	// scheduler, which saves more than a tenth of the CPU of an operation, and at most
	// for busyWait. While it does, its processor, which was lent to it, runs nothing else;
	// the signal by which the scheduler and the garbage collector stop a goroutine ends the wait.
	busyGap  = 2_000_000
	busyWait = 5 * time.Millisecond
)

func newEventLoop(e *eventLoops) (*eventLoop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making an epoll: %w", err)
	}
	l := &eventLoop{e: e, g: e.g, gap: busyGap, epoll: epoll, bell: -1, ready: make([]unix.EpollEvent, maxReady), buf: make([]byte, loopBuffer)}
	if l.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		// Edge-triggered, so that it need not be read.
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, l.bell, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(l.bell)})
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("making an eventfd: %w", err)
	}
	return l, nil
}

func (l *eventLoop) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	_ = unix.Close(l.epoll)
	if l.bell >= 0 {
		_ = unix.Close(l.bell)
	}
}

// post asks the loop to look at a slot, or with nil at all of them.
func (l *eventLoop) post(s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if s != nil {
		l.inbox = append(l.inbox, s)
	} else {
		l.all = true
	}
	l.mail.Store(true)
	if l.asleep.Swap(false) {
		one := [8]byte{1}
		_, _ = unix.Write(l.bell, one[:]) // full means that it rings already
	}
}

// hand implements seat.
func (l *eventLoop) hand(s *slot, arrival bool) {
	what := int32(handedLeave)
	if arrival {
		what = handedArrival
	}
	s.event.handed.Store(what)
	l.post(s)
}

func (l *eventLoop) run() {
	defer l.close()
	if l.mayHold = processors.lend(); l.mayHold {
		defer processors.giveBack()
	}
	// The kernel's scheduler judges threads by what they did: one that is always the
	// loop's is placed better than one that also collects and encodes.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.read = l.g.clock.now()
	var inbox []*slot
	for {
		if l.mail.Load() {
			l.mu.Lock()
			inbox, l.inbox = l.inbox, inbox[:0]
			all := l.all
			l.all = false
			l.mail.Store(false)
			l.mu.Unlock()
			for _, s := range inbox {
				l.look(s)
			}
			clear(inbox)
			if all && l.lookAll() {
				return
			}
		}
		l.ring()
		n := l.wait()
		if n > 0 {
			l.woke = l.g.clock.now()
		}
		for i := range n {
			event := &l.ready[i]
			if int(event.Fd) == l.bell {
				continue
			}
			if s := l.byFD[event.Fd]; s != nil {
				l.happened(s, event.Events)
			}
		}
	}
}

// lookAll looks at every slot; it reports true when the group is done.
func (l *eventLoop) lookAll() bool {
	for _, s := range l.byFD {
		if s != nil {
			l.look(s)
		}
	}
	select {
	case <-l.g.done:
		return true
	default:
		return false
	}
}

// look goes on with a slot for which something but its socket may have changed.
func (l *eventLoop) look(s *slot) {
	v := &s.event
	if v.at == atNew && l.find(v.fd) != s {
		if !l.register(s) {
			return
		}
	}
	switch v.at {
	case atNew:
		select {
		case <-l.g.begun:
			s.ended = l.g.clock.now()
			l.proceed(s, false)
		default:
			if s.leaving(l.g) {
				l.leave(s)
			}
		}
	case atThinking:
		if s.leaving(l.g) {
			heap.Remove(&l.timers, v.place)
			s.batch.next -= len(s.work.ops) // not begun: another slot may have it
			l.leave(s)
		}
	case atPause:
		if s.leaving(l.g) {
			heap.Remove(&l.timers, v.place)
			v.sent = l.g.clock.now()
			if l.drive(s, s.progress.giveUp()) {
				l.proceed(s, true)
			}
		}
	case atIdle:
		switch v.handed.Swap(handedNothing) {
		case handedArrival:
			l.serve(s)
		case handedLeave:
			l.leave(s)
		}
	}
}

func (l *eventLoop) find(fd int) *slot {
	if fd < len(l.byFD) {
		return l.byFD[fd]
	}
	return nil
}

// register begins to watch the slot's socket.
func (l *eventLoop) register(s *slot) bool {
	fd := s.event.fd
	if fd >= len(l.byFD) {
		l.byFD = append(l.byFD, make([]*slot, fd+1-len(l.byFD))...)
	}
	l.byFD[fd] = s
	l.watched++
	if err := l.control(unix.EPOLL_CTL_ADD, s, readable); err != nil {
		l.g.fail(err)
		l.leave(s)
		return false
	}
	return true
}

func (l *eventLoop) control(op int, s *slot, events uint32) error {
	return unix.EpollCtl(l.epoll, op, s.event.fd, &unix.EpollEvent{Events: events, Fd: int32(s.event.fd)})
}

// leave ends the slot.
func (l *eventLoop) leave(s *slot) {
	l.unwatch(s)
	l.g.left(s)
}

// unwatch forgets the slot's socket. Closing it, which must follow, ends its watch.
func (l *eventLoop) unwatch(s *slot) {
	if l.find(s.event.fd) == s {
		l.byFD[s.event.fd] = nil
		l.watched--
		l.seated.Add(-1)
	}
}

// proceed takes one group after the other until the slot has to wait. finished
// says that it has executed one before.
func (l *eventLoop) proceed(s *slot, finished bool) {
	for l.next(s, finished) && l.start(s) {
		finished = true
	}
}

// next puts the slot's next group into s.work. It returns false when that is not due, or never will be.
func (l *eventLoop) next(s *slot, finished bool) bool {
	g := l.g
	if g.queue != nil {
		switch g.queue.take(s, finished) {
		case takenArrival:
			return true
		case takenPlace:
			s.event.at = atIdle
		default:
			l.leave(s)
		}
		return false
	}
	if s.leaving(g) || !s.next(g) {
		l.leave(s)
		return false
	}
	if due := g.pacer.due(s.ended, s.work.delay); due > s.ended && due > g.clock.now() {
		l.sleep(s, atThinking, due)
		return false
	}
	return true
}

// serve executes the arrival that the slot was handed.
func (l *eventLoop) serve(s *slot) {
	if l.start(s) {
		l.proceed(s, true)
	}
}

// start begins the group. It returns true when that has ended already, and the slot can take another.
func (l *eventLoop) start(s *slot) bool {
	v := &s.event
	if l.g.queue != nil {
		v.own = s.batch
		s.batch, s.work = s.arrival.batch, s.arrival.work
	}
	v.begun = s.begin(l.g)
	v.sent = v.begun
	return l.drive(s, s.progress.start(s.work.ops))
}

// drive takes the group as far as it goes without waiting. It returns what start does.
func (l *eventLoop) drive(s *slot, next step) bool {
	v := &s.event
	for next != stepDone {
		if next == stepPause {
			l.sleep(s, atPause, v.sent+s.pause(l.g))
			return false
		}
		v.first = 0
		sent, err := v.conn.Send(&s.batch.batch, s.progress.op())
		if err == nil {
			v.at = atAnswer
			if !sent {
				v.at = atSending
				err = l.control(unix.EPOLL_CTL_MOD, s, unix.EPOLLOUT)
			}
		}
		if err == nil {
			return false
		}
		s.res.Rows = 0
		now := l.g.clock.now()
		next = s.answered(l.g, err, v.sent, 0, now)
		v.sent = now
	}
	return l.finish(s)
}

// finish records the group. It returns what start does.
func (l *eventLoop) finish(s *slot) bool {
	g, v := l.g, &s.event
	s.record(g, v.begun, v.sent)
	if g.queue != nil {
		s.batch = v.own
		s.arrival.batch.release()
	}
	lost := s.lost()
	if !lost && !s.worn(g) {
		return true
	}
	if g.queue != nil {
		g.queue.finish()
	}
	l.unwatch(s)
	pause := time.Duration(0)
	if lost {
		s.drop()
		g.connectionLost(s)
		pause = firstBackoff
	} else {
		s.closeConn(g)
	}
	go func() {
		if s.connect(g, pause) {
			l.e.add(s)
		} else {
			g.left(s)
		}
	}()
	return false
}

// happened takes an event of the slot's socket.
func (l *eventLoop) happened(s *slot, events uint32) {
	v := &s.event
	fd := v.fd
	switch v.at {
	case atSending:
		sent, err := v.conn.Flush()
		if err == nil && sent {
			v.at = atAnswer
			err = l.control(unix.EPOLL_CTL_MOD, s, readable)
		}
		if err != nil {
			l.answer(s, err)
		}
	case atAnswer:
		if v.first == 0 {
			v.first = l.woke
		}
		if done, err := v.conn.Receive(l.buf, &s.res); done {
			l.answer(s, err)
		}
	default:
		// Nothing is in flight: a notice, or the server hung up. The next
		// operation meets that, as it would without a loop.
		if done, err := v.conn.Receive(l.buf, &s.res); done {
			_ = l.control(unix.EPOLL_CTL_DEL, s, 0) // one that is not watched any more is as good
			l.g.idleLost(s, err)
			return
		}
	}
	if events&hungUp != 0 && l.find(fd) == s && v.at != atSending {
		// The end comes behind the last bytes, and its edge has been spent on them.
		// Watching anew reports it again.
		_ = l.control(unix.EPOLL_CTL_MOD, s, readable)
	}
}

// answer goes on with the result in s.res.
func (l *eventLoop) answer(s *slot, err error) {
	v := &s.event
	now := l.g.clock.now()
	if l.waited {
		l.waited = false
		l.gap += (now - l.read - l.gap) / 8
	}
	l.read = now
	next := s.answered(l.g, err, v.sent, v.first, now)
	v.sent = now
	if l.drive(s, next) {
		l.proceed(s, true)
	}
}

func (l *eventLoop) sleep(s *slot, at eventAt, until int64) {
	s.event.at, s.event.until = at, until
	heap.Push(&l.timers, s)
}

// ring goes on with the slots whose time has come.
func (l *eventLoop) ring() {
	for len(l.timers) > 0 {
		s := l.timers[0]
		v := &s.event
		now := l.g.clock.now()
		if v.until > now {
			return
		}
		heap.Pop(&l.timers)
		l.read = now
		var on bool
		if v.at == atPause {
			v.sent = now
			on = l.drive(s, s.progress.resume())
		} else {
			on = l.start(s)
		}
		if on {
			l.proceed(s, true)
		}
	}
}
