package assignment

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/backoff"
)

// Key names a work: of a run, Query is the run's id and Work the run worker's.
type Key struct{ Query, Leaf, Work string }

func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Query, o.Query), cmp.Compare(k.Leaf, o.Leaf), cmp.Compare(k.Work, o.Work))
}

// OnLoss says what becomes of a work whose node becomes unreachable.
type OnLoss int

const (
	// Reassign gives it to another node at once: the node has cancelled it, or may as well.
	Reassign OnLoss = iota
	// StayInPlace keeps it where it is, because the node goes on with it; it is Lost when the
	// node must have stopped by itself, or has restarted without it.
	StayInPlace
)

// Work is a unit that one node at a time carries.
type Work struct {
	Key Key
	// Affinity is what the node should have at hand: the same affinity goes to the
	// same node while that is possible. Empty is the work's own.
	Affinity string
	// Only is the one node that can do it, where not every node can.
	Only string
	// Query: only nodes that take the work of queries can do it.
	Query bool
	// Weight is what it takes of a node's capacity.
	Weight int
	OnLoss OnLoss
}

func (w Work) affinity() string {
	if w.Affinity != "" {
		return w.Affinity
	}
	return w.Key.Query + "\x00" + w.Key.Leaf + "\x00" + w.Key.Work
}

// allows reports whether a node can do the work at all.
func (w Work) allows(n *node) bool {
	return (w.Only == "" || w.Only == n.id) && (!w.Query || n.acceptsQueries)
}

// WorkState is how far a work is.
type WorkState string

// The states of a work.
const (
	WorkWaiting  WorkState = "WAITING"
	WorkAssigned WorkState = "ASSIGNED"
	WorkAccepted WorkState = "ACCEPTED"
	// WorkReady: its artifact is being fetched.
	WorkReady     WorkState = "READY"
	WorkDone      WorkState = "DONE"
	WorkFailed    WorkState = "FAILED"
	WorkCancelled WorkState = "CANCELLED"
	WorkLost      WorkState = "LOST"
)

// Terminal reports whether nothing changes it any more.
func (s WorkState) Terminal() bool {
	return s == WorkDone || s == WorkFailed || s == WorkCancelled || s == WorkLost
}

type work struct {
	Work
	state    WorkState
	node     *node // nil while it waits
	attempt  int   // assignments so far
	failures int
	checksum string // of the completion that was accepted
	// weighs: its weight is taken of node.
	weighs    bool
	notBefore time.Time // of the next assignment, or the next fetch
	until     time.Time // when it is lost without contact
	// adopted: its node has not said yet that it holds it.
	adopted bool
	// hedgeNode is the node that goes on with it although another one was given it, because it was late; nil again when
	// that has failed with it, does not take it or is gone. alsoSum is what it has announced and what is still being
	// fetched from it; empty where it has not completed the work.
	hedgeNode     *node
	hedgeChecksum string
	// avoid are nodes on which it has failed or was late: another one is better, where there is one.
	avoid []*node
}

func (c *Coordinator) submitted(h Submitted) {
	var works []*work
	for _, w := range h.Works {
		// Giving it twice is harmless.
		if c.works[w.Key] == nil {
			works = append(works, &work{Work: w, state: WorkWaiting})
		}
	}
	if len(works) == 0 {
		return
	}
	var places, preferred []*node
	if h.Together {
		var why string
		if places, preferred, why = c.assignTogether(works); why != "" {
			refusal := NoCapacity{Reason: why}
			for _, w := range works {
				refusal.Keys = append(refusal.Keys, w.Key)
			}
			c.emit(refusal)
			return
		}
	}
	for i, w := range works {
		c.works[w.Key] = w
		if places != nil {
			c.assign(w, places[i], preferred[i] == places[i])
		} else {
			c.waiting = append(c.waiting, w)
		}
	}
}

// adopt takes works to be where they are said to be. What its node does not hold when it
// introduces itself next is lost, and so is what is of a node that does not come.
func (c *Coordinator) adopt(h Adopted) {
	for _, a := range h.Works {
		if c.works[a.Work.Key] != nil {
			continue
		}
		n := c.nodes[a.Node]
		if n == nil {
			n = &node{id: a.Node}
			c.nodes[a.Node] = n
		}
		w := &work{Work: a.Work, state: WorkAccepted, node: n, attempt: 1, weighs: true, adopted: true,
			until: c.now.Add(c.policy.Hold)}
		n.used += w.Weight
		c.works[w.Key] = w
	}
}

// assignTogether finds a node for each of the works, each node taking its part of
// them; where room is short some take more. It says why when they do not fit. A node is scored once for
// each work: a thousand of both are a million scores, and the fleet waits meanwhile.
func (c *Coordinator) assignTogether(works []*work) (places, preferred []*node, why string) {
	var nodes []*node
	for _, n := range c.sortedNodes() {
		if n.inRotation() {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return nil, nil, "no node takes work"
	}
	used := make(map[*node]int, len(nodes))
	taken := make(map[*node]int, len(nodes))
	places, preferred = make([]*node, len(works)), make([]*node, len(works))
	for i, w := range works {
		part := (i + len(nodes)) / len(nodes) // of those so far, rounded up
		affinity := w.affinity()
		var liked, fits, best choice
		for _, n := range nodes {
			if !w.allows(n) {
				continue
			}
			s := Score(n.id, affinity)
			liked.offer(n, s)
			if n.capacity != 0 && n.used+used[n]+w.Weight > n.capacity {
				continue
			}
			fits.offer(n, s)
			if taken[n] < part {
				best.offer(n, s)
			}
		}
		if best.node == nil {
			best = fits
		}
		n := best.node
		if n == nil && w.Only != "" {
			return nil, nil, fmt.Sprintf("the node %s, which alone can carry it, has no room or takes no work", w.Only)
		}
		if n == nil {
			return nil, nil, fmt.Sprintf("the %d nodes that take work have no room for all of it", len(nodes))
		}
		places[i], preferred[i] = n, liked.node
		used[n] += w.Weight
		taken[n]++
	}
	return places, preferred, ""
}

// dispatch gives waiting work to nodes, and has fetches repeated. Both pause while
// the node is not there.
func (c *Coordinator) dispatch() {
	c.refetch = slices.DeleteFunc(c.refetch, func(w *work) bool {
		if w.state != WorkReady || w.notBefore.IsZero() {
			return true
		}
		if c.now.Before(w.notBefore) || w.node.state != NodeActive {
			return false
		}
		w.notBefore = time.Time{}
		c.emit(Fetch{w.node.id, w.Key, w.checksum})
		return true
	})
	c.waiting = slices.DeleteFunc(c.waiting, func(w *work) bool {
		if w.state != WorkWaiting {
			return true
		}
		if c.now.Before(w.notBefore) {
			return false
		}
		best := c.bestNode(w, func(n *node) bool { return n.fits(w.Weight) && !slices.Contains(w.avoid, n) })
		if best == nil && len(w.avoid) > 0 {
			best = c.bestNode(w, func(n *node) bool { return n.fits(w.Weight) })
		}
		if best == nil {
			return false // until a node can take it
		}
		c.assign(w, best, c.preferred(w) == best)
		return true
	})
}

// bestNode is the node that a work's affinity prefers of those in rotation that keep accepts.
func (c *Coordinator) bestNode(w *work, keep func(*node) bool) *node {
	var best choice
	affinity := w.affinity()
	for _, n := range c.nodes {
		if n.inRotation() && w.allows(n) && keep(n) {
			best.offer(n, Score(n.id, affinity))
		}
	}
	return best.node
}

// choice is the node of the highest score of those that were offered.
type choice struct {
	node  *node
	score uint64
}

func (c *choice) offer(n *node, s uint64) {
	if c.node == nil || s > c.score || s == c.score && n.id < c.node.id {
		c.node, c.score = n, s
	}
}

// preferred is the node that has what the work needs at hand, whether or not there is room.
func (c *Coordinator) preferred(w *work) *node {
	return c.bestNode(w, func(*node) bool { return true })
}

func (c *Coordinator) assign(w *work, n *node, preferred bool) {
	w.state, w.node, w.notBefore, w.until = WorkAssigned, n, time.Time{}, time.Time{}
	w.attempt++
	w.weighs = true
	if w.hedgeNode == n {
		w.hedgeNode = nil // an assignment ends the one before on the same node
	}
	n.used += w.Weight
	c.emit(Assign{n.id, n.session, w.Work, w.attempt, preferred})
}

// releaseCapacity gives back the room that a work takes.
func (w *work) releaseCapacity() {
	if w.weighs {
		w.weighs = false
		w.node.used -= w.Weight
	}
}

// requeue puts a work back among those that have no node.
func (c *Coordinator) requeue(w *work, notBefore time.Time) {
	w.releaseCapacity()
	w.state, w.node, w.checksum, w.notBefore, w.until = WorkWaiting, nil, "", notBefore, time.Time{}
	c.waiting = append(c.waiting, w)
}

// finish ends a work; what it takes is free.
func (c *Coordinator) finish(w *work, s WorkState) {
	w.releaseCapacity()
	c.cancelHedge(w)
	w.state, w.notBefore, w.until = s, time.Time{}, time.Time{}
}

// hedge gives a work to another node, too. The one that has it goes on, and so does a fetch from it: a node that was
// cut off, or stands still, after it announced what it made would be waited for until it is found unreachable.
func (c *Coordinator) hedge(k Key) {
	w := c.works[k]
	if w == nil || w.OnLoss != Reassign || w.state.Terminal() || w.node == nil || w.hedgeNode != nil {
		return
	}
	n := w.node
	if c.bestNode(w, func(o *node) bool { return o != n && o.fits(w.Weight) && !slices.Contains(w.avoid, o) }) == nil {
		return
	}
	sum := w.checksum
	c.requeue(w, time.Time{})
	w.hedgeNode, w.hedgeChecksum, w.avoid = n, sum, append(w.avoid, n)
}

// cancelHedge ends a work on the node that was late with it.
func (c *Coordinator) cancelHedge(w *work) {
	if w.hedgeNode != nil {
		c.cancelOn(w.hedgeNode, w)
		w.hedgeNode = nil
	}
}

func (c *Coordinator) markLost(w *work, why string) {
	if w.OnLoss == Reassign {
		c.requeue(w, time.Time{})
		return
	}
	n := w.node
	c.finish(w, WorkLost)
	c.emit(Lost{n.id, w.Key, why})
	// Should it hear us after all.
	c.cancelOn(n, w)
}

func (c *Coordinator) cancelled(k Key) {
	for _, w := range c.worksWhere(func(w *work) bool {
		return !w.state.Terminal() && (w.Key == k || k.Leaf == "" && k.Work == "" && w.Key.Query == k.Query)
	}) {
		if w.node != nil {
			c.cancelOn(w.node, w)
		}
		c.finish(w, WorkCancelled)
	}
}

func (c *Coordinator) release(h Released) {
	if !h.Remote {
		c.cancelled(Key{Query: h.Query})
	}
	for k, w := range c.works {
		if k.Query == h.Query {
			w.releaseCapacity()
			w.state = WorkCancelled // should it be among those that wait
			delete(c.works, k)
		}
	}
}

// lookup returns the node and the work that a message of a node is about. Whatever
// nobody waits for there is cancelled, or unknown; then, and for a session that is over, w is nil.
func (c *Coordinator) lookup(nodeID, session string, k Key) (n *node, w *work) {
	if n = c.nodeOfSession(nodeID, session); n == nil {
		return nil, nil
	}
	w = c.works[k]
	if w == nil {
		c.emit(Unknown{n.id, n.session, k})
		return n, nil
	}
	if w.state == WorkFailed || w.state == WorkCancelled || w.state == WorkLost {
		c.emit(Cancel{n.id, n.session, k})
		return n, nil
	}
	return n, w
}

func (c *Coordinator) accepted(h Accepted) {
	n, w := c.lookup(h.Node, h.Session, h.Key)
	switch {
	case w == nil:
	case w.hedgeNode == n:
		// It was late with its answer, too, and goes on.
	case w.node != n:
		// Somebody else has it by now.
		c.emit(Cancel{n.id, n.session, h.Key})
	case w.state == WorkAssigned:
		w.state = WorkAccepted
	}
}

func (c *Coordinator) rejected(h Rejected) {
	n := c.nodeOfSession(h.Node, h.Session)
	if n == nil {
		return
	}
	w := c.works[h.Key]
	if w != nil && w.hedgeNode == n {
		w.hedgeNode, n.accepting = nil, false
		return
	}
	if w == nil || w.node != n || w.state != WorkAssigned && w.state != WorkAccepted {
		return
	}
	if w.OnLoss == StayInPlace {
		c.finish(w, WorkFailed)
		c.emit(Abandoned{w.Key, h.Reason})
		return
	}
	// A node rejects only while it takes no work; its next status says when it does.
	n.accepting = false
	c.requeue(w, time.Time{})
}

func (c *Coordinator) ready(h Ready) {
	n, w := c.lookup(h.Node, h.Session, h.Key)
	switch {
	case w == nil:
	case w.state == WorkDone:
		// The first completion has won: a repetition of it, or another one.
		c.emit(AckArtifact{n.id, n.session, h.Key, h.Checksum})
	case w.state == WorkReady:
		if w.node != n || w.checksum != h.Checksum {
			c.emit(AckArtifact{n.id, n.session, h.Key, h.Checksum})
		}
	default:
		// Also of a node that it was taken from: what is done is done.
		if w.node != nil && w.node != n {
			c.cancelOn(w.node, w)
		}
		if w.hedgeNode == n {
			w.hedgeNode = nil
		}
		c.cancelHedge(w)
		w.releaseCapacity()
		w.state, w.node, w.checksum, w.notBefore, w.until = WorkReady, n, h.Checksum, time.Time{}, time.Time{}
		c.emit(Fetch{n.id, w.Key, h.Checksum})
	}
}

// matchesHedge reports whether a checksum is of what is fetched from a node that was late with it.
func (w *work) matchesHedge(checksum string) bool {
	return !w.state.Terminal() && w.hedgeNode != nil && w.hedgeChecksum != "" && w.hedgeChecksum == checksum
}

func (c *Coordinator) fetched(h Fetched) {
	w := c.works[h.Key]
	if w != nil && w.matchesHedge(h.Checksum) {
		// It came after all, before the other one was done.
		if w.node != nil {
			c.cancelOn(w.node, w)
		}
		w.releaseCapacity()
		w.state, w.node, w.hedgeNode, w.checksum = WorkReady, w.hedgeNode, nil, h.Checksum
	}
	if w == nil || w.state != WorkReady || w.checksum != h.Checksum {
		return
	}
	c.finish(w, WorkDone)
	if w.node.session != "" {
		c.emit(AckArtifact{w.node.id, w.node.session, w.Key, w.checksum})
	}
	c.emit(Done{w.node.id, w.Key, w.checksum})
}

func (c *Coordinator) fetchFailed(h FetchFailed) {
	w := c.works[h.Key]
	if w != nil && w.matchesHedge(h.Checksum) {
		c.cancelHedge(w) // the other one goes on
		return
	}
	if w == nil || w.state != WorkReady || w.checksum != h.Checksum {
		return
	}
	if w.node.state != NodeActive && w.OnLoss == Reassign {
		// An artifact does not survive its node.
		c.cancelOn(w.node, w)
		c.requeue(w, time.Time{})
		return
	}
	if w.failures++; w.failures >= c.policy.Attempts {
		c.cancelOn(w.node, w)
		c.finish(w, WorkFailed)
		c.emit(Abandoned{w.Key, h.Reason})
		return
	}
	if w.OnLoss == Reassign && (h.Gone || w.failures > 1) {
		// What a node loses or damages once it may lose again, and what it twice does not hand out another may.
		w.avoid = append(w.avoid, w.node)
		c.cancelOn(w.node, w)
		c.requeue(w, time.Time{})
		return
	}
	w.notBefore = c.now.Add(backoff.After(w.failures, c.policy.RetryDelay))
	c.refetch = append(c.refetch, w)
}

func (c *Coordinator) failed(h Failed) {
	n, w := c.nodeOfSession(h.Node, h.Session), c.works[h.Key]
	if n != nil && w != nil && w.hedgeNode == n {
		// The other one goes on, unless it would fail there, too.
		if w.hedgeNode = nil; h.Final {
			if w.node != nil {
				c.cancelOn(w.node, w)
			}
			c.finish(w, WorkFailed)
			c.emit(Abandoned{w.Key, h.Reason})
		}
		return
	}
	if n == nil || w == nil || w.node != n || w.state != WorkAssigned && w.state != WorkAccepted {
		return
	}
	w.failures++
	if h.Final || w.OnLoss == StayInPlace || w.failures >= c.policy.Attempts {
		c.finish(w, WorkFailed)
		c.emit(Abandoned{w.Key, h.Reason})
		return
	}
	notBefore := c.now.Add(backoff.After(w.failures, c.policy.RetryDelay))
	if w.avoid = append(w.avoid, n); c.bestNode(w, func(o *node) bool {
		return o.fits(w.Weight) && !slices.Contains(w.avoid, o)
	}) != nil {
		notBefore = time.Time{} // it may be the node
	}
	c.requeue(w, notBefore)
}

func (c *Coordinator) ended(h Ended) {
	n, w := c.nodeOfSession(h.Node, h.Session), c.works[h.Key]
	if n == nil || w == nil || w.node != n || w.state != WorkAssigned && w.state != WorkAccepted {
		return
	}
	c.finish(w, WorkDone)
	c.emit(Done{n.id, w.Key, ""})
}
