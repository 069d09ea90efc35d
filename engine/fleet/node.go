package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/control"
)

// node is the server's side of one node: its stream, and a mailbox in front of it,
// so that one stalled node delays nobody else.
type node struct {
	link  control.ServerEnd
	out   *control.Mailbox[control.ToNode]
	ready chan struct{} // closed when the first Hello is taken in

	mu        sync.Mutex
	hello     control.Hello
	status    control.Status
	gone      bool
	once      sync.Once
	connected bool
}

func newNode(link control.ServerEnd) *node {
	return &node{link: link, out: control.NewMailbox(control.PolicyToNode, nil), ready: make(chan struct{})}
}

// Send puts a message into the node's mailbox.
func (n *node) Send(m control.ToNode) error {
	n.mu.Lock()
	gone := n.gone
	n.mu.Unlock()
	if gone {
		return control.ErrClosed
	}
	n.out.Put(m)
	return nil
}

// write delivers what is in the mailbox until ctx ends or the stream has closed. What
// was decided before the end still goes out.
func (n *node) write(ctx context.Context) {
	if err := n.out.Deliver(ctx, n.link.Send); ctx.Err() == nil || errors.Is(err, control.ErrClosed) {
		return
	}
	rest := context.WithoutCancel(ctx)
	for m, ok := n.out.Take(); ok; m, ok = n.out.Take() {
		if n.link.Send(rest, m) != nil {
			return
		}
	}
}

// ping puts a Ping into the mailbox each second, until ctx ends.
func (n *node) ping(ctx context.Context) {
	ticker := time.NewTicker(control.HeartbeatInterval)
	defer ticker.Stop()
	for seq := int64(1); ; seq++ {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			n.out.Put(control.Ping{Seq: seq, Sent: now})
		}
	}
}

func (n *node) greet(h control.Hello) {
	n.mu.Lock()
	n.hello, n.connected, n.gone = h, true, false
	n.mu.Unlock()
}

// introduced says that all of a Hello has been taken in.
func (n *node) introduced() { n.once.Do(func() { close(n.ready) }) }

func (n *node) heard(s control.Status) {
	n.mu.Lock()
	n.status = s
	n.mu.Unlock()
}

func (n *node) lost() {
	n.mu.Lock()
	n.gone = true
	n.mu.Unlock()
}

// ID is the name that the node has given itself.
func (n *node) ID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hello.NodeID
}

// available reports whether the node takes new run workers, and how many
// connections it has room for at most (0: no limit).
func (n *node) available() (capacity int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hello.Capacity, n.connected && !n.gone && !n.status.Draining
}
