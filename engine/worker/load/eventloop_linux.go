package load

import (
	"bytes"
	"container/heap"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/loadstone-db/loadstone/engine"
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
	// socket is what the loop's sockets know the slot's by.
	socket uint64
	// begun is when the group of operations began, sent when the one in flight did,
	// first when its answer began to arrive, 0 before.
	begun, sent, first int64
	// until is when the wait of atThinking and atPause is over; place is the slot's in the heap.
	until int64
	place int
	home  *eventLoop
	// unsent is what the socket has not taken of the request, or may yet refuse.
	unsent []byte
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
	e *eventLoops
	g *Group
	// sockets is changed under mu, by the loop alone. Where those of an io_uring are refused later, spare takes their
	// place, and retired is what has to be taken of them yet.
	sockets, retired sockets
	spare            *epollSockets
	pace             pace

	// seated counts the connections that were given a place here and have not left it.
	seated atomic.Int32
	// byFD finds a socket's slot, watched counts them.
	byFD     []*slot
	watched  int
	timers   eventTimers
	accounts counters
	// res is the result that is being looked at.
	res target.Result
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

// newEventLoop makes a loop. It waits by epoll until run has made an io_uring.
func newEventLoop(e *eventLoops) (*eventLoop, error) {
	l := &eventLoop{e: e, g: e.g, batch: &OpBatch{}, pace: newPace(e.g.clock.now)}
	var err error
	if l.spare, err = newEpollSockets(l); err != nil {
		return nil, err
	}
	l.sockets = l.spare
	l.accounts.rec.Pool = e.g.pool
	return l, nil
}

func (l *eventLoop) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.clear()
	if l.sockets != sockets(l.spare) {
		l.sockets.close()
	}
	l.spare.close()
}

// engine names what the loop waits by.
func (l *eventLoop) engine() engine.IOEngine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sockets.engine()
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
		l.sockets.wake()
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

// run drives the loop's slots until the group is done. It says so when they can be waited for.
func (l *eventLoop) run(started chan<- struct{}) {
	// The kernel's scheduler judges threads by what they did: one that is always the
	// loop's is placed better than one that also collects and encodes. An io_uring is the thread's own, also when it is
	// closed: the thread is unlocked last of all, as whatever waits after that may go on on another.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.pace.AcquireProcessor()
	defer l.pace.ReleaseProcessor()
	defer l.close()
	if l.e.byRing {
		ring, err := newRingSockets(l)
		if err == nil {
			l.take(ring)
		} else {
			l.e.refuse(err)
		}
	}
	close(started)
	l.pace.NoteIdle(l.g.clock.now())
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
		l.clear()
		sockets := l.sockets
		if l.wait(sockets) {
			l.woke = l.g.clock.now()
		}
		sockets.handle()
	}
}

// clear ends sockets that were refused, which tell what they have received till then.
func (l *eventLoop) clear() {
	if l.retired != nil {
		l.retired.close()
		l.retired = nil
	}
}

// take puts other sockets in the place of the present ones.
func (l *eventLoop) take(other sockets) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sockets = other
}

// wait waits for something to happen to the sockets, mail, or the next timer. It reports whether something has.
func (l *eventLoop) wait(sockets sockets) bool {
	left := int64(-1)
	if len(l.timers) > 0 {
		left = max(l.timers[0].event.until-l.g.clock.now(), 0)
	}
	l.asleep.Store(true)
	if l.mail.Load() {
		left = 0
	}
	happened := sockets.wait(left)
	l.asleep.Store(false)
	return happened
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
	if err := l.sockets.watch(s); err != nil {
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

// unwatch forgets the slot's socket, which must be closed next.
func (l *eventLoop) unwatch(s *slot) {
	if l.find(s.event.fd) == s {
		l.sockets.forget(s)
		if l.retired != nil {
			l.retired.forget(s)
		}
		l.byFD[s.event.fd] = nil
		l.watched--
		l.seated.Add(-1)
	}
	if l.watched == 0 && l.batch.Next < len(l.batch.Batch.Ops) {
		l.g.source.GiveBack(l.batch.Split(l.batch.Batch.Ops[l.batch.Next:])) // nobody may come here again
		l.batch.Next = len(l.batch.Batch.Ops)
	}
}

// draw puts the stream's next group into s.work; false says that there is none.
func (l *eventLoop) draw(s *slot) bool {
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
	if s.leaving(g) || !l.draw(s) {
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
		request, err := v.conn.Begin(l.sockets.room(), &s.batch.Batch, s.progress.Op())
		if err == nil {
			v.at = atAnswer
			if err = l.sockets.send(s, request); err == nil {
				return false
			}
			err = v.conn.Fail(target.NotSent(err), &l.res)
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

// idleLost takes that a connection is lost on which nothing was in flight. A group that reconnects opens another one.
// A slot that has been handed an operation meanwhile, or is about to repeat one, meets the loss with it.
func (l *eventLoop) idleLost(s *slot, err error) {
	l.g.idleLost(s, err)
	if !l.g.reconnects() || s.leaving(l.g) {
		return
	}
	switch v := &s.event; v.at {
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

// full keeps what a socket has not taken of a request until there is room for it.
func (l *eventLoop) full(s *slot, rest []byte) error {
	s.event.at, s.event.unsent = atSending, bytes.Clone(rest) // the room it lies in serves others meanwhile
	return l.sockets.full(s)
}

// writable goes on with a request of which a socket has taken a part only: there is room.
func (l *eventLoop) writable(s *slot) {
	v := &s.event
	if v.at != atSending {
		return
	}
	now := l.g.clock.now()
	if l.g.pastDeadline(now) { // the rest would be one more operation for the target
		v.sent = now
		s.cutShort(l.g)
		s.progress.Unclean = true
		l.finish(s)
		return
	}
	n, err := sendNow(v.fd, v.unsent)
	v.unsent = v.unsent[n:]
	switch {
	case err != nil:
		err = target.NotSent(err)
	case len(v.unsent) > 0:
		err = l.sockets.full(s)
	default:
		v.at, v.unsent = atAnswer, nil
		err = l.sockets.emptied(s)
	}
	if err != nil {
		l.lost(s, err)
	}
}

// received takes bytes of the slot's socket. It reports whether the slot waits for more of the same answer.
func (l *eventLoop) received(s *slot, data []byte) bool {
	v := &s.event
	flying := v.at == atAnswer || v.at == atSending
	if flying && v.first == 0 {
		v.first = l.woke
	}
	done, reply, err := v.conn.Feed(data, &l.res)
	if reply != nil {
		// The server has read all that was sent before.
		n, failed := sendNow(v.fd, reply)
		if failed != nil || n < len(reply) {
			done, err = true, v.conn.Fail(errors.Join(failed, io.ErrShortWrite), &l.res)
		}
	}
	switch {
	case !done:
		return true
	case !flying:
		// A notice that is none. The next operation meets it, as it would without a loop.
		l.idleLost(s, err)
		return false
	case v.at == atSending && err == nil:
		err = v.conn.Fail(errAnsweredEarly, &l.res)
	}
	l.answer(s, err)
	return false
}

// errAnsweredEarly is of a target that is out of step: the rest of the request would be taken for another one.
var errAnsweredEarly = errors.New("the operation was answered before all of it was sent")

// lost takes the end of the slot's socket. Where nothing is in flight the next
// operation meets it, as it would without a loop.
func (l *eventLoop) lost(s *slot, cause error) {
	v := &s.event
	if v.at == atAnswer || v.at == atSending {
		l.answer(s, v.conn.Fail(cause, &l.res))
		return
	}
	if !v.conn.Broken() { // else it is known
		l.idleLost(s, v.conn.Fail(cause, &l.res))
	}
}

// answer goes on with the result in l.res.
func (l *eventLoop) answer(s *slot, err error) {
	v := &s.event
	now := l.g.clock.now()
	l.pace.NoteActivity(now)
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
		l.pace.NoteIdle(now)
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
