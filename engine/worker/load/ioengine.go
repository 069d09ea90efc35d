package load

import "github.com/loadstone-db/loadstone/engine"

// ioEngine drives slots: it takes their operations from the source or the
// queue, waits until it is due, executes and records. goroutines works with every
// driver; eventLoops needs connections that an event loop can drive.
type ioEngine interface {
	// add begins to drive a slot that has an open connection.
	add(s *slot)
	// nudge tells that the slot was retired.
	nudge(s *slot)
	// books are those that several slots share.
	books() []*counters
	// recorders is how many write records when so many connections are open.
	recorders(connections int) int
	// name is for the run's environment, and reason why it is this one: a clause.
	name() string
	reason() string
}

const askedFor = "workload.io_engine asks for it"

// seat is where a slot of an event loop waits to be handed an arrival.
type seat interface {
	// hand wakes the slot: with an arrival, or to leave.
	hand(s *slot, arrival bool)
}

// newIOEngine takes the one that was asked for, or the best that there is.
func newIOEngine(g *Group) ioEngine {
	if g.cfg.Workload.IOEngine != engine.IOGoroutines {
		if e := newEventLoops(g); e != nil {
			return e
		}
	}
	return goroutines{g}
}
