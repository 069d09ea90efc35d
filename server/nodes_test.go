package server_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// machines are nodes as a fleet shows them, which do what they are told.
type machines struct {
	mu  sync.Mutex
	all []nodes.NodeInfo
}

func (m *machines) become(id string, s nodes.NodeState, w nodes.DesiredState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.all {
		if m.all[i].NodeID == id {
			m.all[i].State, m.all[i].DesiredState = s, w
		}
	}
}

func (m *machines) Nodes() []nodes.NodeInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all)
}
func (m *machines) Drain(id string)  { m.become(id, nodes.NodeDraining, nodes.DesiredDrain) }
func (m *machines) Resume(id string) { m.become(id, nodes.NodeActive, nodes.DesiredNone) }
func (m *machines) Remove(id string) { m.become(id, nodes.NodeRemoved, nodes.DesiredRemove) }
func (m *machines) Admit(id string)  { m.become(id, nodes.NodeUnreachable, nodes.DesiredNone) }

// newRoster keeps the machines' history for as long as the test lasts.
func newRoster(t *testing.T, s nodes.Nodes, m *machines) *nodes.Admin {
	r := nodes.NewAdmin(nodes.AdminOptions{Store: s, Server: "s1", Log: zerolog.Nop()})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { r.Run(ctx, m) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return r
}

type nodeList struct {
	Server string
	Nodes  []nodes.NodeInfo
}

type nodeEvents struct {
	Events []nodes.NodeEvent
	Before int64 `json:"next_before"`
}

// TestNodesAreListedDrainedAndRemoved through the API, and what became of them is told.
func TestNodesAreListedDrainedAndRemoved(t *testing.T) {
	t.Parallel()
	rtt := 0.4
	m := &machines{all: []nodes.NodeInfo{{NodeID: "local", Local: true, State: nodes.NodeActive},
		{NodeID: "n-1", Address: "10.0.0.1:9090", State: nodes.NodeActive, Health: engine.HealthHealthy, Capacity: 64,
			Used: 8, RTTMs: &rtt, Workers: []nodes.NodeRunWorker{{RunID: "r", WorkerID: "worker-0", Connections: 8}}}}}
	kept, _ := postgrestest.Open(t)
	r := newRoster(t, kept, m)
	b := start(t, func(o *server.Options) { o.Roster = r })
	list := decode[nodeList](t, b.do("GET", "/api/v1/nodes", nil).want(t, 200))
	if list.Server != "s1" || len(list.Nodes) != 2 || list.Nodes[1].Used != 8 || len(list.Nodes[1].Workers) != 1 {
		t.Errorf("%+v", list)
	}
	for _, c := range []struct {
		verb    string
		state   nodes.NodeState
		desired nodes.DesiredState
	}{
		{"drain", nodes.NodeDraining, nodes.DesiredDrain}, {"drain", nodes.NodeDraining, nodes.DesiredDrain},
		{"resume", nodes.NodeActive, nodes.DesiredNone}, {"remove", nodes.NodeRemoved, nodes.DesiredRemove},
	} {
		n := decode[nodes.NodeInfo](t, b.do("POST", "/api/v1/nodes/n-1/"+c.verb, nil).want(t, 200))
		if n.State != c.state || n.DesiredState != c.desired {
			t.Errorf("%s: %s, %q", c.verb, n.State, n.DesiredState)
		}
	}
	b.do("POST", "/api/v1/nodes/n-1/drain", nil).want(t, 409)
	b.do("POST", "/api/v1/nodes/local/remove", nil).want(t, 409)
	b.do("POST", "/api/v1/nodes/nobody/drain", nil).want(t, 404)
	b.do("GET", "/api/v1/nodes/nobody", nil).want(t, 404)
	if n := decode[nodes.NodeInfo](t, b.do("GET", "/api/v1/nodes/n-1", nil).want(t, 200)); n.Address != "10.0.0.1:9090" {
		t.Errorf("%+v", n)
	}
	var events nodeEvents
	for range 100 {
		if events = decode[nodeEvents](t, b.do("GET", "/api/v1/node-events?limit=2", nil).want(t, 200)); events.Before != 0 {
			break
		}
		time.Sleep(20 * time.Millisecond) // they are written in the background
	}
	if len(events.Events) != 2 || events.Events[0].NodeID != "n-1" || events.Events[0].By != "admin" ||
		events.Before != events.Events[1].Seq {
		t.Errorf("%+v", events)
	}
}

// TestOnlyAnAdminDrainsNodes: reading is for everybody who may read.
func TestOnlyAnAdminDrainsNodes(t *testing.T) {
	t.Parallel()
	kept, _ := postgrestest.Open(t)
	r := newRoster(t, kept, &machines{all: []nodes.NodeInfo{{NodeID: "n-1", State: nodes.NodeActive}}})
	b := start(t, func(o *server.Options) { o.Roster = r })
	for scope, codes := range map[string][2]int{"read": {200, 403}, "write": {200, 403}, "admin": {200, 200}} {
		token, _ := b.mint(scope)
		b.do("GET", "/api/v1/nodes", nil, "Authorization", "Bearer "+token).want(t, codes[0])
		for _, verb := range []string{"drain", "resume", "remove"} {
			b.do("POST", "/api/v1/nodes/n-1/"+verb, nil, "Authorization", "Bearer "+token).want(t, codes[1])
		}
	}
}
