package nodes

import (
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// handle is a node by its name, for who sends it messages: it leads to the way on which the
// node has introduced itself last. A node can come back by another way than the one by which
// it was given its work, and hears of its runs there.
type handle struct {
	fleet *Fleet
	id    string

	mu sync.Mutex
	// partsSince is when each part was announced that is not acknowledged, by work id.
	partsSince map[string]time.Time
}

// handle is the node of that name. It needs mu.
func (f *Fleet) handle(id string) *handle {
	if f.handles[id] == nil {
		f.handles[id] = &handle{fleet: f, id: id, partsSince: map[string]time.Time{}}
	}
	return f.handles[id]
}

// ID implements Node.
func (h *handle) ID() string { return h.id }

// Send implements Node. A message to a node that has never been there is dropped.
func (h *handle) Send(m protocol.ToNode) error {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	at := h.fleet.byID[h.id]
	if at == nil {
		return protocol.ErrClosed
	}
	return at.Send(m)
}

// node is the way to the node now, nil where there is none.
func (h *handle) node() *node {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	return h.fleet.byID[h.id]
}

// noteAnnounced notes when a part was announced first.
func (h *handle) noteAnnounced(workID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.partsSince[workID]; !known {
		h.partsSince[workID] = time.Now()
	}
}

// acknowledge ends what announce began.
func (h *handle) acknowledge(workID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.partsSince, workID)
}

// announced is when a part was announced that is not acknowledged.
func (h *handle) announced(workID string) (at time.Time, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, known = h.partsSince[workID]
	return at, known
}

// identify makes a way the one of the node that has introduced itself on it, and moves there what
// waits on the one before. It needs the fleet's mu.
func (n *node) identify(id string) {
	before := n.fleet.byID[id]
	n.fleet.byID[id] = n
	if before == nil || before == n {
		return
	}
	for _, m := range before.out.RemoveMatching(func(protocol.ToNode) bool { return true }) {
		if !protocol.IsQueryMessage(m) {
			n.out.Put(m)
		}
	}
}

// forwardUnsent gives what this way could not deliver any more to the one by which its node has come
// meanwhile, before what was put there since.
func (n *node) forwardUnsent() {
	id := n.ID()
	n.fleet.mu.Lock()
	defer n.fleet.mu.Unlock()
	at := n.fleet.byID[id]
	if at == nil || at == n {
		return
	}
	n.out.RemoveMatching(protocol.IsQueryMessage)
	left := n.out.RemoveMatching(func(protocol.ToNode) bool { return true })
	for i := len(left) - 1; i >= 0; i-- {
		at.out.PutBack(left[i])
	}
}

// stream is the one that stands to the node, nil where none does.
func (h *handle) stream() protocol.ServerEnd {
	n := h.node()
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.end
}
