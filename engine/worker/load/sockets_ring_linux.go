package load

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/uring"
)

// ringSockets hand requests over, and are handed answers, in one call for each round of the loop.
type ringSockets struct {
	l    *eventLoop
	ring *uring.Ring
	// seats are the slots whose sockets are watched; free are the places of those that are not any more.
	seats []ringSeat
	free  []uint32
}

// ringSeat is a slot's place. What completes for those who had it before bears an older generation.
type ringSeat struct {
	s          *slot
	generation uint32
}

func newRingSockets(l *eventLoop) (*ringSockets, error) {
	ring, err := uring.New()
	if err != nil {
		return nil, err
	}
	return &ringSockets{l: l, ring: ring}, nil
}

const seatBits = 24

// find is the slot that a completion is for, nil when it has left.
func (r *ringSockets) find(tag uint64) *slot {
	seat := &r.seats[tag&(1<<seatBits-1)]
	if seat.generation != uint32(tag>>seatBits) {
		return nil
	}
	return seat.s
}

func (r *ringSockets) engine() engine.IOEngine { return engine.IOUring }

func (r *ringSockets) wake() { r.ring.Wake() }

// close tells the loop of what is received until the kernel has let go of the sockets.
func (r *ringSockets) close() { r.ring.Close(r.complete) }

func (r *ringSockets) room() []byte { return r.ring.Room() }

func (r *ringSockets) watch(s *slot) error {
	var at uint32
	if n := len(r.free); n > 0 {
		at = r.free[n-1]
		r.free = r.free[:n-1]
	} else {
		at = uint32(len(r.seats))
		r.seats = append(r.seats, ringSeat{generation: 1})
	}
	r.seats[at].s = s
	s.event.socket = uint64(r.seats[at].generation)<<seatBits | uint64(at)
	if err := r.ring.Receive(s.event.fd, s.event.socket); err != nil {
		return r.fallBack(err) // which watches it
	}
	return nil
}

// forget takes back what the kernel has not been handed, as the descriptor may be another's by then, and cancels the
// rest.
func (r *ringSockets) forget(s *slot) {
	tag := s.event.socket
	at := tag & (1<<seatBits - 1)
	if at >= uint64(len(r.seats)) || r.seats[at].s != s { // it came when the ring had been refused
		return
	}
	r.seats[at] = ringSeat{generation: r.seats[at].generation + 1}
	r.free = append(r.free, uint32(at))
	r.ring.Withdraw(tag)
	err := r.ring.Cancel(uring.Received, tag)
	if err == nil && s.event.at == atSending {
		err = r.ring.Cancel(uring.Writable, tag)
	}
	if err != nil {
		_ = r.fallBack(err)
	}
}

func (r *ringSockets) send(s *slot, request []byte) error {
	s.event.unsent = request
	if err := r.ring.Send(s.event.fd, request, s.event.socket); err != nil {
		if err := r.fallBack(err); err != nil {
			return err
		}
		return r.l.sockets.send(s, request)
	}
	return nil
}

func (r *ringSockets) full(s *slot) error {
	if err := r.ring.Writable(s.event.fd, s.event.socket); err != nil {
		return r.fallBack(err) // which waits for it
	}
	return nil
}

func (r *ringSockets) emptied(*slot) error { return nil }

func (r *ringSockets) wait(left int64) bool {
	hold, limit := r.l.pace.Holds(left), time.Duration(left)
	if hold {
		limit = busyWait
		r.l.pace.LetOthers(r.l.watched)
	}
	err := r.ring.Wait(limit, hold)
	ready := r.ring.Ready()
	if err != nil {
		_ = r.fallBack(err)
	} else if hold && !ready {
		r.l.pace.NoteNothing()
	}
	return ready
}

func (r *ringSockets) handle() {
	for {
		c, ok := r.ring.Next()
		if !ok {
			return
		}
		r.complete(&c)
	}
}

func (r *ringSockets) complete(c *uring.Completion) {
	s := r.find(c.Tag)
	if s == nil {
		return
	}
	switch c.Kind {
	case uring.Received:
		r.receive(s, c)
	case uring.Sent:
		r.sent(s, c)
	case uring.Writable:
		r.l.writable(s)
	}
}

func (r *ringSockets) receive(s *slot, c *uring.Completion) {
	switch {
	case c.Err == 0 && c.N > 0:
		r.l.received(s, c.Data)
	case c.Err == 0:
		r.l.lost(s, io.EOF)
		return
	case c.Err == unix.ENOBUFS || c.Err == unix.EINTR || c.Err == unix.EAGAIN: // the answer is there yet
	case c.Err == unix.ECANCELED: // epoll goes on
	default:
		r.l.lost(s, os.NewSyscallError("receive", c.Err))
		return
	}
	if c.More || r.find(c.Tag) != s || s.event.conn.Broken() || r.l.sockets != sockets(r) {
		return
	}
	if err := r.ring.Receive(s.event.fd, c.Tag); err != nil {
		_ = r.fallBack(err)
	}
}

// sent takes what became of a request that the socket did not take whole.
func (r *ringSockets) sent(s *slot, c *uring.Completion) {
	if s.event.at != atAnswer {
		return // it has ended meanwhile
	}
	var err error
	switch {
	case c.Err != 0 && c.Err != unix.EAGAIN:
		err = os.NewSyscallError("send", c.Err)
	case c.N > len(s.event.unsent): // of another request than the present one
		err = errAnsweredEarly
	default:
		err = r.l.full(s, s.event.unsent[c.N:])
	}
	if err != nil {
		r.l.lost(s, err)
	}
}

// fallBack goes on by epoll where the system has refused the ring: nothing that was sent is sent again, nothing that
// was received is lost, also by a ring that works again, as the loop clears it before it asks epoll. Its error is that
// of epoll.
func (r *ringSockets) fallBack(cause error) error {
	l := r.l
	if l.sockets != sockets(r) {
		return nil
	}
	l.e.refuse(cause)
	l.take(l.spare)
	l.retired = r
	var failed error
	for _, seat := range r.seats {
		s := seat.s
		if s == nil {
			continue
		}
		err := l.spare.watch(s)
		if err == nil && s.event.at == atSending {
			err = l.spare.full(s)
		}
		if err != nil {
			failed = err
		}
	}
	if failed != nil {
		l.g.fail(failed)
		return failed
	}
	var unsent []*slot
	r.ring.TakeBack(func(tag uint64) {
		if s := r.find(tag); s != nil && s.event.at == atAnswer {
			unsent = append(unsent, s)
		}
	})
	for _, s := range unsent {
		if err := l.spare.send(s, s.event.unsent); err != nil {
			l.lost(s, err)
		}
	}
	return nil
}
