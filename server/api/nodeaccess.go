package api

import (
	"context"
	"net/http"
	"time"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/problem"
)

// NodeAccess decides who is a node, and where nodes are dialled.
type NodeAccess interface {
	Token(ctx context.Context, by string, uses int, valid time.Duration) (secret string, t store.NodeToken, err error)
	Tokens(ctx context.Context) ([]store.NodeToken, error)
	EndToken(ctx context.Context, id string) error
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

func (a *API) registerNodeAccess() {
	if a.NodeAccess == nil {
		return
	}
	const only = "Only an admin may: a session, or a token of the scope admin. "
	token := op(http.MethodPost, "/api/v1/node-tokens", "create-node-token", tagNodes,
		"Make a token by which a node joins; its secret is shown once")
	token.Description = only + "`loadstone worker --join` takes it. It is kept as a hash."
	token.DefaultStatus = http.StatusCreated
	handle(a, token, a.createNodeToken)
	tokens := op(http.MethodGet, "/api/v1/node-tokens", "list-node-tokens", tagNodes,
		"The tokens by which nodes can join now")
	tokens.Description = only + "Those that are over or used up are left out."
	handle(a, tokens, func(ctx context.Context, _ *struct{}) (*body[NodeTokenList], error) {
		if err := a.admin(ctx, "see by which tokens nodes join"); err != nil {
			return nil, err
		}
		all, err := a.NodeAccess.Tokens(ctx)
		return &body[NodeTokenList]{NodeTokenList{Tokens: orEmpty(all)}}, err
	})
	end := op(http.MethodDelete, "/api/v1/node-tokens/{id}", "end-node-token", tagNodes,
		"End a token by which nodes join", http.StatusNotFound)
	end.Description = only + "Nodes that have joined by it stay: those are revoked."
	end.DefaultStatus = http.StatusNoContent
	handle(a, end, a.endNodeToken)
	revoke := op(http.MethodPost, "/api/v1/nodes/{id}/revoke", "revoke-node", tagNodes,
		"Revoke the certificates of a node", http.StatusNotFound)
	revoke.Description = only + "Its stream is closed at once here, and within seconds on other servers. With a new " +
		"token it " +
		"can join again."
	revoke.DefaultStatus = http.StatusNoContent
	handle(a, revoke, a.revokeNode)
	list := op(http.MethodGet, "/api/v1/node-addresses", "list-node-addresses", tagNodes, "The catalog of nodes")
	list.Description = "All servers of the control store dial these, beside those of their own flags."
	handle(a, list, func(ctx context.Context, _ *struct{}) (*body[NodeAddressList], error) {
		all, err := a.NodeAccess.Catalog(ctx)
		if err != nil {
			return nil, err
		}
		return &body[NodeAddressList]{NodeAddressList{Addresses: orEmpty(all)}}, nil
	})
	add := op(http.MethodPost, "/api/v1/node-addresses", "add-node-address", tagNodes, "Add a node to the catalog",
		http.StatusConflict)
	add.Description = only + "All servers dial it within a few seconds."
	add.DefaultStatus = http.StatusCreated
	handle(a, add, a.addNodeAddress)
	remove := op(http.MethodDelete, "/api/v1/node-addresses/{address}", "remove-node-address", tagNodes,
		"Take a node out of the catalog", http.StatusNotFound)
	remove.Description = only + "Its stream ends within a few seconds; what it carries stops by itself. " +
		"Drain it first to lose none."
	remove.DefaultStatus = http.StatusNoContent
	handle(a, remove, a.removeNodeAddress)
}

func (a *API) createNodeToken(ctx context.Context, in *nodeTokenInput) (*body[NewNodeToken], error) {
	if err := a.admin(ctx, "let nodes join"); err != nil {
		return nil, err
	}
	user := a.identity(ctx).User
	valid := time.Duration(in.Body.ValidSeconds) * time.Second
	secret, t, err := a.NodeAccess.Token(ctx, user.Name, in.Body.Uses, valid)
	if err != nil {
		return nil, err
	}
	a.trail.Note(ctx, user.UserID, "node.token", t.TokenID, "")
	return &body[NewNodeToken]{NewNodeToken{t, secret}}, nil
}

func (a *API) endNodeToken(ctx context.Context, in *IDInput) (*nothing, error) {
	if err := a.admin(ctx, "end a token"); err != nil {
		return nil, err
	}
	if !wellFormedID(in.ID) {
		return nil, problem.NotFound("token", in.ID)
	}
	if err := a.NodeAccess.EndToken(ctx, in.ID); err != nil {
		return nil, err
	}
	a.trail.Note(ctx, a.identity(ctx).User.UserID, "node.token.end", in.ID, "")
	return &nothing{}, nil
}

func (a *API) revokeNode(ctx context.Context, in *IDInput) (*nothing, error) {
	if err := a.admin(ctx, "revoke a node"); err != nil {
		return nil, err
	}
	if !wellFormedID(in.ID) {
		return nil, problem.NotFound("node", in.ID)
	}
	user := a.identity(ctx).User
	if err := a.NodeAccess.Revoke(ctx, in.ID, user.Name); err != nil {
		return nil, err
	}
	a.trail.Note(ctx, user.UserID, "node.revoke", in.ID, "")
	return &nothing{}, nil
}

func (a *API) addNodeAddress(ctx context.Context, in *nodeAddressInput) (*body[store.NodeAddress], error) {
	if err := a.admin(ctx, "add a node"); err != nil {
		return nil, err
	}
	user := a.identity(ctx).User
	added, err := a.NodeAccess.Add(ctx, in.Body.Address, user.Name)
	if err != nil {
		return nil, err
	}
	a.trail.Note(ctx, user.UserID, "node.add", added.Address, "")
	return &body[store.NodeAddress]{added}, nil
}

func (a *API) removeNodeAddress(ctx context.Context, in *addressInput) (*nothing, error) {
	if err := a.admin(ctx, "remove a node"); err != nil {
		return nil, err
	}
	address := unescaped(in.Address)
	if err := a.NodeAccess.Remove(ctx, address); err != nil {
		return nil, err
	}
	a.trail.Note(ctx, a.identity(ctx).User.UserID, "node.address.remove", address, "")
	return &nothing{}, nil
}
