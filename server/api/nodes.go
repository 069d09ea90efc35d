package api

import (
	"context"
	"net/http"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// Nodes is the roster as the API needs it.
type Nodes interface {
	Server() string
	Nodes() []nodes.NodeInfo
	Node(id string) (nodes.NodeInfo, error)
	Events(ctx context.Context, f nodes.NodeEventFilter) ([]nodes.NodeEvent, error)
	SetDesiredState(ctx context.Context, id string, desired nodes.DesiredState, by string) (nodes.NodeInfo, error)
}

// NodeList is every node that the server knows.
type NodeList struct {
	Server string           `json:"server" doc:"The server that answers: several may share the nodes, each over its own streams."`
	At     engine.Time      `json:"at"`
	Nodes  []nodes.NodeInfo `json:"nodes" nullable:"false"`
}

// NodeEventList is one page of the nodes' history, newest first.
type NodeEventList struct {
	Events []nodes.NodeEvent `json:"events" nullable:"false"`
	// Before asks for the page after this one.
	Before int64 `json:"next_before,omitempty" doc:"Ask with before= this for older ones; absent on the last page."`
}

type nodeInput struct {
	ID string `path:"id" maxLength:"160"`
}

type nodeEventsInput struct {
	NodeID string `query:"node_id" maxLength:"160" doc:"Of this node only."`
	Before int64  `query:"before" minimum:"0" doc:"Older than this number."`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100"`
}

func (a *API) registerNodes() {
	if a.Nodes == nil {
		return
	}
	const base = "/api/v1/nodes"
	list := op(http.MethodGet, base, "list-nodes", tagNodes, "List the nodes")
	list.Description = "Those that this server dials, its own among them, and those that an operator has removed."
	handle(a, list, func(context.Context, *struct{}) (*body[NodeList], error) {
		return &body[NodeList]{NodeList{Server: a.Nodes.Server(), At: engine.At(time.Now()),
				Nodes: orEmpty(a.Nodes.Nodes())}},
			nil
	})
	handle(a, op(http.MethodGet, base+"/{id}", "get-node", tagNodes, "Read a node", http.StatusNotFound),
		func(_ context.Context, in *nodeInput) (*body[nodes.NodeInfo], error) {
			if !wellFormedID(in.ID) {
				return nil, httpx.NotFound("node", in.ID)
			}
			n, err := a.Nodes.Node(in.ID)
			return &body[nodes.NodeInfo]{n}, err
		})
	for _, act := range []struct {
		verb, what, doc string
		desired         nodes.DesiredState
	}{
		{"drain", "Drain a node", "It ends what it has and takes nothing new, also after it or the server has restarted, " +
			"until it is resumed.", nodes.DesiredDrain},
		{"resume", "Let a node take work again", "Takes back that it was drained or removed.", nodes.DesiredNone},
		{"remove", "Remove a node", "It is not let in any more, and its run workers count as lost when they must have " +
			"stopped by themselves. Drain it first to lose none.", nodes.DesiredRemove},
	} {
		o := op(http.MethodPost, base+"/{id}/"+act.verb, act.verb+"-node", tagNodes, act.what, http.StatusNotFound,
			http.StatusConflict)
		o.Description = "Only an admin may: a session, or a token of the scope admin. " + act.doc
		handle(a, o, func(ctx context.Context, in *nodeInput) (*body[nodes.NodeInfo], error) {
			return a.setNodeState(ctx, in.ID, act.verb, act.desired)
		})
	}
	events := op(http.MethodGet, "/api/v1/node-events", "list-node-events", tagNodes,
		"What became of the nodes, newest first")
	events.Description = "Kept in the control store: all servers answer the same. The newest 10 000 are kept."
	handle(a, events, func(ctx context.Context, in *nodeEventsInput) (*body[NodeEventList], error) {
		if in.NodeID != "" && !wellFormedID(in.NodeID) {
			return &body[NodeEventList]{NodeEventList{Events: []nodes.NodeEvent{}}}, nil
		}
		list, err := a.Nodes.Events(ctx, nodes.NodeEventFilter{NodeID: in.NodeID, Before: in.Before, Limit: in.Limit})
		if err != nil {
			return nil, err
		}
		page := NodeEventList{Events: orEmpty(list)}
		if len(list) == in.Limit {
			page.Before = list[len(list)-1].Seq
		}
		return &body[NodeEventList]{page}, nil
	})
}

func (a *API) setNodeState(
	ctx context.Context,
	id, verb string,
	desired nodes.DesiredState,
) (*body[nodes.NodeInfo], error) {
	if err := a.admin(ctx, verb+" a node"); err != nil {
		return nil, err
	}
	if !wellFormedID(id) {
		return nil, httpx.NotFound("node", id)
	}
	user := a.identity(ctx).User
	n, err := a.Nodes.SetDesiredState(ctx, id, desired, user.Name)
	if err != nil {
		return nil, err
	}
	a.audit.Record(ctx, user.UserID, "node."+verb, id, n.Address)
	return &body[nodes.NodeInfo]{n}, nil
}
