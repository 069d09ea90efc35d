package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/query"
	"github.com/loadstone-db/loadstone/engine/refresh"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/tables"
)

// noTables answers queries with themselves, and does what it is asked.
type noTables struct{ tables.Tables }

func (noTables) Query(_ context.Context, sql string, rows int) (query.Answer, error) {
	return query.Answer{Columns: []query.Column{{Name: sql, Type: "int4"}}, Rows: [][]any{{rows}}}, nil
}

func (noTables) Do(_ context.Context, name, verb string) (refresh.Table, error) {
	return refresh.Table{Name: name, Error: verb, Sources: []string{}}, nil
}

func (noTables) Create(_ context.Context, t refresh.Table) (refresh.Table, error) {
	t.Sources = []string{}
	return t, nil
}

func (noTables) Drop(context.Context, string) error { return nil }

func (noTables) AddReader(_ context.Context, name string) (string, error) {
	return "dsn of " + name, nil
}

func (noTables) RemoveReader(context.Context, string) error { return nil }

// TestWhoMayDoWhatWithTables: a token that only reads may query, and changes nothing; logins are made by admins.
func TestWhoMayDoWhatWithTables(t *testing.T) {
	b := start(t, func(o *server.Options) { o.Tables = noTables{} })
	tokens := map[string]string{}
	for _, scope := range []string{auth.ScopeRead, auth.ScopeWrite, auth.ScopeAdmin} {
		tokens[scope], _ = b.mint(scope)
	}
	for _, c := range []struct {
		method, path       string
		body               any
		read, write, admin int
		says               string
	}{
		{"POST", "/api/query", map[string]any{"sql": "SELECT 1", "max_rows": 7}, 200, 200, 200, `"rows":[[7]]`},
		{"POST", "/api/query", map[string]any{"sql": ""}, 422, 422, 422, ""},
		{"POST", "/api/v1/tables/daily/suspend", map[string]any{}, 403, 200, 200, `"error":"suspend"`},
		{"POST", "/api/v1/tables/daily/refresh", map[string]any{}, 403, 200, 200, `"error":"refresh"`},
		{"POST", "/api/v1/query-users", map[string]any{"name": "grafana"}, 403, 403, 200, "dsn of grafana"},
		{"POST", "/api/v1/query-users", map[string]any{"name": "x; DROP"}, 403, 422, 422, ""},
		{"POST", "/api/v1/tables", map[string]any{"name": "mine", "definition": "SELECT 1"}, 403, 201, 201, ""},
		{"DELETE", "/api/v1/tables/mine", nil, 403, 204, 204, ""},
		{"DELETE", "/api/v1/query-users/grafana", nil, 403, 403, 204, ""},
	} {
		for scope, want := range map[string]int{auth.ScopeRead: c.read, auth.ScopeWrite: c.write, auth.ScopeAdmin: c.admin} {
			got := b.do(c.method, c.path, c.body, "Authorization", "Bearer "+tokens[scope])
			if got.StatusCode != want || want == 200 && !strings.Contains(string(got.body), c.says) {
				t.Errorf("%s %s with %s: %d %s, want %d", c.method, c.path, scope, got.StatusCode, got.body, want)
			}
		}
	}
}
