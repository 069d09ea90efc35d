package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/auth"
)

// gatekeeper notes what it is asked.
type gatekeeper struct{ did []string }

func (g *gatekeeper) note(format string, args ...any) {
	g.did = append(g.did, fmt.Sprintf(format, args...))
}

func (g *gatekeeper) Token(_ context.Context, by engine.Actor, uses int, valid time.Duration) (string, store.NodeToken,
	error) {
	g.note("token %d %s", uses, valid)
	return "lsn_secret", store.NodeToken{TokenID: "t", Uses: max(uses, 1), CreatedBy: by.Name}, nil
}

func (g *gatekeeper) Tokens(context.Context) ([]store.NodeToken, error) {
	g.note("tokens")
	return []store.NodeToken{{TokenID: "t", Uses: 3, Used: 1}}, nil
}

func (g *gatekeeper) RevokeToken(_ context.Context, id string) error {
	if id == "none" {
		return &engine.Error{Code: engine.CodeNotFound, Message: "There is no such token.", Cause: store.ErrNotFound}
	}
	g.note("end %s", id)
	return nil
}

func (g *gatekeeper) Revoke(_ context.Context, id, _ string) error {
	if id == "nobody" {
		return &engine.Error{Code: engine.CodeNotFound, Message: "There is no such node.", Cause: store.ErrNotFound}
	}
	g.note("revoke %s", id)
	return nil
}

func (g *gatekeeper) Add(_ context.Context, address, _ string) (store.NodeAddress, error) {
	if address == "wrong" {
		return store.NodeAddress{}, engine.InvalidField("address", "is no address of a node", "write host:port")
	}
	g.note("add %s", address)
	return store.NodeAddress{Address: address}, nil
}

func (g *gatekeeper) Remove(_ context.Context, address string) error {
	g.note("remove %s", address)
	return nil
}

func (g *gatekeeper) Catalog(context.Context) ([]store.NodeAddress, error) { return nil, nil }

// TestOnlyAnAdminLetsNodesJoin: a token of the scope write carries the load of runs, and gives
// nobody the passwords of targets.
func TestOnlyAnAdminLetsNodesJoin(t *testing.T) {
	t.Parallel()
	g := &gatekeeper{}
	b := start(t, func(o *server.Options) { o.NodeAccess = g })
	writer, _ := b.mint(auth.ScopeWrite)
	admin, _ := b.mint(auth.ScopeAdmin)
	requests := []struct {
		method, path string
		body         any
		status       int
	}{
		{"POST", "/api/v1/node-tokens", map[string]any{"uses": 3, "valid_seconds": 60}, 201},
		{"POST", "/api/v1/node-tokens", map[string]any{}, 201},
		{"GET", "/api/v1/node-tokens", nil, 200},
		{"DELETE", "/api/v1/node-tokens/ab12", nil, 204},
		{"POST", "/api/v1/nodes/node-1/revoke", map[string]any{}, 204},
		{"POST", "/api/v1/node-addresses", map[string]any{"address": "host:9090"}, 201},
		{"DELETE", "/api/v1/node-addresses/%5Bfd00::1%5D:9090", nil, 204},
	}
	for _, r := range requests {
		b.do(r.method, r.path, r.body, "Authorization", "Bearer "+writer).problem(t, 403, engine.CodeForbidden)
	}
	if len(g.did) != 0 {
		t.Fatalf("a token of the scope write did %q", g.did)
	}
	for _, r := range requests {
		a := b.do(r.method, r.path, r.body, "Authorization", "Bearer "+admin).want(t, r.status)
		if r.method == "GET" && (!strings.Contains(string(a.body), `"token_id":"t","uses":3,"used":1`) ||
			strings.Contains(string(a.body), "secret")) {
			t.Errorf("%s", a.body)
		}
		if r.method == "POST" && r.path == "/api/v1/node-tokens" &&
			!strings.Contains(string(a.body), `"secret":"lsn_secret"`) {
			t.Errorf("%s", a.body)
		}
	}
	want := "token 3 1m0s, token 0 0s, tokens, end ab12, revoke node-1, add host:9090, remove [fd00::1]:9090"
	if got := strings.Join(g.did, ", "); got != want {
		t.Errorf("%s", got)
	}
	as := []string{"Authorization", "Bearer " + admin}
	b.do("DELETE", "/api/v1/node-tokens/none", nil, as...).problem(t, 404, engine.CodeNotFound)
	b.do("DELETE", "/api/v1/node-tokens/%00", nil, as...).problem(t, 404, engine.CodeNotFound)
	b.do("POST", "/api/v1/nodes/nobody/revoke", map[string]any{}, as...).problem(t, 404, engine.CodeNotFound)
	b.do("POST", "/api/v1/node-addresses", map[string]any{"address": "wrong"}, as...).problem(t, 422, engine.CodeInvalid)
	for _, wrong := range []map[string]any{{"uses": -1}, {"uses": 1001}, {"valid_seconds": 2592001}, {"use": 1}} {
		b.do("POST", "/api/v1/node-tokens", wrong, as...).problem(t, 422, engine.CodeInvalid)
	}
	list := decode[struct{ Addresses []store.NodeAddress }](t, b.do("GET", "/api/v1/node-addresses", nil).want(t, 200))
	if list.Addresses == nil {
		t.Error("an empty catalog is null")
	}
	audit, err := b.store.ListAudit(t.Context(), store.AuditFilter{Limit: 50})
	if err != nil || strings.Contains(fmt.Sprint(audit), "lsn_") || !strings.Contains(fmt.Sprint(audit), "node.revoke") {
		t.Errorf("the audit log: %v, %v", audit, errors.Join(err))
	}
}
