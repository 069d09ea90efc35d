package load

import (
	"container/heap"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

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
	own *OpBatch
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
	e    *eventLoops
	g    *Group
	poll *poller

	// seated counts the connections that were given a place here and have not left it.
	seated atomic.Int32
	// byFD finds a socket's slot, watched counts them.
	byFD    []*slot
	watched int
	timers  eventTimers
	// buf is what answers are read into, and requests written in.
	buf      []byte
	accounts counters
	// res is the result that is being looked at.
	res target.Result
	// touched is of no use: what is added to it must be read.
	touched int64
	// In a closed loop the slots take their operations from one batch; free are
	// batches that are used up. Of their own each slot's would have left the cache before it was used again.
	batch *OpBatch
	free  []*OpBatch
	// woke is the reading of the clock after the last wait.
	woke int64

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

const loopBuffer = 16 << 10

func newEventLoop(e *eventLoops) (*eventLoop, error) {
	poll, err := newPoller(e.g.clock.now)
	if err != nil {
		return nil, err
	}
	l := &eventLoop{e: e, g: e.g, poll: poll, batch: &OpBatch{}, buf: make([]byte, loopBuffer)}
	l.accounts.rec.Pool = e.g.pool
	return l, nil
}

func (l *eventLoop) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.poll.Close()
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
		l.poll.Ring()
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
	l.poll.AcquireProcessor()
	defer l.poll.ReleaseProcessor()
	// The kernel's scheduler judges threads by what they did: one that is always the
	// loop's is placed better than one that also collects and encodes.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.poll.NoteIdle(l.g.clock.now())
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
				l.checkSlot(s)
			}
			clear(inbox)
			if all && l.checkAll() {
				return
			}
		}
		l.ring()
		events := l.wait()
		if len(events) > 0 {
			l.woke = l.g.clock.now()
		}
		l.touch(events)
		for i := range events {
			event := &events[i]
			if l.poll.Rang(event) {
				continue
			}
			if s := l.byFD[event.Fd]; s != nil {
				l.handleEvent(s, event.Events)
			}
		}
	}
}

// wait waits for events, mail, or the next timer.
func (l *eventLoop) wait() []unix.EpollEvent {
	left := int64(-1)
	if len(l.timers) > 0 {
		left = max(l.timers[0].event.until-l.g.clock.now(), 0)
	}
	l.asleep.Store(true)
	if l.mail.Load() {
		left = 0
	}
	events := l.poll.Wait(left, l.watched)
	l.asleep.Store(false)
	return events
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
			sum += s.event.conn.Prefetch()
		}
	}
	l.touched += sum
}

// checkAll looks at every slot; it reports true when the group is done.
func (l *eventLoop) checkAll() bool {
	for _, s := range l.byFD {
		if s != nil {
			l.checkSlot(s)
		}
	}
	select {
	case <-l.g.done:
		return true
	default:
		return false
	}
}

// checkSlot goes on with a slot for which something but its socket may have changed.
func (l *eventLoop) checkSlot(s *slot) {
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
	if err := l.poll.Control(unix.EPOLL_CTL_ADD, s.event.fd, readable); err != nil {
		l.g.fail(err)
		l.leave(s)
		return false
	}
	return true
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
		l.g.source.GiveBack(l.batch.Split(l.batch.Batch.Ops[l.batch.Next:])) // nobody may come here again
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
func (l *eventLoop) usedUp(p *OpBatch) *OpBatch {
	if p.Users == 0 {
		return p
	}
	if n := len(l.free); n > 0 {
		p = l.free[n-1]
		l.free = l.free[:n-1]
		return p
	}
	return &OpBatch{}
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
	l.g.source.GiveBack(s.batch.Split(s.work.Ops))
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
	if due := g.thinkTimes.due(s.ended, s.work.Delay); due > s.ended && due > g.clock.now() {
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
	begun, ok := s.begin(l.g)
	if !ok {
		l.refuse(s)
		return false
	}
	v.begun, v.sent = begun, begun
	return l.drive(s, s.progress.Start(s.work.Ops))
}

// refuse drops a group that must not begin, and ends its slot.
func (l *eventLoop) refuse(s *slot) {
	if l.g.queue != nil {
		s.batch = s.event.own
		s.refuse(l.g)
	} else {
		l.giveBack(s)
	}
	l.leave(s)
}

// drive takes the group as far as it goes without waiting. It returns what start does.
func (l *eventLoop) drive(s *slot, next Step) bool {
	v := &s.event
	for next != StepDone {
		if next == StepPause {
			l.sleep(s, atPause, v.sent+s.pause(l.g))
			return false
		}
		if l.g.pastDeadline(v.sent) {
			s.cutShort(l.g)
			break
		}
		v.first = 0
		sent, err := v.conn.Send(l.buf, &s.batch.Batch, s.progress.Op())
		if err == nil {
			v.at = atAnswer
			if !sent {
				v.at = atSending
				err = l.poll.Control(unix.EPOLL_CTL_MOD, s.event.fd, unix.EPOLLOUT)
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
	if lost {
		s.drop()
		g.connectionLost(s)
	} else {
		s.closeConn(g)
	}
	l.connect(s, lost)
	return false
}

// connect opens the slot's connection again, beside the loop.
func (l *eventLoop) connect(s *slot, lost bool) {
	go func() {
		if s.connect(l.g, lost) {
			l.e.add(s)
		} else {
			l.g.left(s)
		}
	}()
}

// reopen opens another connection for a slot that lost its own while nothing was in flight. One that has been handed
// an operation meanwhile, or is about to repeat one, meets the loss with it.
func (l *eventLoop) reopen(s *slot) {
	v := &s.event
	if s.leaving(l.g) {
		return
	}
	switch v.at {
	case atNew:
	case atThinking:
		heap.Remove(&l.timers, v.place)
		l.giveBack(s)
	case atIdle:
		if !l.g.queue.withdraw(s) {
			return
		}
	default:
		return
	}
	l.unwatch(s)
	s.drop()
	l.g.lostOne(s, errIdleLost)
	l.connect(s, true)
}

// handleEvent takes an event of the slot's socket.
func (l *eventLoop) handleEvent(s *slot, events uint32) {
	v := &s.event
	fd := v.fd
	switch v.at {
	case atSending:
		now := l.g.clock.now()
		if l.g.pastDeadline(now) { // the rest would be one more operation for the target
			v.sent = now
			s.cutShort(l.g)
			s.progress.Unclean = true
			l.finish(s)
			return
		}
		sent, err := v.conn.Flush()
		if err == nil && sent {
			v.at = atAnswer
			err = l.poll.Control(unix.EPOLL_CTL_MOD, s.event.fd, readable)
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
			_ = l.poll.Control(unix.EPOLL_CTL_DEL, s.event.fd, 0) // one that is not watched any more is as good
			if l.g.idleLost(s, err); l.g.reconnects() {
				l.reopen(s)
			}
			return
		}
	}
	if events&hungUp != 0 && l.find(fd) == s && v.at != atSending {
		// The end comes behind the last bytes, and its edge has been spent on them.
		// Watching anew reports it again.
		_ = l.poll.Control(unix.EPOLL_CTL_MOD, s.event.fd, readable)
	}
}

// answer goes on with the result in l.res.
func (l *eventLoop) answer(s *slot, err error) {
	v := &s.event
	now := l.g.clock.now()
	l.poll.NoteActivity(now)
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
		l.poll.NoteIdle(now)
		var on bool
		switch {
		case v.at == atThinking && s.leaving(l.g): // the loop has not been told yet, and nothing may begin
			l.giveBack(s)
			l.leave(s)
		case v.at == atThinking:
			on = l.start(s)
		case s.leaving(l.g):
			v.sent = now
			on = l.drive(s, s.progress.GiveUp())
		default:
			v.sent = now
			on = l.drive(s, s.progress.Resume())
		}
		if on {
			l.proceed(s, true)
		}
	}
}
