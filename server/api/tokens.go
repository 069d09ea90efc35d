package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// maxTokens bounds the answer of a list of everybody's tokens.
const maxTokens = 1000

// OwnedToken is a token or a session with its user.
type OwnedToken struct {
	store.Token
	UserName string     `json:"user_name"`
	UserRole store.Role `json:"user_role"`
	// LockedOut tells that nothing is let in by it now.
	LockedOut bool `json:"locked_out" doc:"Whether its user is locked out, so that it is refused."`
}

// OwnedTokens are everybody's, the newest first.
type OwnedTokens struct {
	Tokens []OwnedToken `json:"tokens" nullable:"false"`
	// Total is how many there are.
	Total int `json:"total" doc:"How many there are; tokens has the newest 1 000 of them."`
}

// registerTokenAdmin registers what admins see and end of others' tokens and sessions.
func (h *userHandlers) registerTokenAdmin() {
	a := h.a
	const base = "/api/v1/tokens"
	const only = "Only an admin may: a session, or a token of the scope admin. "
	list := NewOperation(http.MethodGet, base, "list-all-tokens", tagUsers, "List everybody's API tokens, or sessions")
	list.Description = only + "Secrets are nowhere; expired ones are left out."
	Handle(a, list, func(ctx context.Context, in *listInput) (*userBody[OwnedTokens], error) {
		if err := a.Admin(ctx, "see the tokens of others"); err != nil {
			return nil, err
		}
		owned, err := h.listOwnedTokens(ctx, in.Kind)
		if err != nil {
			return nil, err
		}
		return &userBody[OwnedTokens]{OwnedTokens{Tokens: owned[:min(len(owned), maxTokens)], Total: len(owned)}}, nil
	})
	end := NewOperation(
		http.MethodDelete,
		base+"/{id}",
		"end-token",
		tagUsers,
		"Revoke a token, or end a session, of anybody",
		http.StatusNotFound,
	)
	end.Description = only + "It is refused at once on the server that was asked, and within 20 s on the others; " +
		"sockets that it has opened end."
	end.DefaultStatus = http.StatusNoContent
	Handle(a, end, func(ctx context.Context, in *IDInput) (*struct{}, error) {
		if err := a.Admin(ctx, "revoke the tokens of others"); err != nil {
			return nil, err
		}
		owned, err := h.listOwnedTokens(ctx, "")
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(owned, func(t OwnedToken) bool { return t.TokenID == in.ID })
		if i < 0 {
			return nil, httpx.NotFound("token", in.ID)
		}
		t := owned[i]
		if err := a.Auth.Revoke(ctx, t.UserID, t.TokenID); err != nil {
			return nil, missing(err, "token", in.ID)
		}
		detail := t.Name + ", of " + t.UserName
		if t.Kind == auth.KindSession {
			detail = "a session of " + t.UserName
		}
		a.Audit(ctx, "token.delete", t.TokenID, detail)
		return &struct{}{}, nil
	})
}

// listOwnedTokens lists everybody's tokens of a kind, or of both kinds.
func (h *userHandlers) listOwnedTokens(ctx context.Context, kind string) ([]OwnedToken, error) {
	tokens, err := h.a.Store.ListTokens(ctx, "", kind)
	if err != nil {
		return nil, err
	}
	list, err := h.a.Store.ListUsers(ctx)
	if err != nil {
		return nil, err
	}
	users := map[string]store.User{}
	for _, u := range list {
		users[u.UserID] = u
	}
	owned := []OwnedToken{}
	for _, t := range tokens {
		// A link and an invitation are seen by nobody: a new one ends them.
		if u, there := users[t.UserID]; there && (t.Kind == auth.KindAPI || t.Kind == auth.KindSession) {
			owned = append(owned, OwnedToken{Token: t, UserName: u.Name, UserRole: u.Role, LockedOut: !u.DisabledAt.IsZero()})
		}
	}
	return owned, nil
}
