package orchestrator

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/fleet"
	"github.com/loadstone-db/loadstone/engine/lifecycle"
	"github.com/loadstone-db/loadstone/engine/runlog"
)

// runWorker is what the server knows of a run worker.
type runWorker struct {
	id          string
	group       int
	resultID    string
	connections int
	// rate is its part of the run's, nil in a closed loop and where the workload paces itself.
	rate     *float64
	retiring bool
	losses   runlog.Losses
	node     fleet.Node
	state    control.WorkerState
	heard    time.Time // last heartbeat, on the server's clock
	dead     bool
	why      string
}

func (w *runWorker) target() engine.WorkerTarget {
	return engine.WorkerTarget{TargetConnections: w.connections, TargetQPS: w.rate}
}

// crew are the run workers of a run, those that have left among them.
type crew struct {
	workers []*runWorker
	byID    map[string]*runWorker
	// losses are those that are gone and may still bear load.
	losses lifecycle.Losses
}

func (c *crew) enlist(w *runWorker) {
	if c.byID == nil {
		c.byID = map[string]*runWorker{}
	}
	c.workers = append(c.workers, w)
	c.byID[w.id] = w
}

func (c *crew) worker(id string) *runWorker { return c.byID[id] }

// speaks reports whether what a node says of a run worker counts: only the one that carries it
// speaks for it, and for what it made. Of one that nobody knows to be anywhere, the first does.
func (c *crew) speaks(from fleet.Node, workerID, resultID string) bool {
	w := c.byID[workerID]
	switch {
	case w == nil || resultID != "" && resultID != w.resultID:
		return false
	case w.node != nil:
		return w.node.ID() == from.ID()
	}
	return w.state.NodeID == "" || w.state.NodeID == from.ID()
}

func (c *crew) allEnded() bool {
	for _, w := range c.workers {
		if !w.state.Status.Ended() {
			return false
		}
	}
	return true
}

// carrying are the run workers that have neither ended nor been told to, in the order of their groups.
func (c *crew) carrying() []*runWorker {
	var out []*runWorker
	for _, w := range c.workers {
		if !w.state.Status.Ended() && !w.retiring {
			out = append(out, w)
		}
	}
	return out
}

// joined reports whether every run worker is ready, or has failed to be.
func (c *crew) joined() bool {
	for _, w := range c.workers {
		if w.state.Status == engine.WorkerStarting {
			return false
		}
	}
	return true
}

// nodes are the nodes that host workers of the run.
func (c *crew) nodes() []fleet.Node {
	var found []fleet.Node
	seen := map[fleet.Node]bool{}
	for _, w := range c.workers {
		if w.node != nil && !seen[w.node] {
			seen[w.node] = true
			found = append(found, w.node)
		}
	}
	return found
}

// hearing are those of all nodes that an event is for: one about a run worker is for its node alone.
func (c *crew) hearing(e engine.Event, all []fleet.Node) []fleet.Node {
	if w := c.byID[e.Data.WorkerID]; e.Data.Scope == engine.ScopeWorker && w != nil && w.node != nil {
		return []fleet.Node{w.node}
	}
	return all
}

// carriers are the ids of the run workers on each node, those without a node under nil.
func (c *crew) carriers() map[fleet.Node][]string {
	on := map[fleet.Node][]string{}
	for _, w := range c.workers {
		on[w.node] = append(on[w.node], w.id)
	}
	return on
}

// expected is how many run workers the run has: those that are not needed any
// more, and those that never came to carry load, are none of them.
func (l *live) expected() int {
	n := 0
	for _, w := range l.workers {
		if !w.retiring && (w.state.Status != engine.WorkerFailed || l.life.Carried(w.id) || !l.life.Started()) {
			n++
		}
	}
	return n
}

func (l *live) health(w *runWorker, now time.Time) engine.Health {
	switch age := now.Sub(w.heard); {
	case w.dead || (age > deadAfter && !w.state.Status.Ended()):
		return engine.HealthDead
	case age > staleAfter && !w.state.Status.Ended():
		return engine.HealthStale
	default:
		return engine.HealthHealthy
	}
}

// idsOf are the ids of run workers, in their order.
func idsOf(workers []*runWorker) []string {
	ids := make([]string, len(workers))
	for i, w := range workers {
		ids[i] = w.id
	}
	return ids
}

// held is the load that lost run workers may still bear: nobody else has it until they must have stopped.
func (c *crew) held() (connections int, rate float64) {
	for _, w := range c.workers {
		if c.losses.Holds(w.id) {
			connections += w.connections
			if w.rate != nil {
				rate += *w.rate
			}
		}
	}
	return connections, rate
}

// shareRate gives each run worker an equal part of what is free of a rate.
func (c *crew) shareRate(workers []*runWorker, rate float64) {
	_, held := c.held()
	rate = max(rate-held, 0)
	for _, w := range workers {
		own := rate / float64(len(workers))
		w.rate = &own
	}
}

// shareConnections spreads what is free of a number of connections over the run workers.
func (c *crew) shareConnections(workers []*runWorker, total int) {
	if len(workers) == 0 {
		return
	}
	held, _ := c.held()
	for i, n := range engine.Spread(max(total-held, 0), len(workers)) {
		workers[i].connections = n
	}
}
