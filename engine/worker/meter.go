package worker

import (
	"context"
	"path/filepath"
	"time"
)

// Meter takes measurements of run workers and returns at once.
type Meter interface {
	// Ended is the end of a run worker.
	Ended(EndedWorker)
	// Deleted is a file of the spool that was deleted for that reason.
	Deleted(reason string)
}

// measure tells the meter of a run worker that has ended.
func (n *Node) measure(w *runWorker, began time.Time) {
	if n.opts.Meter == nil {
		return
	}
	now := time.Now()
	m := EndedWorker{
		RunID:       w.a.RunID,
		WorkerID:    w.a.WorkerID,
		NodeID:      n.opts.NodeID,
		TraceParent: w.a.TraceParent,
		Assigned:    began,
		Ready:       w.readyAt,
		LoadStarted: w.loadStartedAt,
		Stopped:     w.stoppedAt,
		Drained:     w.drainedAt,
		Ended:       now,
		Ahead:       w.ownerNow().Sub(now.Round(0)),
	}
	if w.err != nil {
		m.Failed = w.err.Message
	}
	n.opts.Meter.Ended(m)
}

// State is what the node is and has now, for its metrics.
func (n *Node) State() NodeState {
	s := NodeState{Capacity: max(n.opts.Capacity, 0), Servers: n.out.servers(), FreeBytes: -1}
	if free, _, ok := n.opts.Space(filepath.Dir(n.opts.SpoolDir)); ok {
		s.FreeBytes = free
	}
	s.DiskBytes, s.CacheBytes, s.BudgetBytes = n.disk.state()
	n.mu.Lock()
	defer n.mu.Unlock()
	s.RunWorkers, s.Parts, s.Draining = len(n.held), len(n.parts), n.draining || n.drainRequested
	s.Accepting = !s.Draining && n.refusal == ""
	for _, w := range n.held {
		s.Connections += w.a.Connections
	}
	for _, p := range n.parts {
		s.SpoolBytes += p.Artifact.SizeBytes
	}
	return s
}

// HasWorker reports whether a run worker is here, from its assignment to its end.
func (n *Node) HasWorker() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.held) > 0
}

// giveWayTimeout is how long a run worker waits at most for what works beside the node: a refresh that is deaf to its
// end must not keep a run from beginning.
const giveWayTimeout = 5 * time.Second

// SetGiveWay tells the node of what else works on its machine and gives way while Carries is true. Each run worker
// calls giveWay before it says that it is ready, so that nothing of that falls into what is measured. It returns when
// all has given way, and no later than its context ends.
func (n *Node) SetGiveWay(giveWay func(context.Context)) { n.giveWay.Store(&giveWay) }

func (n *Node) awaitGiveWay(ctx context.Context) {
	giveWay := n.giveWay.Load()
	if giveWay == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, giveWayTimeout)
	defer cancel()
	(*giveWay)(ctx)
}

// Ready reports whether the node takes new work.
func (n *Node) Ready() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.draining && !n.drainRequested && n.refusal == "" && n.lifetime.Err() == nil
}
