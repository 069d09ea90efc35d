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
func (c *Coordinator) Apply(now time.Time, h Happening) []Action {
	c.now, c.out = now, nil
	switch h := h.(type) {
	case Greeted:
		c.greeted(h)
	case Reported:
		// No answer to anything: a node that cannot hear us reports too.
		if n := c.speaks(h.Node, h.Session); n != nil {
			c.admission(n, h.Accepting, h.Draining)
			c.holdOn(n)
		}
	case Answered:
		if n := c.speaks(h.Node, h.Session); n != nil {
			n.answered(h.Seq, now)
			c.alive(n)
		}
	case StreamLost:
		if n := c.speaks(h.Node, h.Session); n != nil {
			n.session = ""
			c.unreachable(n, "its stream has broken")
		}
	case DrainAsked:
		c.drainAsked(h.Node)
	case ResumeAsked:
		if n := c.nodes[h.Node]; n != nil && n.drainAsked {
			// On a stream that breaks it may not arrive: it is said again on the next.
			n.drainAsked, n.resuming = false, true
			if n.session != "" {
				c.do(Resume{n.id, n.session})
			}
		}
	case Removed:
		c.removed(h.Node)
	case Added:
		if n := c.nodes[h.Node]; n != nil && n.state == NodeRemoved {
			n.next = c.now
			c.become(n, NodeUnreachable, "an operator has added it again")
		}
	case Undialled:
		if n := c.nodes[h.Node]; n != nil && n.state == NodeUnreachable && n.session == "" && !n.drainAsked &&
			len(c.on(n)) == 0 {
			delete(c.nodes, n.id)
		}
	case Ticked:
		c.ticked()
	default:
		c.workHappened(h)
	}
	c.dispatch()
	return c.out
}

// workHappened takes what is about work.
func (c *Coordinator) workHappened(h Happening) {
	switch h := h.(type) {
	case Submitted:
		c.submitted(h)
	case Adopted:
		c.adopt(h)
	case CancelAsked:
		c.cancelled(h.Key)
	case Forgotten:
		c.forgotten(h)
	case Fetched:
		c.fetched(h)
	case FetchFailed:
		c.fetchFailed(h)
	case Late:
		c.late(h.Key)
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

func (c *Coordinator) do(a Action) { c.out = append(c.out, a) }

// byID returns the nodes in a fixed order, so that the same course has the same actions.
func (c *Coordinator) byID() []*node {
	return slices.SortedFunc(maps.Values(c.nodes), func(a, b *node) int { return cmp.Compare(a.id, b.id) })
}

// of returns the works in a fixed order that keep accepts.
func (c *Coordinator) of(keep func(*work) bool) []*work {
	var found []*work
	for _, w := range c.works {
		if keep(w) {
			found = append(found, w)
		}
	}
	slices.SortFunc(found, func(a, b *work) int { return a.Key.compare(b.Key) })
	return found
}

// Waits reports whether some work of a query has no node.
func (c *Coordinator) Waits(query string) bool {
	return slices.ContainsFunc(c.waiting, func(w *work) bool { return w.state == WorkWaiting && w.Key.Query == query })
}

func (c *Coordinator) on(n *node) []*work {
	return c.of(func(w *work) bool { return w.node == n && !w.state.Over() })
}

func (c *Coordinator) ticked() {
	for _, n := range c.byID() {
		c.beat(n)
	}
	for _, w := range c.of(func(w *work) bool { return !w.until.IsZero() && !c.now.Before(w.until) }) {
		c.lose(w, "no contact with it for too long")
	}
}
