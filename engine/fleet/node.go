package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/control"
)

// node is the server's side of one node: its stream with a queue of its own, so
// that one stalled node delays nobody else.
type node struct {
	link  control.ServerEnd
	out   chan control.ToNode
	ready chan struct{} // closed when the first Hello is taken in

	mu        sync.Mutex
	hello     control.Hello
	status    control.Status
	gone      bool
	once      sync.Once
	connected bool
}

func newNode(link control.ServerEnd) *node {
	return &node{link: link, out: make(chan control.ToNode, 1024), ready: make(chan struct{})}
}

// Send queues a message; a full queue drops it.
func (n *node) Send(m control.ToNode) bool {
	select {
	case n.out <- m:
		return true
	default:
		return false
	}
}

// write sends what is queued until ctx ends, and a Ping each second.
func (n *node) write(ctx context.Context) {
	ticker := time.NewTicker(control.HeartbeatInterval)
	defer ticker.Stop()
	var seq int64
	for {
		var m control.ToNode
		select {
		case <-ctx.Done():
			// What was decided before the end still goes out.
			for {
				select {
				case m := <-n.out:
					_ = n.link.Send(context.WithoutCancel(ctx), m)
				default:
					return
				}
			}
		case m = <-n.out:
		case now := <-ticker.C:
			seq++
			m = control.Ping{Seq: seq, Sent: now}
		}
		// A failed send is not repeated; see Node.
		_ = n.link.Send(ctx, m)
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
