package load

import (
	"container/heap"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadstone-db/loadstone/engine/load/supply"
	"github.com/loadstone-db/loadstone/engine/target"
)

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
	home  *eventLoop
	// own is the slot's own batch while it executes a group of another's.
	own *supply.OpBatch
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
	// buf is what answers are read into, and requests written in.
	buf      []byte
	accounts books
	// res is the result that is being looked at.
	res target.Result
	// touched is of no use: what is added to it must be read.
	touched int64
	// In a closed loop the slots take their operations from one batch; free are
	// batches that are used up. Of their own each slot's would have left the cache before it was used again.
	batch *supply.OpBatch
	free  []*supply.OpBatch
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
	manyReady  = 32
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
	l := &eventLoop{e: e, g: e.g, gap: busyGap, epoll: epoll, bell: -1, batch: &supply.OpBatch{},
		ready: make([]unix.EpollEvent, maxReady), buf: make([]byte, loopBuffer)}
	l.accounts.rec.Pool = e.g.pool
	if l.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		// Edge-triggered, so that it need not be read.
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, l.bell,
			&unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(l.bell)})
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
		l.touch(l.ready[:max(n, 0)])
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

// touch reads a word in each part of the slots that are about to be looked at.
// With thousands of connections none of it is in the cache any more; reading one slot
// after the other waits for each part in turn, and this waits for many at once.
func (l *eventLoop) touch(events []unix.EpollEvent) {
	var sum int64
	for i := range events {
		if s := l.find(int(events[i].Fd)); s != nil {
			sum += s.event.first + s.due + s.ended + int64(s.work.Delay) + s.lag
		}
	}
	for i := range events {
		if s := l.find(int(events[i].Fd)); s != nil {
			sum += s.event.conn.Touch()
		}
	}
	l.touched += sum
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
			l.giveBack(s)
			l.leave(s)
		}
	case atPause:
		if s.leaving(l.g) {
			heap.Remove(&l.timers, v.place)
			v.sent = l.g.clock.now()
			if l.drive(s, s.progress.GiveUp()) {
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
	if l.watched == 0 && l.batch.Next < len(l.batch.Batch.Ops) {
		l.g.source.GiveBack(l.batch.Part(l.batch.Batch.Ops[l.batch.Next:])) // nobody may come here again
		l.batch.Next = len(l.batch.Batch.Ops)
	}
}

// take puts the stream's next group into s.work; false says that there is none.
func (l *eventLoop) take(s *slot) bool {
	l.batch = l.g.draw(l.batch, &s.work, l.usedUp)
	if s.work.Ops == nil {
		return false
	}
	l.batch.Users++
	l.accounts.drawn.Add(1)
	s.event.own, s.batch = s.batch, l.batch
	return true
}

// usedUp returns an empty batch for one whose operations have been taken: the
// same, when none of them is in flight any more.
func (l *eventLoop) usedUp(p *supply.OpBatch) *supply.OpBatch {
	if p.Users == 0 {
		return p
	}
	if n := len(l.free); n > 0 {
		p = l.free[n-1]
		l.free = l.free[:n-1]
		return p
	}
	return &supply.OpBatch{}
}

// release ends the slot's use of a batch of the loop.
func (l *eventLoop) release(s *slot) {
	p := s.batch
	s.batch = s.event.own
	if p.Users--; p.Users == 0 && p != l.batch {
		l.free = append(l.free, p)
	}
}

// giveBack returns a group that the slot has taken and not begun.
func (l *eventLoop) giveBack(s *slot) {
	l.g.source.GiveBack(s.batch.Part(s.work.Ops))
	l.accounts.drawn.Add(-1)
	l.release(s)
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
	if s.leaving(g) || !l.take(s) {
		l.leave(s)
		return false
	}
	if due := g.pacer.due(s.ended, s.work.Delay); due > s.ended && due > g.clock.now() {
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
	return l.drive(s, s.progress.Start(s.work.Ops))
}

// drive takes the group as far as it goes without waiting. It returns what start does.
func (l *eventLoop) drive(s *slot, next supply.Step) bool {
	v := &s.event
	for next != supply.StepDone {
		if next == supply.StepPause {
			l.sleep(s, atPause, v.sent+s.pause(l.g))
			return false
		}
		v.first = 0
		sent, err := v.conn.Send(l.buf, &s.batch.Batch, s.progress.Op())
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
		s.arrival.batch.Release()
	} else {
		l.release(s)
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
		if done, err := v.conn.Receive(l.buf, &l.res); done {
			l.answer(s, err)
		}
	default:
		// Nothing is in flight: a notice, or the server hung up. The next
		// operation meets that, as it would without a loop.
		if done, err := v.conn.Receive(l.buf, &l.res); done {
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

// answer goes on with the result in l.res.
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
			on = l.drive(s, s.progress.Resume())
		} else {
			on = l.start(s)
		}
		if on {
			l.proceed(s, true)
		}
	}
}
