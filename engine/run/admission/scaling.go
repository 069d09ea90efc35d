package admission

import (
	"context"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/placement"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Needs is what a scaler of nodes has to know.
type Needs struct {
	At            engine.Time `json:"at"`
	QueueDepth    int         `json:"queue_depth" doc:"Runs that wait for room on the nodes."`
	OldestSeconds float64     `json:"oldest_wait_seconds" doc:"How long the first of them has waited; 0 when none waits."`
	// WantedNodes is placement.Demand's Wanted.
	WantedNodes int `json:"wanted_nodes" doc:"How many nodes the demand needs: typical ones that hold the run workers of all runs that run or wait, no fewer than carry something now; 0 when there is no demand. The servers' own nodes, and what only they can carry, are no part of it."`
	RunsRunning int `json:"runs_running" doc:"Runs that hold room on nodes."`
	Held        int `json:"reserved_connections" doc:"Connections that they hold."`
	Wanting     int `json:"waiting_connections" doc:"Connections that the others wait for."`
	// TypicalCapacity is what a node is taken to hold.
	TypicalCapacity int           `json:"typical_node_capacity" doc:"The median capacity of the nodes that take run workers; 0 when there is none, or no limit."`
	Nodes           []NodeRoom    `json:"nodes" nullable:"false"`
	Waiting         []WaitingInfo `json:"waiting" nullable:"false" doc:"The runs that wait, the longest first."`
}

// NodeRoom is a node in the ledger.
type NodeRoom struct {
	NodeID   string `json:"node_id" doc:"The own node of a server has the server's name behind an @."`
	Known    bool   `json:"accepting_work" doc:"It takes run workers from the server that answers."`
	Capacity int    `json:"capacity" doc:"Most connections of all runs together; 0 is no limit, or a node that this server does not know."`
	Reserved int    `json:"reserved_connections"`
	Runs     int    `json:"runs"`
}

// WaitingInfo is a run that waits.
type WaitingInfo struct {
	RunID   string `json:"run_id"`
	RunName string `json:"test_name"`
	By      string `json:"asked_by"`
	engine.Waiting
}

// Scaling reads the ledger.
func (d *Doorman) Scaling(ctx context.Context) (Needs, error) {
	l, err := d.look(ctx)
	if err != nil {
		return Needs{}, err
	}
	return reckon(l, placement.Loaded(d.nodes(), l.Held, ""), time.Now()), nil
}

// own reports whether a node is one of a server's own.
func own(node string) bool { return strings.HasPrefix(node, protocol.OwnNode+at) }

func reckon(l store.Ledger, nodes []engine.NodeCapacity, now time.Time) Needs {
	s := Needs{At: engine.At(now), QueueDepth: len(l.Waiting), Nodes: []NodeRoom{}, Waiting: []WaitingInfo{}}
	demand := placement.Demand{}
	rooms := map[string]*NodeRoom{}
	var order []string
	room := func(id string) *NodeRoom {
		if rooms[id] == nil {
			rooms[id] = &NodeRoom{NodeID: id}
			order = append(order, id)
		}
		return rooms[id]
	}
	for _, n := range nodes {
		r := room(n.ID)
		r.Known, r.Capacity = true, n.Capacity
		if !own(n.ID) {
			demand.Nodes = append(demand.Nodes, n)
		}
	}
	runs := map[string]bool{}
	on := map[[2]string]bool{}
	for _, h := range l.Held {
		r := room(h.NodeID)
		r.Reserved += h.Connections
		s.Held += h.Connections
		runs[h.RunID] = true
		if key := [2]string{h.NodeID, h.RunID}; !on[key] {
			on[key] = true
			r.Runs++
		}
		if !own(h.NodeID) {
			demand.Held = append(demand.Held, h)
		}
	}
	for i, w := range l.Waiting {
		s.Wanting += placement.Total(w.Works)
		s.Waiting = append(s.Waiting, WaitingInfo{RunID: w.RunID, RunName: w.RunName, By: w.By,
			Waiting: *said(l.Waiting, i, nodes)})
		if own(w.Pool) {
			continue
		}
		for _, work := range w.Works {
			demand.Waiting = append(demand.Waiting, work.Connections)
		}
	}
	if s.QueueDepth > 0 {
		s.OldestSeconds = max(now.Sub(l.Waiting[0].Since.Time).Seconds(), 0)
	}
	s.RunsRunning, s.WantedNodes, s.TypicalCapacity = len(runs), demand.Wanted(), demand.Typical()
	for _, id := range order {
		s.Nodes = append(s.Nodes, *rooms[id])
	}
	return s
}
