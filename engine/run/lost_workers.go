package run

import (
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

const (
	// takeoverGrace is what run workers get at least to be heard of, when another server goes on with their run: nobody
	// may have heard them for longer than they may be silent.
	takeoverGrace = 10 * time.Second
	// lostWorkerExpiry is from how long after its last word on a lost run worker bears nothing, whoever owned its run: far
	// more than a lease and protocol.ReassignAfter, because servers compare their clocks by what nodes tell of them.
	lostWorkerExpiry = 3 * time.Minute
)

// RestoreAfterTakeover takes that a server goes on with the run of another. Run workers that the other has given up may
// still bear load, and when others may have it is not stored. The rest has time to be heard of. Where others may have
// its load (shared) that is the whole limit: who had contact with the server before has contact with this one once it
// is back, and is given up when it must have stopped, not before. A lost one that was told to bear nothing counts as
// given: the store does not say of it whether it has been replaced, or had joined and not had its part yet.
func (c *WorkerTable) RestoreAfterTakeover(now time.Time, shared bool) {
	since := now.Add(takeoverGrace - DeadAfter)
	if shared {
		since = now
	}
	for _, w := range c.Workers {
		switch {
		case w.Dead && now.Sub(w.LastSeen) < lostWorkerExpiry:
			c.LostWorkers.MarkLost(w.ID, now.Add(protocol.ReassignAfter))
			w.reassigned = w.targetIsZero()
		case !w.State.Status.Ended() && !w.wasLocal() && w.LastSeen.Before(since):
			w.LastSeen = since
		}
	}
}

// wasLocal reports whether it was in the process of the server before.
func (w *Worker) wasLocal() bool { return w.State.NodeID == protocol.OwnNode }

// targetIsZero reports whether it was told last to bear nothing.
func (w *Worker) targetIsZero() bool { return w.Connections == 0 && (w.Rate == nil || *w.Rate == 0) }

// ReleaseExpired takes their load from lost run workers that must have stopped by now, and reports whether there are
// any. It returns how many connections each of them had that others have to replace, which is 0 of one that was lost
// while it waited for its part. Nobody replaces who was to leave, or whose part others have had since before another
// server went on with the run.
func (c *WorkerTable) ReleaseExpired(now time.Time) (connections []int, some bool) {
	for _, id := range c.LostWorkers.ReleaseExpired(now) {
		w := c.byID[id]
		if !w.reassigned && !w.Retiring {
			connections = append(connections, w.Connections)
		}
		if w.Connections = 0; w.Rate != nil {
			w.Rate = new(float64)
		}
		some = true
	}
	return connections, some
}
