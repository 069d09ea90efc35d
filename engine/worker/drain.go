package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// HandoverTimeout is how long a node that leaves waits, after its run workers were ended, until they have left the
// target and servers have what they recorded.
const HandoverTimeout = 30 * time.Second

// Drain has the node take no new work; what it has goes on to its end. Servers are asked to fetch at once what is
// recorded, also of runs that go on elsewhere.
func (n *Node) Drain() {
	n.mu.Lock()
	n.draining = true
	var parts []protocol.WorkReady
	for id, p := range n.parts {
		if !p.Pressing {
			p.Pressing = true
			n.parts[id] = p
			parts = append(parts, p.WorkReady)
		}
	}
	n.mu.Unlock()
	for _, p := range parts {
		n.out.Put(p)
	}
	n.report()
}

// Remainder is what a node had not finished or handed over when it left.
type Remainder struct {
	// RunWorkers were still ending, and no server has confirmed the end of Ends. Parts lie on the disk alone.
	RunWorkers, Ends, Parts int
}

// None reports whether nothing is left.
func (r Remainder) None() bool { return r == Remainder{} }

// Leave ends the node's service: it takes no new work, and what it has may take up to limit. Run workers that are left
// then end in order, and tell the owners of their runs why. It returns what no server has after HandoverTimeout.
func (n *Node) Leave(ctx context.Context, limit time.Duration) Remainder {
	n.Drain()
	waiting, cancel := context.WithTimeout(ctx, limit)
	n.WaitIdle(waiting)
	cancel()
	left := n.remainder()
	if left.None() {
		return left
	}
	n.opts.Log.Warn().Int("run_workers", left.RunWorkers).Int("parts", left.Parts).Dur("drain", limit).
		Msg("the drain limit has passed: run workers are ended, and their records are handed over")
	n.leaving.Do(func() { n.drained = limit; close(n.left) })
	handover, cancel := context.WithTimeout(ctx, HandoverTimeout)
	defer cancel()
	n.WaitIdle(handover)
	return n.remainder()
}

func (n *Node) remainder() Remainder {
	n.mu.Lock()
	defer n.mu.Unlock()
	return Remainder{RunWorkers: len(n.held), Ends: len(n.ended), Parts: len(n.parts)}
}

// endWithNode ends the run worker because its node leaves. One that has been told to stop is only given less time.
func (w *runWorker) endWithNode() {
	if w.stopping {
		w.stop(failureDrainTimeout)
		return
	}
	w.fail(&engine.Error{Code: engine.CodeUnavailable,
		Message: fmt.Sprintf("%s has left with its node %s, which was told to shut down and waited %.0f s for it.",
			w.a.WorkerID, w.node.opts.NodeID, w.node.drained.Seconds()),
		Hint: "Stop nodes between runs, or raise --drain of loadstone worker above the duration of the runs."})
}

// WaitIdle waits until the node carries nothing and servers have everything that it made,
// until ctx ends.
func (n *Node) WaitIdle(ctx context.Context) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		if n.remainder().None() && n.queryCount() == 0 {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// handleUnsendable takes note of a message that can never be sent.
func (n *Node) handleUnsendable(m protocol.FromNode, err error) {
	n.opts.Log.Error().Err(err).Str("run_id", protocol.RunIDOf(m)).Type("message", m).
		Msg("a message cannot be sent to a server")
}

// RequestPlugin asks the server for a plugin.
func (n *Node) RequestPlugin(sha256 string) { n.out.Put(protocol.PluginRequest{SHA256: sha256}) }
