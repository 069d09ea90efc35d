package nodes

import (
	"context"
	"io"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// Source finds nodes while the server runs.
type Source interface {
	// Discover finds those that are there now. Open waits for it, within the limit of ctx.
	Discover(ctx context.Context, w DialerSet)
	// Watch goes on finding them, until ctx ends.
	Watch(ctx context.Context, w DialerSet)
}

// DialerSet are the ways to nodes that a Source has found, each by a key of the source's own.
type DialerSet interface {
	// Add dials a node from now on. A key that is there is dialled again when it was to be
	// retired, and is left as it is otherwise; then the Dialer of dial is not made.
	Add(key string, dial func() (protocol.Dialer, error)) error
	// Retire ends a way that nothing leads to any more, once its stream breaks: a name that is
	// not resolved for a moment ends no load.
	Retire(key string)
	// Remove ends a way now: an operator has taken it out.
	Remove(key string)
	// Disconnected tells that a stream has broken: it may be worth looking again.
	Disconnected() <-chan struct{}
}

// dialerSet implements Ways while the fleet is open.
type dialerSet struct {
	*Fleet
	lifetime context.Context //nolint:containedctx // of the goroutines that Add starts
	run      func(func())
}

// Add implements Ways.
func (w dialerSet) Add(key string, dial func() (protocol.Dialer, error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.found[key]; n != nil {
		n.retire(false)
		return nil
	}
	d, err := dial()
	if err != nil {
		return err
	}
	n := newNode(w.Fleet, d)
	ctx, leave := context.WithCancel(w.lifetime)
	n.leave = leave
	w.found[key] = n
	w.nodes = append(w.nodes, n)
	w.run(func() {
		n.maintain(ctx)
		leave()
		w.forget(key, n)
		if c, ok := d.(io.Closer); ok {
			_ = c.Close()
		}
	})
	return nil
}

// forget drops a way that is kept no longer.
func (f *Fleet) forget(key string, n *node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.found[key] == n {
		delete(f.found, key)
	}
	// Who looks at the nodes without the lock has the list as it was.
	others := make([]*node, 0, len(f.nodes))
	for _, other := range f.nodes {
		if other != n {
			others = append(others, other)
		}
	}
	f.nodes = others
}

// Retire implements Ways.
func (w dialerSet) Retire(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.found[key]; n != nil {
		n.retire(true)
	}
}

// Remove implements Ways.
func (w dialerSet) Remove(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.found[key]; n != nil {
		// A node that is added again meanwhile is another.
		delete(w.found, key)
		if id := n.ID(); id != "" {
			w.takenOut[id] = true
		}
		n.leave()
	}
}

// Disconnected implements Ways.
func (w dialerSet) Disconnected() <-chan struct{} { return w.lost }

// retire ends the node's way once it has no stream, or does not any more.
func (n *node) retire(wanted bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.retired = wanted
	if wanted && n.end == nil {
		n.leave()
	}
}

// retiring reports whether the way ends now that it has no stream.
func (n *node) retiring() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.retired
}

// notifyDisconnected tells sources that a stream has broken.
func (f *Fleet) notifyDisconnected() {
	select {
	case f.lost <- struct{}{}:
	default:
	}
}
