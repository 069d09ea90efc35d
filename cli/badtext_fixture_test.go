package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
)

// textFixture has a server with something of each kind, which requests are about.
type textFixture struct {
	*clitest.LiveServer
	// ids are of what there is, by the word of the address: "runs".
	ids map[string]string
	// mark is a mark of the run; secret an API token of the scope admin; person the session of somebody with a password.
	mark, secret, person string
	startedAt            engine.Time
	created              int
}

// skippedOperations are operations whose texts are not tried here, with the reason.
var skippedOperations = map[string]string{
	"GET /api/v1/streams/watch": "what is a statement is answered by a stream that does not end; " +
		"POST /api/v1/streams/statements takes the same texts",
}

func (k *textFixture) next(word string) string {
	k.created++
	return fmt.Sprint(word, k.created)
}

func (k *textFixture) post(path string, in any, out any) {
	k.T.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		k.T.Fatal(err)
	}
	a := k.Exchange(http.MethodPost, path, string(raw))
	if a.Status/100 != 2 {
		k.T.Fatalf("%s: %d %s", path, a.Status, a.Body)
	}
	if err := json.Unmarshal(a.Body, out); err != nil {
		k.T.Fatalf("%s: %v: %s", path, err, a.Body)
	}
}

type createdIDs struct {
	ConnectionID string `json:"connection_id"`
	TemplateID   string `json:"template_id"`
	MatrixID     string `json:"matrix_id"`
	MarkID       string `json:"mark_id"`
	ViewID       string `json:"view_id"`
	ScheduleID   string `json:"schedule_id"`
	User         struct {
		UserID string `json:"user_id"`
	}
	Secret, URL string
}

// scenario is a template that could be run.
func (k *textFixture) scenario() map[string]any {
	return map[string]any{"name": k.next("scenario "), "target": map[string]any{
		"connection": "playground", "adapter": "postgres", "table_name": "orders",
		"prepare": map[string]any{"rows": 100, "if_exists": "use"}},
		"workload": map[string]any{"plugin": "mix", "concurrent_connections": 1, "duration_seconds": 1,
			"warmup_seconds": 0}}
}

// worstText is a text of everything that is no control character of JSON alone.
func (k *textFixture) worstText() string {
	return "=1+1<script>window.owned=1</script>\x1b]8;;http://x\x07\x1b[2J\u009b31m\u202egnp.exe\"'\u200b"
}

// quotedExpression is an expression whose value is a text: a statement itself has no control characters.
func quotedExpression(text string) string {
	var b strings.Builder
	b.WriteString("'")
	for _, r := range text {
		switch {
		case r == '\'':
			b.WriteString("''")
		case textsafe.IsControl(r):
			fmt.Fprintf(&b, "' || chr(%d) || '", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + "'"
}

// prepare makes something of each kind, and a run whose target quotes bad texts in its errors.
func (k *textFixture) prepare() {
	k.T.Helper()
	var statements []any
	for i, name := range slices.Sorted(maps.Keys(badTexts)) {
		var text string
		if json.Unmarshal([]byte(badTexts[name]), &text) != nil || strings.ContainsAny(text, "\x00\ufffd") {
			continue
		}
		statements = append(statements, map[string]any{"id": fmt.Sprint("s", i),
			"sql": "SELECT (" + quotedExpression(text) + " || random())::integer"})
	}
	statements = append(statements, map[string]any{"id": "good", "sql": "SELECT 1"})
	var of createdIDs
	k.post("/api/templates", map[string]any{"config": map[string]any{"name": k.worstText(),
		"description": k.worstText(), "tags": map[string]any{"=team": "@" + "a<b>"},
		"target": map[string]any{"connection": "playground", "adapter": "postgres"},
		"workload": map[string]any{"plugin": "sql", "params": map[string]any{"statements": statements},
			"concurrent_connections": 2, "duration_seconds": 2, "warmup_seconds": 0}}}, &of)
	run := runToEnd(k.T, k.LiveServer, fmt.Sprintf(`{"template_id":%q,"start":true}`, of.TemplateID))
	if run.Summary == nil || run.Summary.Errors.Count == 0 {
		k.T.Fatalf("the run has no errors to show: %s %v", run.Status, *run.CancellationReason)
	}
	k.ids["runs"], k.ids["tests"], k.startedAt = run.RunID, run.RunID, run.StartTime
	k.ids["templates"] = of.TemplateID
	if a := k.Exchange(
		http.MethodPut,
		"/api/templates/"+of.TemplateID+"/baseline",
		`{"run_id":"`+run.RunID+`"}`,
	); a.Status/
		100 != 2 {
		k.T.Fatalf("a baseline: %d %s", a.Status, a.Body)
	}
	k.post("/api/connections", map[string]any{"name": "kept", "driver": "postgres", "dsn": "postgres://u:p@127.0.0.1:1/d"},
		&of)
	several := k.scenario()
	several["matrix"] = map[string]any{"targets": []any{several["target"], map[string]any{"connection": "kept",
		"table_name": "t"}}}
	delete(several, "target")
	k.post("/api/matrices", map[string]any{"scenario": several}, &of)
	k.post("/api/v1/runs/"+run.RunID+"/marks", map[string]any{"text": "a mark", "at": run.StartTime}, &of)
	k.post("/api/v1/run-views", map[string]any{"name": "a view"}, &of)
	k.post("/api/v1/schedules", map[string]any{"name": "=1+1<script>\u202egnp.exe\"'",
		"template_id": of.TemplateID, "cron": "@yearly"}, &of)
	k.post("/api/auth/tokens", map[string]any{"name": "all", "scope": "admin"}, &of)
	k.secret, k.mark = of.Secret, of.MarkID
	k.post("/api/users", map[string]any{"name": "person", "role": "operator"}, &of)
	k.ids["connections"], k.ids["matrices"] = of.ConnectionID, of.MatrixID
	k.ids["schedules"] = of.ScheduleID
	k.ids["run-views"], k.ids["users"], k.ids["plugins"] = of.ViewID, of.User.UserID, "mix"
	_, after, _ := strings.Cut(of.URL, "invitation=")
	invitation, _, _ := strings.Cut(after, "&")
	a := k.Exchange(http.MethodPost, "/api/auth/signin", fmt.Sprintf(
		`{"invitation":%q,"password":"correct horse battery"}`, invitation), "Origin", k.Base)
	k.person, _, _ = strings.Cut(a.Header.Get("Set-Cookie"), ";")
	if a.Status != http.StatusOK || k.person == "" {
		k.T.Fatalf("signing in: %d %s (%+v)", a.Status, a.Body, of)
	}
	var nodes struct {
		Nodes []struct {
			NodeID string `json:"node_id"`
		}
	}
	if err := json.Unmarshal([]byte(k.MustGet("/api/v1/nodes")), &nodes); err != nil || len(nodes.Nodes) == 0 {
		k.T.Fatalf("%v: no node", err)
	}
	k.ids["nodes"] = nodes.Nodes[0].NodeID
	if a := k.Exchange(http.MethodPut, "/api/v1/queries/kept", `{"sql":"SELECT 1"}`); a.Status != http.StatusOK {
		k.T.Fatalf("saving a query: %d %s", a.Status, a.Body)
	}
	k.ids["queries"] = "kept"
	var table struct{ Name string }
	k.post("/api/v1/tables", map[string]any{"name": "kept", "definition": "SELECT run_id FROM rollup.runs"}, &table)
	k.ids["tables"] = table.Name
}

// id is of what there is, where an address asks for one. What is started, stopped or deleted is none that there is.
func (k *textFixture) id(path, name string) string {
	if name == "mark" {
		return k.mark
	}
	words := strings.Split(path, "/")
	for i, word := range words {
		if word == "{"+name+"}" {
			if last := words[len(words)-1]; last == "start" || last == "stop" || last == "drain" || last == "remove" {
				return "none"
			}
			if id := k.ids[words[i-1]]; id != "" {
				return id
			}
		}
	}
	return "none"
}

// caller is who asks: strangers sign in, and whoever changes its password has one.
func (k *textFixture) caller(f textField) []string {
	switch {
	case f.path == "/api/auth/signin":
		return []string{"X-Nobody", "1"}
	case f.path == "/api/auth/password" || strings.HasPrefix(f.path, "/api/auth/totp"):
		return []string{"Cookie", k.person, "Origin", k.Base}
	}
	return []string{"Authorization", "Bearer " + k.secret}
}

// version is the one that is current of what is at an address.
func (k *textFixture) version(path string) int64 {
	var v struct {
		Version int64
		Table   struct{ Version int64 }
		Views   []struct {
			ViewID  string `json:"view_id"`
			Version int64
		}
		Queries []struct {
			Name    string
			Version int64
		}
	}
	if err := json.Unmarshal([]byte(k.MustGet(path)), &v); err != nil {
		k.T.Fatal(err)
	}
	for _, view := range v.Views {
		if view.ViewID == k.ids["run-views"] {
			return view.Version
		}
	}
	for _, q := range v.Queries {
		if q.Name == k.ids["queries"] {
			return q.Version
		}
	}
	return v.Version + v.Table.Version
}

type object = map[string]any

// bodies are those in which all is right, by operation.
func (k *textFixture) bodies() map[string]func() any {
	fixed := func(in object) func() any { return func() any { return in } }
	scenario := func() any { return object{"scenario": k.scenario()} }
	config := func() any { return object{"config": k.scenario()} }
	retention := func() any {
		return object{"on": false, "keep_runs_days": 0, "keep_executions_days": 0, "executions_budget_gb": 0,
			"keep_tags": []any{}}
	}
	all := map[string]func() any{
		"POST /api/auth/signin":       fixed(object{"name": "person", "password": "wrong"}),
		"PUT /api/auth/password":      fixed(object{"password": "wrong", "new_password": "another horse battery"}),
		"POST /api/auth/totp":         fixed(object{"password": "wrong"}),
		"POST /api/auth/totp/confirm": fixed(object{"code": "000000"}),
		"POST /api/auth/totp/disable": fixed(object{"code": "000000", "password": "wrong"}),
		"POST /api/auth/tokens":       fixed(object{"name": "a token", "scope": "read"}),
		"POST /api/connections": func() any {
			return object{"name": k.next("connection "), "driver": "postgres", "dsn": "postgres://u:p@127.0.0.1:1/d"}
		},
		"PUT /api/connections/{id}": fixed(object{"name": "kept", "driver": "postgres",
			"dsn": "postgres://u:p@127.0.0.1:1/d"}),
		"POST /api/connections/test":         fixed(object{"driver": "postgres", "dsn": "postgres://u:p@127.0.0.1:1/d"}),
		"POST /api/matrices":                 scenario,
		"POST /api/matrices/{id}/start":      fixed(object{}),
		"POST /api/preflight":                scenario,
		"POST /api/runs":                     scenario,
		"POST /api/runs/{id}/start":          fixed(object{}),
		"POST /api/tests":                    scenario,
		"POST /api/tests/{id}/start":         fixed(object{}),
		"POST /api/tests/from-template/{id}": fixed(object{}),
		"POST /api/query":                    fixed(object{"sql": "SELECT 1"}),
		"POST /api/query/cancel":             fixed(object{"query_id": "a-query-of-nobody"}),
		"POST /api/query/export":             fixed(object{"sql": "SELECT 1", "format": "csv"}),
		"PUT /api/runs/{id}/tags":            fixed(object{"tags": object{}}),
		"POST /api/statements/catalog":       fixed(object{"connection": "playground"}),
		"POST /api/statements/try":           func() any { return object{"scenario": k.scenario(), "statement": "s"} },
		"POST /api/templates":                config,
		"POST /api/templates/validate":       config,
		"PUT /api/templates/{id}/baseline":   fixed(object{"run_id": k.ids["runs"]}),
		"POST /api/users":                    func() any { return object{"name": k.next("u"), "role": "viewer"} },
		"POST /api/v1/node-addresses":        fixed(object{"address": "127.0.0.1:1"}),
		"POST /api/v1/query-users":           fixed(object{"name": "reader", "new_password": true}),
		"POST /api/v1/retention/preview":     retention,
		"POST /api/v1/run-views":             func() any { return object{"name": k.next("view ")} },
		"POST /api/v1/schedules": func() any {
			return object{"name": k.next("schedule "), "template_id": k.ids["templates"], "cron": "@yearly"}
		},
		"PUT /api/v1/schedules/{id}": func() any {
			return object{"name": "kept", "template_id": k.ids["templates"], "cron": "@yearly"}
		},
		"POST /api/v1/runs/{id}/marks":       fixed(object{"text": "a mark"}),
		"POST /api/v1/streams/statements":    fixed(object{"sql": "SHOW QUERIES"}),
		"POST /api/v1/table-preview":         fixed(object{"definition": "SELECT 1 AS a"}),
		"PUT /api/v1/runs/{id}/marks/{mark}": fixed(object{"text": "a mark", "at": k.startedAt}),
		"PUT /api/v1/run-views/{id}/shared":  fixed(object{"shared": true, "version": 1}),
		"PUT /api/v1/tables/{name}":          fixed(object{"definition": "SELECT run_id FROM rollup.runs"}),
		"PUT /api/v1/queries/{name}":         fixed(object{"sql": "SELECT 1"}),
		"PUT /api/v1/prices":                 fixed(object{"text": ""}),
		"PUT /api/v1/retention":              retention,
		"PUT /api/templates/{id}":            config,
		"PUT /api/runs/{id}/note":            fixed(object{"text": "a note"}),
		"PUT /api/v1/run-views/{id}":         fixed(object{"name": "a view"}),
		"POST /api/v1/tables": func() any {
			return object{"name": k.next("table"), "definition": "SELECT run_id FROM rollup.runs"}
		},
		"PUT /api/v1/notifications": fixed(object{"hooks": []any{object{"name": "h", "kind": "webhook",
			"url": "http://127.0.0.1:1/x", "events": []any{"failed"}}}}),
	}
	for operation, at := range map[string]string{"PUT /api/v1/tables/{name}": "/api/v1/tables/" + k.ids["tables"],
		"PUT /api/v1/queries/{name}": "/api/v1/queries", "PUT /api/v1/prices": "/api/v1/prices",
		"PUT /api/v1/retention": "/api/v1/retention", "PUT /api/templates/{id}": "/api/templates/" + k.ids["templates"],
		"PUT /api/runs/{id}/note":    "/api/runs/" + k.ids["runs"] + "/note",
		"PUT /api/v1/schedules/{id}": "/api/v1/schedules/" + k.ids["schedules"],
		"PUT /api/v1/run-views/{id}": "/api/v1/run-views", "PUT /api/v1/notifications": "/api/v1/notifications"} {
		of := all[operation]
		all[operation] = func() any {
			in := maps.Clone(of().(object))
			in["version"] = k.version(at)
			return in
		}
	}
	return all
}

// templates are the texts of a template, which the document of the API describes as it answers them.
func (d document) templates() (list []textField) {
	var found [][]string
	d.texts(d.at(map[string]any(d), "components", "schemas", "Scenario"), []string{"config"}, &found)
	for _, route := range found {
		list = append(list, textField{http.MethodPost, "/api/templates", "body", route})
	}
	return list
}
