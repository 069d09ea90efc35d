package worker

import (
	"context"
	"sync"

	"github.com/loadstone-db/loadstone/engine/control"
)

// outboxLimit bounds what waits for the server. Beyond it the oldest message
// that a later one replaces (snapshots, logs, heartbeats) is dropped; results
// never are.
const outboxLimit = 4096

// outbox keeps messages for the server, in order, while the stream is slow or away.
type outbox struct {
	mu    sync.Mutex
	items []control.FromNode
	wake  chan struct{}
	// lines counts the log lines that were dropped, by run.
	lines map[string]int64
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

// push never blocks.
func (o *outbox) push(m control.FromNode) {
	o.mu.Lock()
	o.items = append(o.items, m)
	if len(o.items) > outboxLimit {
		for i, old := range o.items {
			if replaceable(old) {
				if line, ok := old.(control.Log); ok {
					o.lineDropped(line.RunID)
				}
				o.items = append(o.items[:i], o.items[i+1:]...)
				break
			}
		}
	}
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// lineDropped counts a line of a run's log that will not be sent. It needs mu.
func (o *outbox) lineDropped(runID string) {
	if o.lines == nil {
		o.lines = map[string]int64{}
	}
	o.lines[runID]++
}

// linesDropped is how many lines of a run's log were dropped so far.
func (o *outbox) linesDropped(runID string) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines[runID]
}

// dropLines counts lines that were dropped before they came here.
func (o *outbox) dropLines(runID string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for range n {
		o.lineDropped(runID)
	}
}

func replaceable(m control.FromNode) bool {
	switch m := m.(type) {
	case control.Snapshot, control.Log, control.Status, control.Pong:
		return true
	case control.WorkerState:
		return !m.Status.Ended()
	default:
		return false
	}
}

// take removes the first message.
func (o *outbox) take() (control.FromNode, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.items) == 0 {
		return nil, false
	}
	m := o.items[0]
	o.items[0] = nil
	o.items = o.items[1:]
	return m, true
}

// putBack makes m the first again.
func (o *outbox) putBack(m control.FromNode) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.items = append([]control.FromNode{m}, o.items...)
}

// drain sends until ctx ends or the stream breaks. A message that could not be
// sent stays the first.
func (o *outbox) drain(ctx context.Context, link control.NodeEnd) {
	for {
		m, any := o.take()
		if !any {
			select {
			case <-ctx.Done():
				return
			case <-o.wake:
			}
			continue
		}
		if err := link.Send(ctx, m); err != nil {
			o.putBack(m)
			if ctx.Err() != nil {
				return
			}
			// A stalled stream is tried again; a closed one ends the session through Receive.
			select {
			case <-ctx.Done():
				return
			case <-o.wake:
			}
		}
	}
}
