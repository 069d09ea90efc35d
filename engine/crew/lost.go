package crew

import (
	"time"

	"github.com/loadstone-db/loadstone/engine/control"
)

const (
	// grace is what run workers get at least to be heard of, when another server goes on with their run: nobody may
	// have heard them for longer than they may be silent.
	grace = 10 * time.Second
	// forgotten is from how long after its last word on a lost run worker bears nothing, whoever owned its run: far
	// more than a lease and control.FreeAfter, because servers compare their clocks by what nodes tell of them.
	forgotten = 3 * time.Minute
)

// Recall takes that a server goes on with the run of another. Run workers that the other has given up may still bear
// load, and when others may have it is not stored. The rest has time to be heard of. Where others may have its load
// (shared) that is the whole limit: who had contact with the server before has contact with this one once it is back,
// and is given up when it must have stopped, not before.
func (c *Crew) Recall(now time.Time, shared bool) {
	since := now.Add(grace - DeadAfter)
	if shared {
		since = now
	}
	for _, w := range c.Workers {
		switch {
		case w.Dead && now.Sub(w.Heard) < forgotten:
			c.Losses.Lost(w.ID, now.Add(control.FreeAfter))
		case !w.State.Status.Ended() && !w.gone() && w.Heard.Before(since):
			w.Heard = since
		}
	}
}

// gone reports whether it was in the process of the server before.
func (w *Worker) gone() bool { return w.State.NodeID == control.OwnNode }

// Freed takes their load from lost run workers that must have stopped by now, and reports whether there are any. It
// returns how many connections each of them had that had a part of the load: a server that goes on with the run finds
// none with those whose part others have.
func (c *Crew) Freed(now time.Time) (connections []int, some bool) {
	for _, id := range c.Losses.Freed(now) {
		w := c.byID[id]
		if w.Connections > 0 || w.Rate != nil && *w.Rate > 0 {
			connections = append(connections, w.Connections)
		}
		if w.Connections = 0; w.Rate != nil {
			w.Rate = new(float64)
		}
		some = true
	}
	return connections, some
}
