package assignment

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Coordinator is told by runs, queries and refreshes what has happened, and says what is to be done.
// One goroutine at a time may use it.
type Coordinator struct {
	policy Policy
	nodes  map[string]*node
	works  map[Key]*work
	// waiting are the works that have no node, first come first served.
	waiting []*work
	// refetch are those whose artifact is to be fetched once more.
	refetch []*work
	now     time.Time
	out     []Action
}

// New returns a coordinator without nodes or work.
func New(p Policy) *Coordinator {
	return &Coordinator{policy: p, nodes: map[string]*node{}, works: map[Key]*work{}}
}

// Apply takes what has happened at now into account and returns what is to be done, in order. now never goes back.
func (c *Coordinator) Apply(now time.Time, h Event) []Action {
	c.now, c.out = now, nil
	switch h := h.(type) {
	case HelloReceived:
		c.hello(h)
	case StatusReceived:
		// No answer to anything: a node that cannot hear us reports too.
		if n := c.nodeOfSession(h.Node, h.Session); n != nil {
			n.refusal = h.Refusal
			c.admission(n, h.Accepting, h.Draining)
			c.extendHold(n)
		}
	case PongReceived:
		if n := c.nodeOfSession(h.Node, h.Session); n != nil {
			n.recordPong(h.Seq, now)
			c.recordContact(n)
		}
	case StreamLost:
		if n := c.nodeOfSession(h.Node, h.Session); n != nil {
			n.session = ""
			c.unreachable(n, "its stream has broken")
		}
	case DrainRequested:
		c.requestDrain(h.Node)
	case ResumeRequested:
		if n := c.nodes[h.Node]; n != nil && n.drainRequested {
			// On a stream that breaks it may not arrive: it is said again on the next.
			n.drainRequested, n.resuming = false, true
			if n.session != "" {
				c.emit(Resume{n.id, n.session})
			}
		}
	case Removed:
		c.removed(h.Node)
	case Added:
		if n := c.nodes[h.Node]; n != nil && n.state == NodeRemoved {
			n.next = c.now
			c.setState(n, NodeUnreachable, "an operator has added it again")
		}
	case DialStopped:
		if n := c.nodes[h.Node]; n != nil && n.state == NodeUnreachable && n.session == "" && !n.drainRequested &&
			len(c.worksOn(n)) == 0 {
			delete(c.nodes, n.id)
		}
	case Tick:
		c.tick()
	default:
		c.applyWork(h)
	}
	c.dispatch()
	return c.out
}

// applyWork takes what is about work.
func (c *Coordinator) applyWork(h Event) {
	switch h := h.(type) {
	case Submitted:
		c.submitted(h)
	case Adopted:
		c.adopt(h)
	case CancelRequested:
		c.cancelled(h.Key)
	case Released:
		c.release(h)
	case Fetched:
		c.fetched(h)
	case FetchFailed:
		c.fetchFailed(h)
	case HedgeRequested:
		c.hedge(h.Key)
	case Accepted:
		c.accepted(h)
	case Rejected:
		c.rejected(h)
	case Ready:
		c.ready(h)
	case Failed:
		c.failed(h)
	case Ended:
		c.ended(h)
	}
}

// Due is when Ticked is wanted next; the zero time while nothing waits.
func (c *Coordinator) Due() time.Time {
	var due time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	for _, n := range c.nodes {
		sooner(n.due())
	}
	for _, w := range c.works {
		sooner(w.until)
		// Past its time it waits for a node, not for the clock.
		if w.notBefore.After(c.now) {
			sooner(w.notBefore)
		}
	}
	return due
}

func (c *Coordinator) emit(a Action) { c.out = append(c.out, a) }

// sortedNodes returns the nodes in a fixed order, so that the same course has the same actions.
func (c *Coordinator) sortedNodes() []*node {
	return slices.SortedFunc(maps.Values(c.nodes), func(a, b *node) int { return cmp.Compare(a.id, b.id) })
}

// worksWhere returns the works in a fixed order that keep accepts.
func (c *Coordinator) worksWhere(keep func(*work) bool) []*work {
	var found []*work
	for _, w := range c.works {
		if keep(w) {
			found = append(found, w)
		}
	}
	slices.SortFunc(found, func(a, b *work) int { return a.Key.compare(b.Key) })
	return found
}

// HasWaiting reports whether some work of a query has no node.
func (c *Coordinator) HasWaiting(query string) bool {
	return slices.ContainsFunc(c.waiting, func(w *work) bool { return w.state == WorkWaiting && w.Key.Query == query })
}

func (c *Coordinator) worksOn(n *node) []*work {
	return c.worksWhere(func(w *work) bool { return w.node == n && !w.state.Terminal() })
}

func (c *Coordinator) tick() {
	for _, n := range c.sortedNodes() {
		c.heartbeat(n)
	}
	for _, w := range c.worksWhere(func(w *work) bool { return !w.until.IsZero() && !c.now.Before(w.until) }) {
		c.markLost(w, "no contact with it for too long")
	}
}
