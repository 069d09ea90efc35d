// This part holds the handlers of who may be a node, and of where nodes are dialled.

package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/httpx"
)

const nodeAccessTag = "Nodes"

// NodeAccess decides who is a node, and where nodes are dialled.
type NodeAccess interface {
	Token(
		ctx context.Context,
		by engine.Actor,
		uses int,
		valid time.Duration,
	) (secret string, t store.NodeToken, err error)
	Tokens(ctx context.Context) ([]store.NodeToken, error)
	RevokeToken(ctx context.Context, id string) error
	Revoke(ctx context.Context, nodeID, by string) error
	Add(ctx context.Context, address, by string) (store.NodeAddress, error)
	Remove(ctx context.Context, address string) error
	Catalog(ctx context.Context) ([]store.NodeAddress, error)
}

type nodeTokenInput struct {
	Body struct {
		Uses         int `json:"uses,omitempty" minimum:"1" maximum:"1000" doc:"How many nodes may join with it; 1 without it."`
		ValidSeconds int `json:"valid_seconds,omitempty" minimum:"1" maximum:"2592000" doc:"An hour without it."`
	}
}

// NewNodeToken is a token by which nodes join, with its secret, which is shown this once.
type NewNodeToken struct {
	store.NodeToken
	Secret string `json:"secret"`
}

// NodeTokenList is the tokens by which nodes can join now.
type NodeTokenList struct {
	Tokens []store.NodeToken `json:"tokens" nullable:"false"`
}

type nodeAddressInput struct {
	Body struct {
		Address string `json:"address" minLength:"3" maxLength:"300" doc:"host:port of the node, as servers reach it."`
	}
}

// NodeAddressList is the catalog of nodes.
type NodeAddressList struct {
	Addresses []store.NodeAddress `json:"addresses" nullable:"false"`
}

type addressInput struct {
	Address string `path:"address" maxLength:"400"`
}

type nodeAccessBody[T any] struct{ Body T }

// nodeAccessNothing is the answer without a body (204).
type nodeAccessNothing struct{}

type nodeAccessHandlers struct {
	*API
	gate NodeAccess
}

// RegisterNodeAccess adds the handlers to an API.
func RegisterNodeAccess(a *API, gate NodeAccess) {
	h := nodeAccessHandlers{a, gate}
	const only = "Only an admin may: a session, or a token of the scope admin. "
	token := NewOperation(http.MethodPost, "/api/v1/node-tokens", "create-node-token", nodeAccessTag,
		"Make a token by which a node joins; its secret is shown once")
	token.Description = only + "`loadstone worker --join` takes it. It is kept as a hash."
	token.DefaultStatus = http.StatusCreated
	Handle(a, token, h.createNodeToken)
	tokens := NewOperation(http.MethodGet, "/api/v1/node-tokens", "list-node-tokens", nodeAccessTag,
		"The tokens by which nodes can join now")
	tokens.Description = only + "Those that are over or used up are left out."
	Handle(a, tokens, func(ctx context.Context, _ *struct{}) (*nodeAccessBody[NodeTokenList], error) {
		if err := h.Admin(ctx, "see by which tokens nodes join"); err != nil {
			return nil, err
		}
		all, err := h.gate.Tokens(ctx)
		return &nodeAccessBody[NodeTokenList]{NodeTokenList{Tokens: append([]store.NodeToken{}, all...)}}, err
	})
	end := NewOperation(http.MethodDelete, "/api/v1/node-tokens/{id}", "end-node-token", nodeAccessTag,
		"End a token by which nodes join", http.StatusNotFound)
	end.Description = only + "Nodes that have joined by it stay: those are revoked."
	end.DefaultStatus = http.StatusNoContent
	Handle(a, end, h.endNodeToken)
	revoke := NewOperation(http.MethodPost, "/api/v1/nodes/{id}/revoke", "revoke-node", nodeAccessTag,
		"Revoke the certificates of a node", http.StatusNotFound)
	revoke.Description = only + "Its stream is closed at once here, and within seconds on other servers. With a new " +
		"token it " +
		"can join again."
	revoke.DefaultStatus = http.StatusNoContent
	Handle(a, revoke, h.revokeNode)
	list := NewOperation(
		http.MethodGet,
		"/api/v1/node-addresses",
		"list-node-addresses",
		nodeAccessTag,
		"The catalog of nodes",
	)
	list.Description = "All servers of the control store dial these, beside those of their own flags."
	Handle(a, list, func(ctx context.Context, _ *struct{}) (*nodeAccessBody[NodeAddressList], error) {
		all, err := h.gate.Catalog(ctx)
		if err != nil {
			return nil, err
		}
		return &nodeAccessBody[NodeAddressList]{NodeAddressList{Addresses: append([]store.NodeAddress{}, all...)}}, nil
	})
	add := NewOperation(
		http.MethodPost,
		"/api/v1/node-addresses",
		"add-node-address",
		nodeAccessTag,
		"Add a node to the catalog",
		http.StatusConflict,
	)
	add.Description = only + "All servers dial it within a few seconds."
	add.DefaultStatus = http.StatusCreated
	Handle(a, add, h.addNodeAddress)
	remove := NewOperation(http.MethodDelete, "/api/v1/node-addresses/{address}", "remove-node-address", nodeAccessTag,
		"Take a node out of the catalog", http.StatusNotFound)
	remove.Description = only + "Its stream ends within a few seconds; what it carries stops by itself. " +
		"Drain it first to lose none."
	remove.DefaultStatus = http.StatusNoContent
	Handle(a, remove, h.removeNodeAddress)
}

func (h nodeAccessHandlers) createNodeToken(
	ctx context.Context,
	in *nodeTokenInput,
) (*nodeAccessBody[NewNodeToken], error) {
	if err := h.Admin(ctx, "let nodes join"); err != nil {
		return nil, err
	}
	valid := time.Duration(in.Body.ValidSeconds) * time.Second
	secret, t, err := h.gate.Token(ctx, engine.Actor{ID: h.User(ctx).UserID, Name: h.Caller(ctx)}, in.Body.Uses, valid)
	if err != nil {
		return nil, err
	}
	h.Audit(ctx, "node.token", t.TokenID, "")
	return &nodeAccessBody[NewNodeToken]{NewNodeToken{t, secret}}, nil
}

func (h nodeAccessHandlers) endNodeToken(ctx context.Context, in *IDInput) (*nodeAccessNothing, error) {
	if err := h.Admin(ctx, "end a token"); err != nil {
		return nil, err
	}
	if !WellFormedID(in.ID) {
		return nil, httpx.NotFound("token", in.ID)
	}
	if err := h.gate.RevokeToken(ctx, in.ID); err != nil {
		return nil, err
	}
	h.Audit(ctx, "node.token.end", in.ID, "")
	return &nodeAccessNothing{}, nil
}

func (h nodeAccessHandlers) revokeNode(ctx context.Context, in *IDInput) (*nodeAccessNothing, error) {
	if err := h.Admin(ctx, "revoke a node"); err != nil {
		return nil, err
	}
	if !WellFormedID(in.ID) {
		return nil, httpx.NotFound("node", in.ID)
	}
	if err := h.gate.Revoke(ctx, in.ID, h.Caller(ctx)); err != nil {
		return nil, err
	}
	h.Audit(ctx, "node.revoke", in.ID, "")
	return &nodeAccessNothing{}, nil
}

func (h nodeAccessHandlers) addNodeAddress(
	ctx context.Context,
	in *nodeAddressInput,
) (*nodeAccessBody[store.NodeAddress], error) {
	if err := h.Admin(ctx, "add a node"); err != nil {
		return nil, err
	}
	added, err := h.gate.Add(ctx, in.Body.Address, h.Caller(ctx))
	if err != nil {
		return nil, err
	}
	h.Audit(ctx, "node.add", added.Address, "")
	return &nodeAccessBody[store.NodeAddress]{added}, nil
}

func (h nodeAccessHandlers) removeNodeAddress(ctx context.Context, in *addressInput) (*nodeAccessNothing, error) {
	if err := h.Admin(ctx, "remove a node"); err != nil {
		return nil, err
	}
	address := in.Address
	if text, err := url.PathUnescape(address); err == nil {
		address = text
	}
	if err := h.gate.Remove(ctx, address); err != nil {
		return nil, err
	}
	h.Audit(ctx, "node.address.remove", address, "")
	return &nodeAccessNothing{}, nil
}
