package server_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/oidc"
	"github.com/loadstone-db/loadstone/server/promapi"
)

// For whom a route is.
const (
	forAll     = "everybody, without signing in"
	forMetrics = "signed-in users, any scope"
	forReaders = "signed-in users"
	forSelf    = "the user themselves, by a session"
	forGrants  = "the user themselves, by a session or the scope admin"
	forKeeping = "the user themselves, by a session, or as operator by the scope write"
	forRunning = "operators, scope run"
	forWriting = "operators, scope write"
	forSharing = "operators, by a session or the scope admin"
	forAdmins  = "admins, scope admin"
)

// permitted says for whom each route is; what is read, and HEAD, is for who is signed in unless it stands here. A
// route that changes something and does not stand here fails the test: somebody has to say whom it is for.
func permitted() map[string]string {
	table := map[string]string{}
	for who, routes := range map[string]string{
		forAll: `GET /healthz, GET /readyz, GET /shared/:id, GET /api/auth/ways, GET /api/auth/oidc/start,
			GET /api/auth/oidc/callback, POST /api/auth/signin`,
		forMetrics: "GET /metrics",
		forReaders: `POST /api/query, POST /api/query/export, POST /api/query/cancel, POST /api/templates/validate`,
		forSelf: `PUT /api/auth/password, POST /api/auth/totp, POST /api/auth/totp/confirm,
			POST /api/auth/totp/disable`,
		forGrants:  "POST /api/auth/tokens, DELETE /api/auth/tokens/:id",
		forKeeping: `POST /api/v1/run-views, PUT /api/v1/run-views/:id, DELETE /api/v1/run-views/:id`,
		forRunning: `POST /api/preflight, POST /api/runs, POST /api/runs/:id/start, POST /api/runs/:id/stop,
			POST /api/tests, POST /api/tests/:id/start, POST /api/tests/:id/stop, POST /api/tests/from-template/:id,
			POST /api/matrices, POST /api/matrices/:id/start, POST /api/matrices/:id/stop,
			POST /api/runs/:id/enrichment/retry, POST /api/runs/:id/enrichment/stop, PUT /api/runs/:id/note,
			PUT /api/runs/:id/tags, POST /api/v1/runs/:id/marks, PUT /api/v1/runs/:id/marks/:mark,
			DELETE /api/v1/runs/:id/marks/:mark, PUT /api/v1/runs/:id/load`,
		forWriting: `POST /api/stop-all, DELETE /api/runs/:id, DELETE /api/tests/:id, DELETE /api/matrices/:id,
			POST /api/connections, PUT /api/connections/:id, DELETE /api/connections/:id, POST /api/connections/:id/test,
			POST /api/connections/test, POST /api/templates, PUT /api/templates/:id, DELETE /api/templates/:id,
			PUT /api/templates/:id/baseline, DELETE /api/templates/:id/baseline, POST /api/plugins,
			POST /api/v1/runs/:id/binds, POST /api/statements/catalog, POST /api/statements/samples, POST /api/statements/try,
			POST /api/v1/schedules, PUT /api/v1/schedules/:id, DELETE /api/v1/schedules/:id,
			PUT /api/v1/queries/:name, DELETE /api/v1/queries/:name, POST /api/v1/streams/statements,
			POST /api/v1/table-preview, POST /api/v1/tables, PUT /api/v1/tables/:name, DELETE /api/v1/tables/:name,
			PUT /api/v1/run-views/:id/shared, DELETE /api/v1/shares/:id, POST /api/v1/tables/:name/refresh, POST /api/v1/tables/:name/resume, POST /api/v1/tables/:name/suspend`,
		// To show a run to strangers is for no token but that of an admin's scope, and for every operator.
		forSharing: "POST /api/runs/:id/shares",
		forAdmins: `GET /api/users, POST /api/users, PATCH /api/users/:id, DELETE /api/users/:id,
			POST /api/users/:id/invitation, DELETE /api/users/:id/totp, GET /api/v1/tokens, DELETE /api/v1/tokens/:id,
			POST /api/auth/signin-links, GET /api/audit, GET /api/audit/export, GET /api/audit/retention,
			PUT /api/audit/retention, GET /api/v1/notifications, PUT /api/v1/notifications,
			POST /api/v1/notifications/:id/test, GET /api/v1/retention, PUT /api/v1/retention, PUT /api/v1/prices,
			POST /api/v1/retention/preview, POST /api/plugins/:name/enable, POST /api/plugins/:name/disable,
			DELETE /api/plugins/:name, POST /api/v1/nodes/:id/drain, POST /api/v1/nodes/:id/resume,
			POST /api/v1/nodes/:id/remove, GET /api/v1/query-users, POST /api/v1/query-users,
			DELETE /api/v1/query-users/:name,
			GET /api/v1/node-tokens, POST /api/v1/node-tokens, DELETE /api/v1/node-tokens/:id,
			POST /api/v1/nodes/:id/revoke, POST /api/v1/node-addresses, DELETE /api/v1/node-addresses/:address`,
	} {
		for route := range strings.SplitSeq(routes, ",") {
			table[strings.TrimSpace(route)] = who
		}
	}
	return table
}

// caller is somebody with a way in.
type caller struct {
	name   string
	role   store.Role // "" for a stranger
	scope  string     // of an API token; "" is a session
	header []string
}

// mayRole tells whether a caller's role and scope are enough for a route.
func (c caller) mayRole(need string) bool {
	session, admin, operator := c.scope == "", c.scope == auth.ScopeAdmin, c.role != store.RoleViewer
	wide := session || admin || c.scope == auth.ScopeWrite
	switch {
	case need == forAll:
		return true
	case c.role == "":
		return false
	case need == forMetrics:
		return true
	case c.scope == auth.ScopeMetrics:
		return false
	}
	switch need {
	case forReaders:
		return true
	case forSelf:
		return session
	case forGrants:
		return session || admin
	case forKeeping:
		return session || operator && wide
	case forRunning:
		return operator && (wide || c.scope == auth.ScopeRun)
	case forWriting:
		return operator && wide
	case forSharing:
		return operator && (session || admin)
	case forAdmins:
		return c.role == store.RoleAdmin && (session || admin)
	}
	return false
}

// mayOwn tells whether a caller may do with ada's thing, which bob may use, what a route does with it.
func (c caller) mayOwn(need string) bool {
	who, _, _ := strings.Cut(c.name, " ")
	return need == "" || need == reads || who == "root" || who == "ada" || who == "bob" && need == uses
}

// callers are those of the table.
func (o owned) callers() []caller {
	o.t.Helper()
	all := []caller{{name: "a stranger", header: []string{"Authorization", ""}}}
	token := func(who, scope string) caller {
		made := decode[map[string]any](o.t, o.as(who, "POST", "/api/auth/tokens",
			map[string]any{"name": scope, "scope": scope}).want(o.t, http.StatusCreated))
		return caller{name: who + " by a token " + scope, role: o.people[who].Role, scope: scope,
			header: []string{"Authorization", "Bearer " + made["secret"].(string)}}
	}
	for _, who := range []string{"root", "ada", "bob", "eve", "vic"} {
		all = append(all, caller{name: who, role: o.people[who].Role, header: o.sessions[who]})
		for _, scope := range []string{auth.ScopeRead, auth.ScopeMetrics, auth.ScopeRun, auth.ScopeWrite, auth.ScopeAdmin} {
			if who == "root" || who == "ada" || who == "vic" && (scope == auth.ScopeRead || scope == auth.ScopeMetrics) ||
				who == "eve" && scope == auth.ScopeRun {
				all = append(all, token(who, scope))
			}
		}
	}
	revoked := token("root", auth.ScopeWrite)
	o.do("GET", "/api/auth/me", nil, revoked.header...).want(o.t, http.StatusOK) // it is remembered
	for _, t := range decode[struct{ Tokens []store.Token }](o.t,
		o.as("root", "GET", "/api/auth/tokens", nil).want(o.t, http.StatusOK)).Tokens[:1] {
		o.do("DELETE", "/api/v1/tokens/"+t.TokenID, nil).want(o.t, http.StatusNoContent)
	}
	revoked.name, revoked.role = "a revoked token", ""
	return append(all, revoked)
}

// bodies are those without which a request is refused for another reason than who makes it.
func bodies(route string) any {
	keep := map[string]any{"on": false, "keep_runs_days": 0, "keep_executions_days": 0, "executions_budget_gb": 0,
		"keep_tags": []string{}}
	switch route {
	case "PUT /api/v1/notifications":
		return map[string]any{"version": 0, "hooks": []string{}}
	case "PUT /api/v1/prices":
		return map[string]any{"version": 0, "text": ""}
	case "PUT /api/v1/retention":
		keep["version"] = 0
		return keep
	case "POST /api/v1/retention/preview":
		return keep
	case "POST /api/users":
		return map[string]any{"name": "mallory", "role": store.RoleAdmin}
	case "PUT /api/audit/retention":
		return map[string]any{"keep_days": 60}
	case "POST /api/v1/node-addresses":
		return map[string]any{"address": "host:9090"}
	case "POST /api/v1/query-users":
		return map[string]any{"name": "reader"}
	case "POST /api/runs/:id/shares":
		return map[string]any{"expires_in_days": 7}
	case "PUT /api/auth/password":
		return map[string]any{"new_password": "short"}
	case "POST /api/auth/totp":
		return map[string]any{"password": "x"}
	case "POST /api/auth/totp/confirm":
		return map[string]any{"code": "1"}
	case "POST /api/auth/totp/disable":
		return map[string]any{"code": "1", "password": "x"}
	case "POST /api/auth/tokens":
		return map[string]any{"name": "x", "scope": auth.ScopeRead}
	}
	method, _, _ := strings.Cut(route, " ")
	if method == http.MethodGet || method == http.MethodHead {
		return nil
	}
	return "{}"
}

// noTelemetry knows no query and no series.
type noTelemetry struct{ promapi.Telemetry }

func (noTelemetry) Series(context.Context, [][]*labels.Matcher, time.Time, time.Time, int) ([]labels.Labels, error) {
	return nil, nil
}

func (noTelemetry) Parser() parser.Parser { return parser.NewParser(parser.Options{}) }

func (noTelemetry) Instant(context.Context, string, time.Time) (*promql.Query, error) {
	return nil, errors.New("no query")
}

func (noTelemetry) Range(context.Context, string, time.Time, time.Time, time.Duration) (*promql.Query, error) {
	return nil, errors.New("no query")
}

// TestWhoMayWhat goes through every route that is registered, as every caller, and holds the answer against the table:
// role, scope of the token, and whose the thing is. The table is what docs/reference/permissions.md shows.
func TestWhoMayWhat(t *testing.T) {
	t.Parallel()
	o := ownBy(t, func(opts *server.Options) {
		opts.Tables, opts.NodeAccess, opts.Scaling = noTables{}, &gatekeeper{}, demand{}
		opts.OIDC = &oidc.Options{Issuer: "http://127.0.0.1:1"}
		opts.Telemetry = noTelemetry{}
	})
	callers, table, things := o.callers(), permitted(), judged()
	n, made, rows, seen := 0, 0, [][3]string{}, map[string]bool{}
	for _, r := range o.srv.Routes() {
		route := r.Method + " " + r.Path
		get := strings.Replace(route, "HEAD ", "GET ", 1)
		safe := get != route || r.Method == http.MethodGet
		promql := strings.HasPrefix(r.Path, "/prometheus/")
		need := cmp.Or(table[get], map[bool]string{true: forMetrics}[promql], map[bool]string{true: forReaders}[safe])
		switch {
		case r.Path == "/api/auth/signout":
			continue // it would end the session
		case need == "":
			t.Errorf("%s: whom is it for? say so in permitted()", route)
			continue
		}
		own := things[route]
		if r.Method != http.MethodHead {
			rows = append(rows, [3]string{route, need, own})
		}
		if about(r.Path) && !safe && own == "" {
			t.Errorf("%s: what does it need of the thing? say so in judged()", route)
		}
		for _, c := range callers {
			n++
			// Who has no right to the route is refused before anybody asks whose the thing is.
			var got answer
			if may := c.mayRole(need); own != "" && may {
				made++
				got = o.askAs(c.header, route, made)
			} else {
				path := strings.NewReplacer(":id", "x", ":name", "x", ":mark", "x", ":address", "x").Replace(r.Path)
				got = o.do(r.Method, path, bodies(route), c.header...)
			}
			want := 0
			switch {
			case need == forAll:
			case c.role == "":
				want = http.StatusUnauthorized
			case !c.mayRole(need) || !c.mayOwn(own):
				want = http.StatusForbidden
			}
			refused := got.StatusCode == http.StatusUnauthorized && need != forAll ||
				got.StatusCode == http.StatusForbidden
			if refused != (want != 0) || want != 0 && got.StatusCode != want {
				t.Errorf("%s (%s; %s) as %s: %d %s; want refusal %d", route, need, own, c.name, got.StatusCode, got.body, want)
			}
		}
		seen[route] = true
	}
	for route := range table {
		if !seen[route] {
			t.Errorf("%s of permitted() is not there any more", route)
		}
	}
	for route := range things {
		if !seen[route] {
			t.Errorf("%s of judged() is not there any more", route)
		}
	}
	if n < 3000 || made < 250 {
		t.Errorf("%d requests were made, %d of them about a thing of ada's", n, made)
	}
	writeTable(t, rows)
}

// writeTable holds docs/reference/permissions.md against the table.
func writeTable(t *testing.T, rows [][3]string) {
	t.Helper()
	const path = "../docs/reference/permissions.md"
	for i := range rows {
		if rows[i][2] == reads {
			rows[i][2] = ""
		}
	}
	slices.SortFunc(rows, func(a, b [3]string) int {
		am, ap, _ := strings.Cut(a[0], " ")
		bm, bp, _ := strings.Cut(b[0], " ")
		return cmp.Or(cmp.Compare(a[1], b[1]), cmp.Compare(a[2], b[2]), cmp.Compare(ap, bp), cmp.Compare(am, bm))
	})
	var want bytes.Buffer
	want.WriteString(`# Permissions

Made by the test that asks every route as every role, by a session and by a token of each scope, about its own things and
others' (` + "`make api`" + `). Under *use* a caller who is no admin must be the owner or a named user of the thing, under
*change* the owner. [Roles and scopes](../operate/users.md#roles-and-scopes) says what the words mean. Every GET route that is
not listed is for all signed-in users.
`)
	need, own, open := "", "", false
	end := func() {
		if open {
			want.WriteString("```\n")
		}
		open = false
	}
	for _, r := range rows {
		if r[1] == forReaders && r[2] == "" && strings.HasPrefix(r[0], "GET ") {
			continue
		}
		if r[1] != need {
			end()
			need, own = r[1], ""
			fmt.Fprintf(&want, "\n## %s%s\n", strings.ToUpper(need[:1]), need[1:])
		}
		if r[2] != own {
			end()
			own = r[2]
			fmt.Fprintf(&want, "\n*%s*:\n", own)
		}
		if !open {
			want.WriteString("\n```text\n")
			open = true
		}
		want.WriteString(r[0] + "\n")
	}
	end()
	if *updateDocument {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(have, want.Bytes()) {
		t.Errorf("%s is not what the routes are: run make api (%v)", path, err)
	}
}
