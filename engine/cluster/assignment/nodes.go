package assignment

import (
	"fmt"
	"slices"
	"time"
)

// NodeState is what is known of a node.
type NodeState string

// The states of a node. "" is that of one that has never been heard of.
const (
	NodeActive      NodeState = "ACTIVE"
	NodeUnreachable NodeState = "UNREACHABLE"
	NodeRemoved     NodeState = "REMOVED"
)

// Node is what others may know of a node.
type Node struct {
	ID    string
	State NodeState
	// Capacity is the most weight it takes, 0 without a bound; Used is the weight of what it has.
	Capacity, Used int
	// InRotation: it may be given work.
	InRotation bool
	// AcceptsQueries: it takes the work of queries.
	AcceptsQueries bool
	// Link is where its last stream led to; Connected says that the stream stands.
	Link      string
	Connected bool
	// Accepting and Draining are what it says of itself, DrainRequested what an operator wants.
	Accepting, Draining, DrainRequested bool
	// Refusal is why it does not accept work although it does not drain, as it says itself.
	Refusal string
	// Since is when its state began, for the reason Why; PongReceived is its last sign of life.
	Since, LastPong time.Time
	Why             string
	// RTT is the last round trip, 0 when none was measured; Timeout is how long the next answer may take.
	RTT, Timeout time.Duration
	// Misses are the heartbeats in a row without an answer.
	Misses int
}

type node struct {
	id, link, process string
	session           string // "" while there is no stream
	state             NodeState
	capacity          int
	accepting         bool
	refusal           string
	acceptsQueries    bool
	draining          bool
	drainRequested    bool // by an operator; it outlives the session
	resuming          bool // an operator has taken that back, and the node has not said that it knows
	used              int

	rtt    time.Duration // the last; 0: not measured
	seq    int64
	pings  []ping // without an answer, oldest first
	misses int    // in a row
	next   time.Time

	since, lastContact time.Time // of the state, and the last sign of life
	why                string
}

// ping is a question that was asked.
type ping struct {
	seq    int64
	sent   time.Time
	until  time.Time
	missed bool
}

// maxPings bounds how many unanswered questions are remembered, for the round
// trip of an answer that comes late.
const maxPings = 64

// Nodes returns what is known of all nodes, by id.
func (c *Coordinator) Nodes() []Node {
	var all []Node
	for _, n := range c.sortedNodes() {
		all = append(all, c.snapshot(n))
	}
	return all
}

// Node returns what is known of one node.
func (c *Coordinator) Node(id string) (Node, bool) {
	n := c.nodes[id]
	if n == nil {
		return Node{}, false
	}
	return c.snapshot(n), true
}

// Placement is a work that a node carries.
type Placement struct {
	Node string
	Key  Key
}

// Placements returns what the nodes carry, in the order of its keys.
func (c *Coordinator) Placements() []Placement {
	var all []Placement
	for _, w := range c.worksWhere(func(w *work) bool { return w.node != nil && !w.state.Terminal() }) {
		all = append(all, Placement{w.node.id, w.Key})
	}
	return all
}

func (c *Coordinator) snapshot(n *node) Node {
	return Node{
		ID:             n.id,
		State:          n.state,
		Capacity:       n.capacity,
		Used:           n.used,
		InRotation:     n.inRotation(),
		AcceptsQueries: n.acceptsQueries,
		Link:           n.link,
		Connected:      n.session != "",
		Accepting:      n.accepting,
		Draining:       n.draining,
		DrainRequested: n.drainRequested,
		Refusal:        n.refusal,
		Since:          n.since,
		LastPong:       n.lastContact,
		Why:            n.why,
		RTT:            n.rtt,
		Timeout:        c.policy.timeout(n.rtt),
		Misses:         n.misses,
	}
}

func (n *node) inRotation() bool {
	return n.state == NodeActive && n.session != "" && n.accepting && !n.draining && !n.drainRequested
}

// fits reports whether the node has room for weight more.
func (n *node) fits(weight int) bool { return n.capacity == 0 || n.used+weight <= n.capacity }

// due is when the node's next decision by time is.
func (n *node) due() time.Time {
	if n.state == NodeRemoved {
		return time.Time{}
	}
	due := n.next
	for _, p := range n.pings {
		if n.state == NodeActive && !p.missed && p.until.Before(due) {
			due = p.until
		}
	}
	return due
}

// recordPong takes an answer in, also a late one: what comes on the stream is a sign
// of life, and the timeout follows a link that has become slow.
func (n *node) recordPong(seq int64, now time.Time) {
	for i, p := range n.pings {
		if p.seq == seq {
			n.rtt = now.Sub(p.sent)
			// Answers come in order: what was asked before is not answered any more.
			n.pings = n.pings[i+1:]
			return
		}
	}
}

// nodeOfSession returns the node when the session is the one it has now.
func (c *Coordinator) nodeOfSession(id, session string) *node {
	n := c.nodes[id]
	if n == nil || session == "" || n.session != session {
		return nil
	}
	return n
}

func (c *Coordinator) setState(n *node, s NodeState, why string) {
	c.emit(NodeChanged{n.id, n.state, s, why})
	n.state, n.since, n.why = s, c.now, why
}

// recordContact notes an answer: the node hears us and we hear it.
func (c *Coordinator) recordContact(n *node) {
	n.misses, n.lastContact = 0, c.now
	if n.state != NodeUnreachable {
		return
	}
	n.pings = nil
	n.next = c.now.Add(c.policy.Heartbeat)
	c.setState(n, NodeActive, "it answers again")
	for _, w := range c.worksOn(n) {
		w.until = time.Time{}
	}
}

func (c *Coordinator) hello(h HelloReceived) {
	n := c.nodes[h.Node]
	switch {
	case n == nil:
		n = &node{id: h.Node}
		c.nodes[h.Node] = n
	case n.state == NodeRemoved:
		c.emit(RejectNode{h.Node, h.Session, h.Link, "the node was removed"})
		return
	case n.state == NodeActive && n.session != "" && n.link != h.Link:
		c.emit(RejectNode{h.Node, h.Session, h.Link,
			fmt.Sprintf("another node with the same identity is connected at %s", n.link)})
		return
	}
	if h.Unfit != "" {
		c.rejectUnfit(n, h)
		return
	}
	moved := n.link != "" && n.link != h.Link
	// Only one process listens at a place: when it is another, the one before is gone.
	restarted := n.process != "" && n.process != h.Process
	if n.session != "" && n.link != h.Link {
		c.emit(RejectNode{n.id, n.session, n.link, fmt.Sprintf("the node is connected at %s now", h.Link)})
	}
	if n.session != "" && n.session != h.Session {
		// A new stream ends the one before, noticed or not.
		c.releaseWorks(n, false)
	}
	n.link, n.process, n.session, n.capacity = h.Link, h.Process, h.Session, h.Capacity
	n.accepting, n.draining, n.acceptsQueries = h.Accepting, h.Draining, h.AcceptsQueries
	n.rtt, n.pings, n.misses, n.next, n.lastContact = h.RTT, nil, 0, c.now, c.now
	if n.state != NodeActive {
		c.setState(n, NodeActive, "it has introduced itself")
	}
	switch {
	case n.drainRequested:
		c.emit(Drain{n.id, n.session})
	case n.resuming:
		c.emit(Resume{n.id, n.session})
	}
	c.reconcile(n, h.Works, moved, restarted)
	c.heartbeat(n)
}

// rejectUnfit sends a node away that cannot be used as it is. It is shown with the reason, and what it had
// is lost when it must have stopped by itself.
func (c *Coordinator) rejectUnfit(n *node, h HelloReceived) {
	c.emit(RejectNode{h.Node, h.Session, h.Link, h.Unfit})
	if n.session != "" {
		c.releaseWorks(n, false)
	}
	n.link, n.process, n.session, n.capacity = h.Link, h.Process, "", h.Capacity
	n.pings, n.lastContact, n.next = nil, c.now, c.now.Add(c.policy.Probe)
	if n.state != NodeUnreachable || n.why != h.Unfit {
		c.setState(n, NodeUnreachable, h.Unfit)
	}
}

// reconcile compares what a node holds with what it should.
// What a node of that identity held at another place may go on there, so that
// nobody else begins it.
func (c *Coordinator) reconcile(n *node, held []Key, moved, restarted bool) {
	holds := make(map[Key]bool, len(held))
	for _, k := range held {
		holds[k] = true
		switch w := c.works[k]; {
		case w == nil:
			c.emit(Unknown{n.id, n.session, k})
		case w.hedgeNode == n:
		case w.node != n || w.state.Terminal():
			c.emit(Cancel{n.id, n.session, k})
		}
	}
	for _, w := range c.worksOn(n) {
		switch {
		case holds[w.Key]:
			w.until, w.adopted = time.Time{}, false
			if w.state == WorkAssigned {
				w.state = WorkAccepted
			}
		case w.adopted:
			c.markLost(w, "the node does not hold it")
		case moved:
		case w.state == WorkAssigned:
			// It never arrived, or its answer was lost: assigning it twice is harmless.
			w.until = time.Time{}
			c.emit(Assign{n.id, n.session, w.Work, w.attempt, c.preferred(w) == n})
		case restarted:
			c.markLost(w, "the node has restarted and does not hold it")
		}
	}
}

// extendHold counts the time after which a node must have stopped from here on: what it has just
// reported is acknowledged, and that may reach it although it does not answer.
func (c *Coordinator) extendHold(n *node) {
	for _, w := range c.worksOn(n) {
		if !w.until.IsZero() {
			w.until = c.now.Add(c.policy.Hold)
		}
	}
}

// admission takes what a node says about new work, and takes back what it has not
// begun when it drains.
func (c *Coordinator) admission(n *node, accepting, draining bool) {
	n.accepting, n.draining = accepting, draining
	n.resuming = n.resuming && draining
	if !n.draining && !n.drainRequested {
		return
	}
	for _, w := range c.worksOn(n) {
		if w.state == WorkAssigned && w.OnLoss == Reassign {
			c.cancelOn(n, w)
			c.requeue(w, time.Time{})
		}
	}
}

// requestDrain takes a node out of rotation; what is said of one that nobody has heard of
// holds when it comes.
func (c *Coordinator) requestDrain(id string) {
	n := c.nodes[id]
	if n == nil {
		n = &node{id: id}
		c.nodes[id] = n
	}
	if n.state == NodeRemoved || n.drainRequested {
		return
	}
	if n.session != "" {
		c.emit(Drain{n.id, n.session})
	}
	n.drainRequested, n.resuming = true, false
	c.admission(n, n.accepting, n.draining)
}

func (c *Coordinator) cancelOn(n *node, w *work) {
	if n.session != "" {
		c.emit(Cancel{n.id, n.session, w.Key})
	}
}

// unreachable takes a node out of rotation.
func (c *Coordinator) unreachable(n *node, why string) {
	n.next = c.now.Add(c.policy.Probe)
	if n.session == "" {
		n.pings = nil
	}
	if n.state == NodeActive {
		c.setState(n, NodeUnreachable, why)
	}
	c.releaseWorks(n, n.session != "")
}

// releaseWorks decides about the work of a node that is gone: what can be done
// elsewhere goes there at once, and is cancelled where it was, should the node
// still hear it; the rest stays until the node must have stopped by itself.
func (c *Coordinator) releaseWorks(n *node, hears bool) {
	for _, w := range c.worksOn(n) {
		switch {
		case w.OnLoss == Reassign:
			if hears {
				c.cancelOn(n, w)
			}
			c.requeue(w, time.Time{})
		case w.until.IsZero():
			w.until = c.now.Add(c.policy.Hold)
		}
	}
	for _, w := range c.worksWhere(func(w *work) bool { return w.hedgeNode == n }) {
		if hears {
			c.cancelOn(n, w)
		}
		// Whether it is late again when it comes back is open.
		w.hedgeNode, w.avoid = nil, slices.DeleteFunc(w.avoid, func(o *node) bool { return o == n })
	}
}

func (c *Coordinator) removed(id string) {
	n := c.nodes[id]
	if n == nil {
		n = &node{id: id}
		c.nodes[id] = n
	}
	if n.state == NodeRemoved {
		return
	}
	c.setState(n, NodeRemoved, "an operator has removed it")
	carried := func(w *work) bool { return !w.state.Terminal() && (w.node == n || w.hedgeNode == n) }
	for _, w := range c.worksWhere(carried) {
		c.cancelOn(n, w)
	}
	c.releaseWorks(n, false)
	if n.session != "" {
		c.emit(RejectNode{n.id, n.session, n.link, "the node was removed"})
	}
	n.session, n.pings, n.next = "", nil, time.Time{}
}

// heartbeat asks a node for a sign of life when it is time, and counts what was missed.
func (c *Coordinator) heartbeat(n *node) {
	switch n.state {
	case NodeActive:
		for i := range n.pings {
			if p := &n.pings[i]; !p.missed && !c.now.Before(p.until) {
				p.missed = true
				n.misses++
			}
		}
		if n.misses >= c.policy.MaxMisses {
			c.unreachable(n, fmt.Sprintf("%d heartbeats in a row had no answer", n.misses))
			return
		}
		if c.now.Before(n.next) {
			return
		}
		n.next = c.now.Add(c.policy.Heartbeat)
		c.sendPing(n)
	case NodeUnreachable:
		if c.now.Before(n.next) {
			return
		}
		n.next = c.now.Add(c.policy.Probe)
		c.emit(Probe{n.id})
		if n.session != "" {
			c.sendPing(n)
		}
	}
}

// sendPing sends a ping.
func (c *Coordinator) sendPing(n *node) {
	n.seq++
	n.pings = append(n.pings, ping{seq: n.seq, sent: c.now, until: c.now.Add(c.policy.timeout(n.rtt))})
	if len(n.pings) > maxPings {
		n.pings = n.pings[1:]
	}
	c.emit(Ping{n.id, n.session, n.seq})
}
