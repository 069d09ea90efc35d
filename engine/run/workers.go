// This part is what a server knows of the run workers of a run: who they are, where, what each
// was told, what it has said last, and how the load of the run is shared between them. Only the
// loop of the run uses it; it reads no clock and sends nothing.

package run

import (
	"cmp"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/runlog"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// The health of a run worker follows from the age of its last heartbeat.
const (
	staleAfter = 30 * time.Second
	// DeadAfter is from when one that is silent is given up.
	DeadAfter = 60 * time.Second
)

// Worker is what the server knows of a run worker.
type Worker struct {
	ID          string
	Group       int
	ResultID    string
	Connections int
	// Rate is its part of the run's, nil in a closed loop and where the workload paces itself.
	Rate     *float64
	Retiring bool
	Losses   runlog.ConnectionLosses
	Node     nodes.Node
	State    protocol.WorkerState
	LastSeen time.Time // last heartbeat, on the server's clock
	// Dead is one that was given up, and Why says what became of it.
	Dead       bool
	DeadReason string

	// left: its row of the results says how it ended, and when.
	left bool
	// unreachable: the log of the run says until when it may bear load.
	unreachable bool
	// reassigned is a lost one whose part others had before this server went on with the run.
	reassigned bool
	assigned   assignedLoad
}

// InitialWorkers are the run workers that a run begins with, with their shares of its connections.
func InitialWorkers(sc engine.Scenario, shares []int) []*Worker {
	workers := make([]*Worker, len(shares))
	for i, n := range shares {
		workers[i] = &Worker{ID: scaling.WorkerID(i), Group: i, ResultID: uuid.NewString(), Connections: n}
	}
	if rate := scaling.FirstRate(sc); rate != nil {
		for _, w := range workers {
			own := *rate / float64(len(workers))
			w.Rate = &own
		}
	}
	return workers
}

// Target is what it was told last.
func (w *Worker) Target() engine.WorkerTarget {
	return engine.WorkerTarget{TargetConnections: w.Connections, TargetQPS: w.Rate}
}

// LogWorker is a run worker as the log tells of it; no run worker is nobody.
func (w *Worker) LogWorker() *runlog.Worker {
	if w == nil {
		return nil
	}
	return &runlog.Worker{ID: w.ID, ResultID: w.ResultID, NodeID: w.State.NodeID, Status: w.State.Status,
		Connections: w.Connections, Losses: &w.Losses}
}

// RecordReport takes note of a word of the worker that comes now, and returns when that was said: one without a time,
// of who is lost with its node, is as old as the last one before.
func (w *Worker) RecordReport(at, now time.Time) (said time.Time) {
	said, w.LastSeen = cmp.Or(at, w.LastSeen), now
	return said
}

// Health is how it is.
func (w *Worker) Health(now time.Time) engine.Health {
	switch age := now.Sub(w.LastSeen); {
	case w.Dead || (age > DeadAfter && !w.State.Status.Ended()):
		return engine.HealthDead
	case age > staleAfter && !w.State.Status.Ended():
		return engine.HealthStale
	default:
		return engine.HealthHealthy
	}
}

// WorkerTable are the run workers of a run, those that have left among them. The zero WorkerTable has none.
type WorkerTable struct {
	// Workers are in the order of their groups.
	Workers []*Worker
	byID    map[string]*Worker
	// LostWorkers are those that are gone and may still bear load.
	LostWorkers lifecycle.LostWorkers
}

// Register takes a run worker in, for good.
func (c *WorkerTable) Register(w *Worker) {
	if c.byID == nil {
		c.byID = map[string]*Worker{}
	}
	w.initTargets()
	c.Workers = append(c.Workers, w)
	c.byID[w.ID] = w
}

// Worker is the run worker of that id, nil when there is none.
func (c *WorkerTable) Worker(id string) *Worker { return c.byID[id] }

// IsAuthoritative reports whether what a node says of a run worker counts: only the one that carries it
// speaks for it, and for what it made. Of one that nobody knows to be anywhere, the first does.
func (c *WorkerTable) IsAuthoritative(from nodes.Node, workerID, resultID string) bool {
	w := c.byID[workerID]
	switch {
	case w == nil || resultID != "" && resultID != w.ResultID:
		return false
	case w.Node != nil:
		return w.Node.ID() == from.ID()
	}
	return w.State.NodeID == "" || w.State.NodeID == from.ID()
}

// AllEnded reports whether none is left.
func (c *WorkerTable) AllEnded() bool {
	for _, w := range c.Workers {
		if !w.State.Status.Ended() {
			return false
		}
	}
	return true
}

// ActiveWorkers are the run workers that have neither ended nor been told to, in the order of their groups.
func (c *WorkerTable) ActiveWorkers() []*Worker {
	var out []*Worker
	for _, w := range c.Workers {
		if !w.State.Status.Ended() && !w.Retiring {
			out = append(out, w)
		}
	}
	return out
}

// AllReady reports whether every run worker is ready, or has failed to be.
func (c *WorkerTable) AllReady() bool {
	for _, w := range c.Workers {
		if w.State.Status == engine.WorkerStarting {
			return false
		}
	}
	return true
}

// Nodes are the nodes that host workers of the run.
func (c *WorkerTable) Nodes() []nodes.Node {
	var found []nodes.Node
	seen := map[nodes.Node]bool{}
	for _, w := range c.Workers {
		if w.Node != nil && !seen[w.Node] {
			seen[w.Node] = true
			found = append(found, w.Node)
		}
	}
	return found
}

// NodesFor are those of all nodes that an event is for: one about a run worker is for its node alone.
func (c *WorkerTable) NodesFor(e engine.Event, all []nodes.Node) []nodes.Node {
	if w := c.byID[e.Data.WorkerID]; e.Data.Scope == engine.ScopeWorker && w != nil && w.Node != nil {
		return []nodes.Node{w.Node}
	}
	return all
}

// WorkersByNode are the ids of the run workers on each node, those without a node under nil.
func (c *WorkerTable) WorkersByNode() map[nodes.Node][]string {
	on := map[nodes.Node][]string{}
	for _, w := range c.Workers {
		on[w.Node] = append(on[w.Node], w.ID)
	}
	return on
}

// ExpectedCount is how many run workers the run has: those that are not needed any
// more, and those that never came to carry load, are none of them.
func (c *WorkerTable) ExpectedCount(life *lifecycle.Machine) int {
	n := 0
	for _, w := range c.Workers {
		if !w.Retiring && (w.State.Status != engine.WorkerFailed || life.CarriedLoad(w.ID) || !life.Started()) {
			n++
		}
	}
	return n
}

// WorkerIDs are the ids of run workers, in their order.
func WorkerIDs(workers []*Worker) []string {
	ids := make([]string, len(workers))
	for i, w := range workers {
		ids[i] = w.ID
	}
	return ids
}

// HeldByLost is the load that lost run workers may still bear: nobody else has it until they must have stopped.
func (c *WorkerTable) HeldByLost(now time.Time) (connections int, rate float64) {
	for _, w := range c.Workers {
		if c.LostWorkers.HoldsLoad(w.ID) {
			connections += int(w.assigned.connections.upperBound(now))
			rate += w.assigned.rate.upperBound(now)
		}
	}
	return connections, rate
}

// ConnectionProgress is how many connections the run workers have open, and how many they are to have.
func (c *WorkerTable) ConnectionProgress() (open, want int64) {
	for _, w := range c.Workers {
		open, want = open+int64(w.State.OpenConnections), want+int64(w.Connections)
	}
	return open, want
}

// Excuse forgives the run workers a time in which nobody could hear them: their silence is that much shorter.
func (c *WorkerTable) Excuse(silence time.Duration, now time.Time) {
	for _, w := range c.Workers {
		if w.LastSeen = w.LastSeen.Add(silence); w.LastSeen.After(now) {
			w.LastSeen = now
		}
	}
}
