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

// ScalingNeeds is what a scaler of nodes has to know.
type ScalingNeeds struct {
	At            engine.Time `json:"at"`
	QueueDepth    int         `json:"queue_depth" doc:"Runs queued for capacity on nodes."`
	OldestSeconds float64     `json:"oldest_wait_seconds" doc:"How long the first of them has waited; 0 when none waits."`
	// WantedNodes is placement.Demand's Wanted.
	WantedNodes         int `json:"wanted_nodes" doc:"How many nodes the demand needs: typical ones that hold the run workers of all runs that run or wait, no fewer than carry something now; 0 when there is no demand. The servers' own nodes, and what only they can carry, are no part of it."`
	RunsRunning         int `json:"runs_running" doc:"Runs that hold room on nodes."`
	ReservedConnections int `json:"reserved_connections" doc:"Connections that they hold."`
	WaitingConnections  int `json:"waiting_connections" doc:"Connections that the others wait for."`
	// TypicalCapacity is what a node is taken to hold.
	TypicalCapacity int                `json:"typical_node_capacity" doc:"The median capacity of the nodes that take run workers; 0 when there is none, or no limit."`
	Nodes           []NodeReservations `json:"nodes" nullable:"false"`
	Waiting         []WaitingRun       `json:"waiting" nullable:"false" doc:"The runs that wait, the longest first."`
}

// NodeReservations is a node in the ledger.
type NodeReservations struct {
	NodeID        string `json:"node_id" doc:"The own node of a server has the server's name behind an @."`
	AcceptingWork bool   `json:"accepting_work" doc:"It takes run workers from the server that answers."`
	Capacity      int    `json:"capacity" doc:"Most connections of all runs together; 0 is no limit, or a node that this server does not know."`
	Reserved      int    `json:"reserved_connections"`
	Runs          int    `json:"runs"`
}

// WaitingRun is a run that waits.
type WaitingRun struct {
	RunID   string `json:"run_id"`
	RunName string `json:"test_name"`
	By      string `json:"asked_by"`
	engine.Waiting
}

// ScalingNeeds reads the ledger.
func (d *Controller) ScalingNeeds(ctx context.Context) (ScalingNeeds, error) {
	l, err := d.readLedger(ctx)
	if err != nil {
		return ScalingNeeds{}, err
	}
	return computeNeeds(l, placement.WithReservations(d.ledgerNodes(), l.Reserved, ""), time.Now()), nil
}

// isOwnNode reports whether a node is one of a server's own.
func isOwnNode(node string) bool { return strings.HasPrefix(node, protocol.OwnNode+ownNodeSeparator) }

func computeNeeds(l store.Ledger, nodes []engine.NodeCapacity, now time.Time) ScalingNeeds {
	s := ScalingNeeds{At: engine.At(now), QueueDepth: len(l.Queued), Nodes: []NodeReservations{}, Waiting: []WaitingRun{}}
	demand := placement.Demand{}
	rooms := map[string]*NodeReservations{}
	var order []string
	room := func(id string) *NodeReservations {
		if rooms[id] == nil {
			rooms[id] = &NodeReservations{NodeID: id}
			order = append(order, id)
		}
		return rooms[id]
	}
	for _, n := range nodes {
		r := room(n.ID)
		r.AcceptingWork, r.Capacity = true, n.Capacity
		if !isOwnNode(n.ID) {
			demand.Nodes = append(demand.Nodes, n)
		}
	}
	runs := map[string]bool{}
	on := map[[2]string]bool{}
	for _, h := range l.Reserved {
		r := room(h.NodeID)
		r.Reserved += h.Connections
		s.ReservedConnections += h.Connections
		runs[h.RunID] = true
		if key := [2]string{h.NodeID, h.RunID}; !on[key] {
			on[key] = true
			r.Runs++
		}
		if !isOwnNode(h.NodeID) {
			demand.Reserved = append(demand.Reserved, h)
		}
	}
	for i, w := range l.Queued {
		s.WaitingConnections += placement.Total(w.Demands)
		s.Waiting = append(s.Waiting, WaitingRun{RunID: w.RunID, RunName: w.RunName, By: w.By,
			Waiting: *waitingAt(l.Queued, i, nodes)})
		if isOwnNode(w.Pool) {
			continue
		}
		for _, work := range w.Demands {
			demand.Queued = append(demand.Queued, work.Connections)
		}
	}
	if s.QueueDepth > 0 {
		s.OldestSeconds = max(now.Sub(l.Queued[0].Since.Time).Seconds(), 0)
	}
	s.RunsRunning, s.WantedNodes, s.TypicalCapacity = len(runs), demand.NodesNeeded(), demand.TypicalNode()
	for _, id := range order {
		s.Nodes = append(s.Nodes, *rooms[id])
	}
	return s
}
