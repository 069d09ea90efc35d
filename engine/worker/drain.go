package worker

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// Drain has the node take no new work; what it has goes on to its end.
func (n *Node) Drain() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.draining = true
}

// WaitIdle waits until the node carries nothing and servers have everything that it made,
// until ctx ends.
func (n *Node) WaitIdle(ctx context.Context) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		n.mu.Lock()
		left := len(n.held) + len(n.ended) + len(n.parts)
		n.mu.Unlock()
		left += n.queryCount()
		if left == 0 {
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
