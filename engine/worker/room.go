package worker

import (
	"fmt"

	"github.com/loadstone-db/loadstone/engine/results/record"
)

// minRoom is how many bytes the disk has to hold beyond its reserve, and the spool within its budget, for a node to
// take another run worker: with less its record would end within seconds.
const minRoom = 64 << 20

// checkRoom finds out whether the node can record another run worker, and why not. One that could not takes work again
// when there is twice the room, so that it does not come and go.
func (n *Node) checkRoom() {
	why := n.noRoom()
	n.mu.Lock()
	before := n.refusal
	n.refusal = why
	n.mu.Unlock()
	switch {
	case before == "" && why != "":
		n.opts.Log.Error().Str("reason", why).Msg("the node takes no new work")
	case before != "" && why == "":
		n.opts.Log.Info().Msg("the node takes new work again")
	}
}

func (n *Node) noRoom() string {
	room := int64(minRoom)
	n.mu.Lock()
	if n.refusal != "" {
		room *= 2
	}
	n.mu.Unlock()
	dir := existing(n.opts.SpoolDir)
	reserve := record.Reserve(dir, n.opts.Reserve)
	if free, _, ok := n.opts.Space(dir); ok && free < reserve+room {
		return fmt.Sprintf(
			"its disk is full: %d MB are free, of which %d MB stay free (--disk-reserve)",
			free>>20,
			reserve>>20,
		)
	}
	if used, cached, most := n.disk.state(); most-(used-cached) < min(room, most/4) {
		return fmt.Sprintf("its spool is full: %d MB of %d MB (--spool-budget) wait for servers to store them",
			(used-cached)>>20, most>>20)
	}
	return ""
}
