package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/server/auth"
)

// noTables answers queries with themselves, and does what it is asked.
type noTables struct{ api.Tables }

func (noTables) Query(_ context.Context, sql string, rows int) (query.Answer, error) {
	return query.Answer{Columns: []query.Column{{Name: sql, Type: "int4"}}, Rows: [][]any{{rows}}}, nil
}

func (noTables) Cancel(_ context.Context, caller, id string) error {
	if id != "on-another-server" {
		return fmt.Errorf("cancelling %s of %s: %w", id, caller, store.ErrNotFound)
	}
	return nil
}

func (noTables) Do(_ context.Context, name, verb string, _ store.User) (refresh.Table, error) {
	return refresh.Table{Name: name, Error: verb, Sources: []string{}}, nil
}

func (noTables) Create(_ context.Context, t refresh.Table) (refresh.Table, error) {
	t.Sources = []string{}
	return t, nil
}

func (noTables) Update(_ context.Context, t refresh.Table) (refresh.Table, error) {
	if t.Version != 7 {
		return t, store.ConcurrentEditError("table", t.Name, "bob", engine.At(time.Unix(0, 0)), 7)
	}
	t.Sources = []string{}
	return t, nil
}

func (noTables) Preview(_ context.Context, t refresh.Table) (query.Preview, error) {
	return query.Preview{Plan: t.Definition, Answer: query.Answer{Rows: [][]any{{1}}}}, nil
}

func (noTables) RunExport(_ context.Context, run string) (query.RunExport, error) {
	return query.RunExport{Record: &query.RunRecord{Parts: 2, Problems: []string{"a part of " + run + " is damaged"}}}, nil
}

func (noTables) Catalog(context.Context) ([]query.Relation, error) { return nil, nil }

func (noTables) State(context.Context) (refresh.State, error) {
	name := `nä me "x"%2F`
	of := func(name string) refresh.Task { return refresh.Task{Table: name} }
	return refresh.State{Tables: []refresh.Table{{Name: name, Sources: []string{"runs"}},
		{Name: "runs", Sources: []string{}},
		{Name: "top", Sources: []string{name}}}, Claims: []refresh.Claim{{Task: of("runs")}, {Task: of(name), Epoch: 4}},
		Workers: []refresh.Worker{{Name: "w", Role: refresh.Node, Kinds: []refresh.Kind{refresh.SQL}, Slots: 2}}}, nil
}

func (noTables) Load(context.Context) (refresh.Load, error) {
	return refresh.Load{Due: 7, OldestSeconds: 8, OverdueSeconds: 10, P95Seconds: 9, Failed: 3,
		IngestLagSeconds: 11}, nil
}

func (noTables) History(_ context.Context, name string, limit int) ([]refresh.Record, error) {
	return []refresh.Record{{Worker: fmt.Sprint(name, " of ", limit)}}, nil
}

func (noTables) SaveQuery(_ context.Context, q query.SavedQuery) (query.SavedQuery, error) {
	if strings.ContainsAny(q.Name, "%") {
		return q, errors.New("the name is not decoded")
	}
	return q, nil
}

func (noTables) DeleteSavedQuery(context.Context, string) error { return nil }

func (noTables) Recheck(context.Context, func(context.Context) (func(refresh.Table) string, error)) error {
	return nil
}

func (noTables) Drop(context.Context, string) error { return nil }

func (noTables) AddReader(_ context.Context, name string, renew bool, _ store.User) (string, error) {
	if name == "taken" && !renew {
		return "", &engine.Error{Code: engine.CodeConflict, Message: "There is a login."}
	}
	return "dsn of " + name, nil
}

func (noTables) RemoveReader(context.Context, string) error { return nil }

func (noTables) Readers(context.Context) ([]query.Login, error) {
	return []query.Login{{Name: "grafana", OwnerID: "gone", Suspended: true}}, nil
}

func (noTables) RecheckReaders(context.Context, func(context.Context) (func(string) string, error)) error {
	return nil
}

// revokedTables are one, suspended since its owner was locked out.
type revokedTables struct{ noTables }

func (revokedTables) State(context.Context) (refresh.State, error) {
	return refresh.State{Tables: []refresh.Table{{Name: "adas", Sources: []string{}, Status: refresh.Suspended,
		OwnerID: "the-id-of-ada", Owner: "ada", Suspended: "ada, whose table it is, is locked out"}}}, nil
}

// TestViewersAreNotToldOfOwners: why a table is suspended says what has become of a user, which operators are told.
func TestViewersAreNotToldOfOwners(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) { o.Tables = revokedTables{} })
	_, operator := b.join("ola", store.RoleOperator)
	_, viewer := b.join("vic", store.RoleViewer)
	for _, path := range []string{"/api/v1/tables", "/api/v1/tables/adas"} {
		told := string(b.do("GET", path, nil, operator...).body)
		if !strings.Contains(told, "the-id-of-ada") || !strings.Contains(told, "ada, whose table it is, is locked out") {
			t.Errorf("%s: an operator is told %s", path, told)
		}
		told = string(b.do("GET", path, nil, viewer...).body)
		if strings.Contains(told, "the-id-of-ada") || strings.Contains(told, "locked out") ||
			!strings.Contains(told, `"suspended_reason":"its owner may no longer have it refreshed"`) {
			t.Errorf("%s: a viewer is told %s", path, told)
		}
	}
}

// TestWhoMayDoWhatWithTables: a token that only reads may query, and changes nothing; logins are made by admins.
func TestWhoMayDoWhatWithTables(t *testing.T) {
	t.Parallel()
	failing := func() delivery.Counts {
		return delivery.Counts{Sent: 7, Retries: 1, Lost: map[string]int64{delivery.LostRejected: 3}, Failing: true,
			LastError: "it says <no>"}
	}
	b := start(t, func(o *server.Options) {
		o.Tables, o.Scaling = noTables{}, demand{}
		o.Destinations = []delivery.NamedSink{{Name: "otlp", To: "http://c/v1/metrics", Counts: failing}}
	})
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
		{"POST", "/api/v1/query-users", map[string]any{"name": "taken"}, 403, 403, 409, ""},
		{"POST", "/api/v1/query-users", map[string]any{"name": "taken", "new_password": true}, 403, 403, 200, "dsn of taken"},
		{"POST", "/api/v1/query-users", map[string]any{"name": "x; DROP"}, 403, 422, 422, ""},
		{"POST", "/api/v1/tables", map[string]any{"name": "mine", "definition": "SELECT 1"}, 403, 201, 201, ""},
		{"DELETE", "/api/v1/tables/mine", nil, 403, 204, 204, ""},
		{"DELETE", "/api/v1/query-users/grafana", nil, 403, 403, 204, ""},
		{"GET", "/api/v1/query-users", nil, 403, 403, 200, `{"logins":[{"name":"grafana","owner":"","suspended":true}]}`},
		{"PUT", "/api/v1/tables/mine", map[string]any{"definition": "SELECT 2", "version": 7}, 403, 200, 200,
			`{"name":"mine",`},
		{"PUT", "/api/v1/tables/mine", map[string]any{"definition": "SELECT 2", "version": 6}, 403, 409, 409, ""},
		{"PUT", "/api/v1/tables/mine", map[string]any{"definition": "SELECT 2"}, 403, 422, 422, ""},
		{"POST", "/api/v1/table-preview", map[string]any{"definition": "SELECT 3"}, 403, 200, 200, `"plan":"SELECT 3"`},
		{"GET", "/api/v1/query-catalog", nil, 200, 200, 200, `"relations":[]`},
		{"GET", "/api/v1/tables/n%C3%A4%20me%20%22x%22%252F", nil, 200, 200, 200,
			`"read_by":["top"],"pending":[],"claims":[{`},
		{"GET", "/api/v1/tables/n%C3%A4%20me/history?limit=7", nil, 200, 200, 200, `"worker_id":"nä me of 7"`},
		{"GET", "/api/v1/tables/nowhere", nil, 404, 404, 404, ""},
		{"GET", "/api/v1/tables", nil, 200, 200, 200, `"workers":[{"worker_id":"w","role":"NODE","host":"","kinds":["SQL"],` +
			`"slots":2,"waits_for":"","seen_at":null}],"nobody":""`},
		{"GET", "/api/v1/scaling", nil, 200, 200, 200, `"pending_refresh_count":7,"refresh_backlog_seconds":8,` +
			`"refresh_duration_p95_seconds":9`},
		{"GET", "/api/v1/out", nil, 200, 200, 200, `{"destinations":[{"name":"otlp","address":"http://c/v1/metrics",` +
			`"failing":true,"sent_count":7,"waiting_count":0,"waiting_bytes":0,"retry_count":1,"lost_counts":{"refused":3},` +
			`"last_error":"it says`},
		{"POST", "/api/query/export", map[string]any{"sql": "SELECT 1", "format": "csv"}, 200, 200, 200,
			"SELECT 1\n100000\n"},
		{"POST", "/api/query/export", map[string]any{"sql": "SELECT 1", "format": "xml"}, 422, 422, 422, ""},
		{"POST", "/api/query/cancel", map[string]any{"query_id": "nobodys-query"}, 404, 404, 404, ""},
		{"POST", "/api/query/cancel", map[string]any{"query_id": "on-another-server"}, 204, 204, 204, ""},
		{"PUT", "/api/v1/queries/n%C3%A4%20me%2Fx", map[string]any{"sql": "SELECT 2"}, 403, 200, 200, `"name":"nä me/x"`},
		{"PUT", "/api/v1/queries/old", map[string]any{"sql": "SELECT 2", "name": "new", "version": 3}, 403, 200, 200,
			`"name":"new"`},
		{"PUT", "/api/v1/queries/old", map[string]any{"sql": "SELECT 2", "name": "new"}, 403, 422, 422, ""},
		{"DELETE", "/api/v1/queries/mine", nil, 403, 204, 204, ""},
	} {
		for scope, want := range map[string]int{auth.ScopeRead: c.read, auth.ScopeWrite: c.write, auth.ScopeAdmin: c.admin} {
			got := b.do(c.method, c.path, c.body, "Authorization", "Bearer "+tokens[scope])
			if got.StatusCode != want || want == 200 && !strings.Contains(string(got.body), c.says) {
				t.Errorf("%s %s with %s: %d %s, want %d", c.method, c.path, scope, got.StatusCode, got.body, want)
			}
		}
	}
}

// slowTables answers no query before it is cancelled.
type slowTables struct {
	noTables
	asked chan struct{}
}

func (s slowTables) Query(ctx context.Context, _ string, _ int) (query.Answer, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return query.Answer{}, ctx.Err()
}

// TestAQueryIsCancelledByItsCaller: who asked ends a query by the name that it was given.
func TestAQueryIsCancelledByItsCaller(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 2)
	b := start(t, func(o *server.Options) { o.Tables = slowTables{asked: asked} })
	token, _ := b.mint(auth.ScopeRead)
	post := func(path string, body map[string]any) answer {
		return b.do("POST", path, body, "Authorization", "Bearer "+token)
	}
	const id = "a-query-of-mine"
	ended := make(chan answer, 1)
	go func() { ended <- post("/api/query", map[string]any{"sql": "SELECT 1", "query_id": id}) }()
	<-asked
	if got := post("/api/query", map[string]any{"sql": "SELECT 1",
		"query_id": id}); got.StatusCode != http.StatusConflict {
		t.Errorf("a second query of the name: %d %s", got.StatusCode, got.body)
	}
	if got := post("/api/query/cancel", map[string]any{"query_id": id}); got.StatusCode != http.StatusNoContent {
		t.Errorf("cancelling: %d %s", got.StatusCode, got.body)
	}
	if got := <-ended; got.StatusCode != http.StatusConflict || !strings.Contains(string(got.body), "was cancelled") {
		t.Errorf("the query that was cancelled: %d %s", got.StatusCode, got.body)
	}
	if got := post("/api/query/cancel", map[string]any{"query_id": id}); got.StatusCode != http.StatusNotFound {
		t.Errorf("cancelling what is over: %d %s", got.StatusCode, got.body)
	}
}

// busyTables lets one query of each user in.
type busyTables struct {
	noTables
	places *query.Places
	asked  chan struct{}
}

func (s busyTables) Query(ctx context.Context, _ string, _ int) (query.Answer, error) {
	leave, err := s.places.Acquire(ctx, query.Caller(ctx))
	if err != nil {
		return query.Answer{}, err
	}
	defer leave()
	s.asked <- struct{}{}
	<-ctx.Done()
	return query.Answer{}, ctx.Err()
}

// TestWhoHasNoPlaceLeftIsTold: the queries of a user that are too many are 429 with a hint, one that waits is cancelled
// by its name, and each stands in the audit log, without values, with its outcome.
func TestWhoHasNoPlaceLeftIsTold(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 2)
	o := ownBy(t, func(o *server.Options) {
		o.Tables = busyTables{asked: asked, places: query.NewPlaces(query.PlaceLimits{Total: 3, PerUser: 1, Waiting: 1,
			Wait: time.Minute})}
	})
	ask := func(user, id string) answer {
		return o.as(user, "POST", "/api/query", map[string]any{"sql": "SELECT 'my secret'  AS a", "query_id": id})
	}
	cancelled := func(user, id string) {
		t.Helper()
		for range 200 {
			got := o.as(user, "POST", "/api/query/cancel", map[string]any{"query_id": id})
			if got.StatusCode == http.StatusNoContent {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Errorf("%s is not cancelled", id)
	}
	ended := make(chan answer, 3)
	go func() { ended <- ask("vic", "first-of-vic") }()
	<-asked
	go func() { ended <- ask("vic", "second-of-vic") }()
	time.Sleep(500 * time.Millisecond) // it waits then
	third := ask("vic", "third-of-vic")
	if got := third.problem(t, http.StatusTooManyRequests, engine.CodeRateLimited); got.Hint == "" ||
		third.Header.Get("Retry-After") != "5" {
		t.Errorf("no hint, or not when to try again: %+v", got)
	}
	go func() { ended <- ask("bob", "first-of-bob") }()
	<-asked // another user has a place
	for user, id := range map[string]string{"vic": "second-of-vic", "bob": "first-of-bob"} {
		cancelled(user, id)
		if got := <-ended; got.StatusCode != http.StatusConflict {
			t.Errorf("%s ended with %d %s", id, got.StatusCode, got.body)
		}
	}
	cancelled("vic", "first-of-vic")
	<-ended
	lines := o.lines("action=query.execute")
	outcomes := map[string]int{}
	for _, e := range lines {
		outcomes[e.UserName+" "+e.Outcome]++
		if strings.Contains(e.Detail, "secret") || !strings.HasPrefix(e.Detail, "SELECT '") {
			t.Errorf("noted as %+v", e)
		}
	}
	if outcomes["vic refused"] != 1 || outcomes["vic failed"] != 2 || outcomes["bob failed"] != 1 {
		t.Errorf("noted are %v", outcomes)
	}
}

// TestAFloodOfStatementsHidesNoChange: whatever a user has sent before, each statement that changes the catalog of
// streams has a line, at any place of a group; so has each download.
func TestAFloodOfStatementsHidesNoChange(t *testing.T) {
	t.Parallel()
	o := ownBy(t, func(o *server.Options) { o.Tables, o.Streams = noTables{}, newStreaming(t) })
	streams := func(sql string) answer {
		return o.as("bob", "POST", "/api/v1/streams/statements", map[string]any{"sql": sql})
	}
	export := map[string]any{"sql": "SELECT 1", "format": "csv"}
	o.as("ada", "POST", "/api/v1/streams/statements", map[string]any{"sql": "CREATE SINK x TYPE PRINT"}).want(t, 200)
	for range 100 {
		o.as("bob", "POST", "/api/query", map[string]any{"sql": "SELECT 1"}).want(t, 200)
		streams("SHOW SINKS").want(t, 200)
		streams("CREATE SINK x TYPE PRINT").want(t, 409)
		o.as("bob", "POST", "/api/query/export", export).want(t, 200)
	}
	if all := len(o.lines("action=stream.execute")); all < 100 || all > 150 {
		t.Errorf("%d lines of what changed nothing", all)
	}
	if all := len(o.lines("action=query.export")); all < 100 {
		t.Errorf("%d lines of 100 downloads", all)
	}
	streams("CREATE SINK s TYPE PRINT; SHOW SINKS; EXPLAIN SELECT runId FROM run_events WHERE "+
		strings.Repeat("runId <> 'x' OR ", 40)+"runId = 'y' INTO s; CREATE SINK t TYPE PRINT").want(t, 200)
	streams("DROP SINK t").want(t, 200)
	var got []string
	for _, e := range o.lines("action=stream.statement&user=bob") {
		got = append(got, e.Detail)
		if len(e.Detail) > 600 {
			t.Errorf("a line has %d characters", len(e.Detail))
		}
	}
	all := strings.Join(got, "\n")
	for _, sql := range []string{": CREATE SINK s TYPE PRINT", ": CREATE SINK t TYPE PRINT", ": DROP SINK t"} {
		if len(got) != 3 || strings.Count(all, sql) != 1 {
			t.Errorf("lines of what was changed:\n%s", all)
		}
	}
	// What was refused has lines for what stands behind a long statement, too.
	o.as("ada", "POST", "/api/v1/streams/statements", map[string]any{"sql": "EXPLAIN SELECT runId FROM run_events WHERE " +
		strings.Repeat("runId <> 'x' OR ", 40) + "runId = 'y' INTO s; CREATE SINK x TYPE PRINT"}).want(t, 409)
	if lines := o.lines(
		"action=stream.execute&user=ada",
	); len(lines) != 2 ||
		lines[0].Detail != "CREATE SINK x TYPE PRINT" {
		t.Errorf("lines of what was refused: %+v", lines)
	}
}

// TestStatementsDoNotFillTheAuditLog: of a flood of statements some have lines, the next line says how many had none,
// and lines of others are left.
func TestStatementsDoNotFillTheAuditLog(t *testing.T) {
	t.Parallel()
	o := ownBy(t, func(o *server.Options) { o.Tables = noTables{} })
	for range 100 {
		o.as("vic", "POST", "/api/query", map[string]any{"sql": "SELECT 1"}).want(t, 200)
	}
	o.as("bob", "POST", "/api/query/export", map[string]any{"sql": "SELECT " + strings.Repeat("a, ", 400) + "b",
		"format": "csv"}).want(t, 200)
	if n := len(o.lines("action=query.execute&user=vic")); n < 60 || n > 70 {
		t.Errorf("%d lines of 100 statements", n)
	}
	time.Sleep(2100 * time.Millisecond)
	o.as("vic", "POST", "/api/query", map[string]any{"sql": "SELECT 1"}).want(t, 200)
	if e := o.lines("action=query.execute&user=vic")[0]; !strings.Contains(e.Detail, "more since the last such line") {
		t.Errorf("the line after them: %+v", e)
	}
	if found := o.lines("action=query.export&user=bob"); len(found) != 1 || len(found[0].Detail) > 510 {
		t.Errorf("of another user: %+v", found)
	}
}
