package load

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/host"
	"github.com/loadstone-db/loadstone/engine/base/uring"
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
	// entered counts the connections that did enter a loop, beside those that were refused.
	entered, beside atomic.Int64

	// byRing: loops wait by io_uring where they can.
	byRing bool

	mu     sync.Mutex
	made   []*eventLoop // in the order in which they were made
	failed bool         // to make another
	// refusal is why a loop that was to wait by io_uring does not.
	refusal error
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
	e := &eventLoops{g: g, plain: goroutines{g}, expected: g.target}
	if asked := g.cfg.Workload.IOEngine; asked != engine.IOEvents {
		e.refusal = ringRefusal(asked, uring.Probe, uring.Advise)
		e.byRing = e.refusal == nil
	}
	return e
}

// ringRefusal says why loops do not wait by io_uring: where it is asked for by name only what cannot be counts.
func ringRefusal(asked engine.IOEngine, probe, advise func() error) error {
	if asked == engine.IOUring {
		return probe()
	}
	return advise()
}

// refuse notes that a loop goes on by epoll.
func (e *eventLoops) refuse(cause error) {
	e.g.cfg.Log.Warn().Err(cause).Msg("io_uring refused, going on by epoll")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refusal = cause
}

// seat gives a connection its place: on its home, the loop of the slot's connection
// before, so that the slot's records stay in order; else on the loop that has the fewest. It is nil when no
// loop can be made. The loops are made when the first connection that can
// enter one arrives, and more as the group grows; none ends before the group does.
func (e *eventLoops) seat(home *eventLoop) *eventLoop {
	if home != nil {
		home.seated.Add(1)
		return home
	}
	least, starting := e.leastSeated()
	for _, started := range starting {
		<-started
	}
	return least
}

// leastSeated gives a place on the loop that has the fewest, and the loops that it had to make for it.
func (e *eventLoops) leastSeated() (least *eventLoop, starting []chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	seated := 0
	for _, l := range e.made {
		n := int(l.seated.Load())
		seated += n
		if least == nil || n < int(least.seated.Load()) {
			least = l
		}
	}
	for want := loopCount(max(e.expected, seated+1), host.Processors()); len(e.made) < want && !e.failed; {
		l, err := newEventLoop(e)
		if err != nil {
			e.g.cfg.Log.Warn().Err(err).Msg("no event loop could be made")
			e.failed = true
			break
		}
		if e.made = append(e.made, l); len(e.made) == 1 {
			go e.watch()
		}
		started := make(chan struct{})
		go l.run(started)
		starting = append(starting, started)
		least = l
	}
	if least != nil {
		least.seated.Add(1)
	}
	return least, starting
}

// loops are those that there are.
func (e *eventLoops) loops() []*eventLoop {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.made)
}

// name is io_uring where all loops wait by it.
func (e *eventLoops) name() string {
	if e.entered.Load() == 0 {
		return e.plain.name()
	}
	for _, l := range e.loops() {
		if l.engine() != engine.IOUring {
			return string(engine.IOEvents)
		}
	}
	return string(engine.IOUring)
}

func (e *eventLoops) reason() string {
	e.mu.Lock()
	refusal := e.refusal
	e.mu.Unlock()
	asked := e.g.cfg.Workload.IOEngine
	switch {
	case e.entered.Load() == 0 && e.beside.Load() == 0:
		return "" // nobody has come yet
	case e.entered.Load() == 0:
		return "the connections cannot enter an event loop: they use TLS"
	case errors.Is(refusal, uring.ErrUnbounded):
		return "io_uring has to be asked for here: " + refusal.Error()
	case refusal != nil:
		return "io_uring cannot be used: " + refusal.Error()
	case asked == engine.IOUring || asked == engine.IOEvents:
		return askedFor
	default:
		return "the system allows io_uring"
	}
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
	s.books, s.res = &s.own.counters, &s.own.res
	conn, ok := s.conn.(target.EventConn)
	if !ok {
		e.plain.add(s)
		return
	}
	l := e.seat(s.event.home)
	if l == nil {
		e.plain.add(s)
		return
	}
	fd, ok := conn.Attach()
	if !ok {
		l.seated.Add(-1)
		e.beside.Add(1)
		e.g.pool.Resize(e.recorders(0))
		e.plain.add(s)
		return
	}
	e.entered.Add(1)
	s.event = eventState{conn: conn, fd: fd, at: atNew, home: l}
	s.seat, s.books, s.res = l, &l.accounts, &l.res
	l.post(s)
}

func (e *eventLoops) recorders(connections int) int {
	if e.entered.Load() == 0 {
		return connections
	}
	return len(e.loops()) + int(e.beside.Load())
}

func (e *eventLoops) books() []*counters {
	var all []*counters
	for _, l := range e.loops() {
		all = append(all, &l.accounts)
	}
	return all
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
