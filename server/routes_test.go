package server_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
)

func TestRunsOverHTTP(t *testing.T) {
	b := start(t)
	tpl := decode[store.Template](t, b.do("POST", "/api/templates", map[string]any{"source": yamlText}).want(t, 201))

	for name, in := range map[string]map[string]any{
		"by id":     {"template_id": tpl.TemplateID},
		"by name":   {"template_name": "lookups"},
		"by source": {"source": yamlText},
		"by json":   {"scenario": scenario("x")},
		"with set":  {"template_id": tpl.TemplateID, "set": map[string]any{"workload.duration_seconds": 9, "tags.ticket": "PERF-2"}},
		"set text":  {"source": yamlText, "set": map[string]any{"workload.duration_seconds": "9"}},
	} {
		t.Run(name, func(t *testing.T) {
			run := decode[engine.Run](t, b.do("POST", "/api/runs", in).want(t, 201))
			if run.Status != engine.StatusPrepared || run.CreatedBy != "admin" {
				t.Errorf("run %+v", run)
			}
			if _, set := in["set"]; set && run.Scenario.Workload.DurationSeconds != 9 {
				t.Errorf("duration %v", run.Scenario.Workload.DurationSeconds)
			}
			if _, from := in["template_id"]; from && (run.TemplateID != tpl.TemplateID || run.Scenario.TemplateName != "lookups") {
				t.Errorf("template %q %q", run.TemplateID, run.Scenario.TemplateName)
			}
		})
	}

	run := decode[engine.Run](t, b.do("POST", "/api/runs", map[string]any{"scenario": scenario("s"), "start": true}).want(t, 201))
	if run.Status != engine.StatusRunning {
		t.Errorf("status %s", run.Status)
	}
	if p := b.do("POST", "/api/runs/"+run.RunID+"/start", nil).problem(t, 409, engine.CodeConflict); p.Detail != "The run has been started already." {
		t.Errorf("detail %q", p.Detail)
	}
	b.store.measured(t, run.RunID)
	for _, base := range []string{"/api/runs/", "/api/tests/"} {
		b.do("GET", base+run.RunID, nil).want(t, 200)
		points := decode[struct{ Points []engine.Point }](t, b.do("GET", base+run.RunID+"/timeseries", nil).want(t, 200))
		if len(points.Points) != 1 || points.Points[0].QPSByKind[engine.KindInsert] != 10 {
			t.Errorf("points %v", points)
		}
		workers := decode[struct{ Points []store.WorkerPoint }](t, b.do("GET", base+run.RunID+"/timeseries?worker_id=worker-0", nil).want(t, 200))
		if workers.Points[0].WorkerID != "worker-0" {
			t.Errorf("worker points %v", workers)
		}
		page := decode[struct {
			Logs    []engine.LogEntry `json:"logs"`
			LastSeq int64             `json:"last_seq"`
		}](t, b.do("GET", base+run.RunID+"/logs?after=1&level=INFO&limit=1", nil).want(t, 200))
		if len(page.Logs) != 1 || page.LastSeq != 2 {
			t.Errorf("logs %+v", page)
		}
		b.do("GET", base+run.RunID+"/summary", nil).problem(t, 409, engine.CodeConflict)
	}
	b.do("POST", "/api/tests/"+run.RunID+"/stop", nil).want(t, 200)
	b.do("POST", "/api/runs/"+run.RunID+"/stop", nil).problem(t, 409, engine.CodeConflict)
	b.do("DELETE", "/api/runs/"+run.RunID, nil).want(t, 204)
	b.do("DELETE", "/api/runs/"+run.RunID, nil).problem(t, 404, engine.CodeNotFound)
	b.do("POST", "/api/tests/from-template/"+tpl.TemplateID, nil).want(t, 201)
	b.do("POST", "/api/tests/from-template/"+tpl.TemplateID, map[string]any{"start": true}).want(t, 201)
	b.do("POST", "/api/preflight", map[string]any{"template_id": tpl.TemplateID}).want(t, 200)

	b.do("GET", "/api/runs?status=RUNNING,FAILED&template_id=x&search=a%20b&since=2026-01-02T03:04:05Z&tag=a:b&tag=c:d:e&limit=7&cursor=zzz", nil).problem(t, 422, engine.CodeInvalid)
	f := b.store.lastFilter
	if len(f.Statuses) != 2 || f.Search != "a b" || f.Limit != 7 || f.Cursor != "zzz" || f.Tag["c"] != "d:e" || f.Tag["a"] != "b" || f.Since.IsZero() {
		t.Errorf("filter %+v", f)
	}
	for _, action := range []string{"template.create", "run.create", "run.start", "run.stop", "run.delete"} {
		if !strings.Contains(strings.Join(b.store.actions(), " "), action) {
			t.Errorf("%s is not in the audit log: %v", action, b.store.actions())
		}
	}
}

func TestTemplatesOverHTTP(t *testing.T) {
	b := start(t)
	made := decode[store.Template](t, b.do("POST", "/api/templates", map[string]any{"source": yamlText}).want(t, 201))
	if made.Source != yamlText || made.Config.Workload.ConcurrentConnections == 0 {
		t.Errorf("template %+v", made)
	}
	p := b.do("POST", "/api/templates", map[string]any{"source": yamlText}).problem(t, 409, engine.CodeConflict)
	if len(p.Errors) != 1 || p.Errors[0].Field != "name" {
		t.Errorf("problem %+v", p)
	}
	second := decode[store.Template](t, b.do("PUT", "/api/templates/"+made.TemplateID, map[string]any{"config": scenario("renamed"), "version": 1}).want(t, 200))
	if second.Version != 2 || second.Name != "renamed" || !strings.Contains(second.Source, "name: renamed") {
		t.Errorf("second %+v", second)
	}
	p = b.do("PUT", "/api/templates/"+made.TemplateID, map[string]any{"config": scenario("late"), "version": 1}).problem(t, 409, engine.CodeConflict)
	if p.Errors[0].Field != "version" {
		t.Errorf("problem %+v", p)
	}
	for name, in := range map[string]map[string]any{
		"source": {"source": "name: x\nworklod: {}\n"}, "config": {"config": map[string]any{"name": "x", "workload": map[string]any{"duration_seconds": -1}}},
	} {
		v := decode[struct {
			Valid  bool
			Errors []engine.FieldError
		}](t, b.do("POST", "/api/templates/validate", in).want(t, 200))
		if v.Valid || len(v.Errors) == 0 {
			t.Errorf("%s: %+v", name, v)
		}
		p := b.do("POST", "/api/templates", in).problem(t, 422, engine.CodeInvalid)
		if len(p.Errors) == 0 || p.Errors[0].Field == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	valid := decode[map[string]any](t, b.do("POST", "/api/templates/validate", map[string]any{"config": scenario("x")}).want(t, 200))
	if valid["valid"] != true || valid["source"] == "" {
		t.Errorf("valid %v", valid)
	}
	if s := b.do("GET", "/api/templates/schema", nil).want(t, 200); !json.Valid(s.body) {
		t.Error("the schema is not JSON")
	}
	b.do("GET", "/api/templates", nil).want(t, 200)
	b.do("DELETE", "/api/templates/"+made.TemplateID, nil).want(t, 204)
	b.do("GET", "/api/templates/"+made.TemplateID, nil).problem(t, 404, engine.CodeNotFound)
}

// TestSecretsNeverLeave writes passwords in every form and looks for them in every answer.
func TestSecretsNeverLeave(t *testing.T) {
	b := start(t)
	const secret = "s3cr3t-pass"
	hides := func(a answer) answer {
		t.Helper()
		if bytes.Contains(a.body, []byte(secret)) {
			t.Fatalf("%s %s shows the password: %s", a.Request.Method, a.Request.URL, a.body)
		}
		return a
	}
	for i, dsn := range []string{
		"postgres://u:" + secret + "@h:5432/d", "postgres://u:x" + secret + "@y@h/d?sslmode=require", "host=h user=u password=" + secret + " dbname=d",
		"host=h user=u password = '" + secret + " \\' x'", "postgres://h/d?user=u&password=" + secret, "postgres://h/d?user=u&sslpassword=" + secret + "&sslmode=require",
	} {
		name := fmt.Sprintf("c%d", i)
		made := decode[store.Connection](t, hides(b.do("POST", "/api/connections", map[string]any{"name": name, "driver": "postgres", "dsn": dsn})).want(t, 201))
		if !strings.Contains(made.DSN, "***") {
			t.Errorf("%s is shown as %s", dsn, made.DSN)
		}
		// Saving what was read keeps the password.
		hides(b.do("PUT", "/api/connections/"+made.ConnectionID, map[string]any{"name": name, "driver": "postgres", "dsn": made.DSN, "description": "d"})).want(t, 200)
		if got := b.store.secret(t, made.ConnectionID); got != dsn {
			t.Errorf("kept %q, want %q", got, dsn)
		}
		hides(b.do("POST", "/api/connections/"+made.ConnectionID+"/test", nil)).want(t, 200)

		s := scenario("inline " + name)
		s["target"].(map[string]any)["connection"] = map[string]any{"driver": "postgres", "dsn": dsn}
		text, _ := json.Marshal(s)
		tpl := decode[store.Template](t, hides(b.do("POST", "/api/templates", map[string]any{"source": string(text)})).want(t, 201))
		hides(b.do("GET", "/api/templates/"+tpl.TemplateID, nil)).want(t, 200)
		run := decode[engine.Run](t, hides(b.do("POST", "/api/runs", map[string]any{"template_id": tpl.TemplateID})).want(t, 201))
		hides(b.do("GET", "/api/runs/"+run.RunID, nil)).want(t, 200)
		if got := b.runs.created[len(b.runs.created)-1].Target.Connection.DSN; got != dsn {
			t.Errorf("the run got %q, want %q", got, dsn)
		}
		// The same through a copy whose password is masked.
		hides(b.do("PUT", "/api/templates/"+tpl.TemplateID, map[string]any{"config": tpl.Config, "version": 1})).want(t, 200)
		hides(b.do("POST", "/api/runs", map[string]any{"template_id": tpl.TemplateID, "set": map[string]any{"workload.duration_seconds": 7}})).want(t, 201)
		if got := b.runs.created[len(b.runs.created)-1].Target.Connection.DSN; got != dsn {
			t.Errorf("the second run got %q, want %q", got, dsn)
		}
		p := b.do("POST", "/api/runs", map[string]any{"scenario": tpl.Config}).problem(t, 422, engine.CodeInvalid)
		if p.Errors[0].Field != "target.connection.dsn" {
			t.Errorf("problem %+v", p)
		}
	}
	for _, path := range []string{"/api/connections", "/api/templates", "/api/runs"} {
		hides(b.do("GET", path, nil)).want(t, 200)
	}
	if strings.Contains(b.log.String(), secret) {
		t.Error("the log shows the password")
	}

	made := decode[store.Connection](t, b.do("POST", "/api/connections", map[string]any{"name": "moved", "driver": "postgres", "dsn": "postgres://u:" + secret + "@h:5432/d"}).want(t, 201))
	for dsn, want := range map[string]int{
		"postgres://u:***@h:5432/other?application_name=x": 200, "postgres://u:***@evil:5432/d": 422, "postgres://v:***@h:5432/d": 422, "postgres://u:***@h:5432/d?host=evil": 422,
	} {
		hides(b.do("POST", "/api/connections/test", map[string]any{"driver": "postgres", "dsn": dsn, "connection_id": made.ConnectionID})).want(t, want)
	}
	if got := b.runs.dsns[len(b.runs.dsns)-1]; got != "postgres://u:"+secret+"@h:5432/other?application_name=x" {
		t.Errorf("tested %q", got)
	}
	scenarioWithSeal := scenario("sealed")
	scenarioWithSeal["target"].(map[string]any)["connection"] = map[string]any{"driver": "postgres", "dsn": "postgres://u:***@h/d", "dsn_sealed": "AAAA"}
	b.do("POST", "/api/runs", map[string]any{"scenario": scenarioWithSeal}).problem(t, 422, engine.CodeInvalid)
}

func TestConnectionsAndPlugins(t *testing.T) {
	b := start(t)
	made := decode[store.Connection](t, b.do("POST", "/api/connections", map[string]any{"name": "c", "driver": "postgres", "dsn": "postgres://h/d"}).want(t, 201))
	b.do("POST", "/api/connections", map[string]any{"name": "c", "driver": "postgres", "dsn": "postgres://h/d"}).problem(t, 409, engine.CodeConflict)
	p := b.do("POST", "/api/connections", map[string]any{"name": "", "driver": "oracle", "dsn": "x"}).problem(t, 422, engine.CodeInvalid)
	if len(p.Errors) != 2 {
		t.Errorf("errors %+v", p.Errors)
	}
	p = b.do("POST", "/api/connections/test", map[string]any{"driver": "postgres", "dsn": "postgres://unreachable/d"}).problem(t, 422, engine.CodeTarget)
	if p.Hint == "" {
		t.Error("no hint")
	}
	got := decode[map[string]any](t, b.do("POST", "/api/connections/"+made.ConnectionID+"/test", nil).want(t, 200))
	if got["ok"] != true || got["round_trip_ms"] != 1.5 {
		t.Errorf("test %v", got)
	}
	b.do("DELETE", "/api/connections/"+made.ConnectionID, nil).want(t, 204)
	if err := b.store.EnsureBuiltin(t.Context(), store.Connection{Name: "playground", Driver: "postgres", DSN: "postgres://h/d"}); err != nil {
		t.Fatal(err)
	}
	playground, err := b.store.Connection(t.Context(), "playground")
	if err != nil {
		t.Fatal(err)
	}
	b.do("DELETE", "/api/connections/"+playground.ConnectionID, nil).problem(t, 409, engine.CodeConflict)

	list := decode[map[string][]map[string]any](t, b.do("GET", "/api/plugins", nil).want(t, 200))
	if e := list["plugins"][0]; e["name"] != "mix" || e["bundled"] != true || e["enabled"] != true {
		t.Errorf("plugins %v", list)
	}
	for _, ref := range []string{"mix", "mix@1.0.0", "aa"} {
		b.do("GET", "/api/plugins/"+ref, nil).want(t, 200)
	}
	b.do("GET", "/api/plugins/mix@2", nil).problem(t, 404, engine.CodeNotFound)
	info := decode[map[string]any](t, b.do("GET", "/api/info", nil).want(t, 200))
	if info["version"] != "1.2.3" || info["nodes"] != 1.0 || info["data_dir_free_bytes"].(float64) <= 0 {
		t.Errorf("info %v", info)
	}
}

// TestBadInput sends what must be refused, and names the field that must be blamed.
func TestBadInput(t *testing.T) {
	b := start(t)
	run := b.createRun("x")
	long := strings.Repeat("x", 200)
	for _, c := range []struct {
		name, method, path string
		body               any
		header             []string
		status             int
		code               engine.Code
		field              string
	}{
		{"unknown field", "POST", "/api/runs", `{"sorce":"x"}`, nil, 422, "invalid", "sorce"},
		{"unknown field below", "POST", "/api/auth/tokens", `{"name":"x","more":{"a":1}}`, nil, 422, "invalid", "more"},
		{"missing field", "POST", "/api/auth/tokens", `{}`, nil, 422, "invalid", "name"},
		{"wrong type", "POST", "/api/auth/tokens", `{"name":7}`, nil, 422, "invalid", "name"},
		{"null", "POST", "/api/auth/tokens", `{"name":null}`, nil, 422, "invalid", "name"},
		{"huge number", "POST", "/api/auth/tokens", `{"name":"x","expires_in_days":1e400}`, nil, 422, "invalid", "expires_in_days"},
		{"2^63", "PUT", "/api/templates/x", `{"source":"x","version":9223372036854775808}`, nil, 422, "invalid", "version"},
		{"fraction", "POST", "/api/auth/tokens", `{"name":"x","expires_in_days":1.5}`, nil, 422, "invalid", "expires_in_days"},
		{"twice", "POST", "/api/auth/tokens", `{"name":"x","name":"y"}`, nil, 422, "invalid", "name"},
		{"NUL", "POST", "/api/auth/tokens", `{"name":"a\u0000b"}`, nil, 422, "invalid", "name"},
		{"invalid UTF-8", "POST", "/api/auth/tokens", []byte("{\"name\":\"\xff\"}"), nil, 400, "malformed", ""},
		{"malformed", "POST", "/api/auth/tokens", `{"name":`, nil, 400, "malformed", ""},
		{"not an object", "POST", "/api/auth/tokens", `[1]`, nil, 422, "invalid", "body"},
		{"two objects", "POST", "/api/auth/tokens", `{"name":"x"}{}`, nil, 400, "malformed", ""},
		{"no body", "POST", "/api/auth/tokens", nil, nil, 400, "malformed", ""},
		{"deep", "POST", "/api/runs", `{"scenario":` + strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500) + "}", nil, 422, "invalid", "scenario.a"},
		{"content type", "POST", "/api/auth/tokens", `{"name":"x"}`, []string{"Content-Type", "text/plain"}, 415, "media_type", ""},
		{"no content type", "POST", "/api/auth/tokens", `{"name":"x"}`, []string{"Content-Type", ""}, 415, "media_type", ""},
		{"charset", "POST", "/api/auth/tokens", `{"nam":"x"}`, []string{"Content-Type", "application/json; charset=utf-8"}, 422, "invalid", "nam"},
		{"compressed", "POST", "/api/auth/tokens", `{"name":"x"}`, []string{"Content-Encoding", "gzip"}, 415, "media_type", ""},
		{"too large", "POST", "/api/templates", `{"source":"` + strings.Repeat("x", 1<<20) + `"}`, nil, 413, "too_large", ""},
		{"huge set", "POST", "/api/runs", map[string]any{"scenario": scenario("x"), "set": map[string]any{"workload": 1}}, nil, 422, "invalid", "workload"},
		{"nothing to run", "POST", "/api/runs", `{}`, nil, 422, "invalid", "template_id"},
		{"two ways", "POST", "/api/runs", `{"source":"x","template_id":"y"}`, nil, 422, "invalid", "template_id"},
		{"no such template", "POST", "/api/runs", `{"template_id":"nope"}`, nil, 404, "not_found", "template_id"},
		{"no such template name", "POST", "/api/runs", `{"template_name":"no pe"}`, nil, 404, "not_found", "template_name"},
		{"mistyped scenario", "POST", "/api/runs", map[string]any{"scenario": map[string]any{"name": "x", "worklod": 1}}, nil, 422, "invalid", "worklod"},
		{"absurd number", "POST", "/api/runs", map[string]any{"scenario": scenario("x"), "set": map[string]any{"workload.concurrent_connections": 1000000000}}, nil, 422, "invalid", "workload.concurrent_connections"},
		{"absurd time", "POST", "/api/runs", map[string]any{"scenario": scenario("x"), "set": map[string]any{"workload.duration_seconds": 9.3e18}}, nil, 422, "invalid", "workload.duration_seconds"},
		{"bad path in set", "POST", "/api/runs", map[string]any{"scenario": scenario("x"), "set": map[string]any{"": 1}}, nil, 422, "invalid", ""},
		{"bad limit", "GET", "/api/runs?limit=0", nil, nil, 422, "invalid", "limit"},
		{"text limit", "GET", "/api/runs?limit=many", nil, nil, 422, "invalid", "limit"},
		{"huge limit", "GET", "/api/runs?limit=99999999999999999999", nil, nil, 422, "invalid", "limit"},
		{"bad status", "GET", "/api/runs?status=DONE", nil, nil, 422, "invalid", "status[0]"},
		{"bad time", "GET", "/api/runs?since=yesterday", nil, nil, 422, "invalid", "since"},
		{"bad tag", "GET", "/api/runs?tag=x", nil, nil, 422, "invalid", "tag"},
		{"unknown parameter", "GET", "/api/runs?limt=1", nil, nil, 422, "invalid", "limt"},
		{"bad escape", "GET", "/api/runs?search=%zz", nil, nil, 400, "malformed", ""},
		{"query not text", "GET", "/api/runs?search=%ff", nil, nil, 422, "invalid", "search"},
		{"query NUL", "GET", "/api/runs?search=a%00", nil, nil, 422, "invalid", "search"},
		{"unknown run", "GET", "/api/runs/nope", nil, nil, 404, "not_found", ""},
		{"unknown run's log", "GET", "/api/runs/nope/logs", nil, nil, 404, "not_found", ""},
		{"unknown run's socket", "GET", "/ws/runs/nope", nil, nil, 404, "not_found", ""},
		{"id with a slash", "GET", "/api/runs/a%2Fb", nil, nil, 404, "not_found", ""},
		{"id with a quote", "POST", "/api/runs/'%20or%201=1/start", nil, nil, 404, "not_found", ""},
		{"id with NUL", "DELETE", "/api/templates/a%00", nil, nil, 404, "not_found", ""},
		{"id not text", "GET", "/api/connections/%ff", nil, nil, 404, "not_found", ""},
		{"long id", "GET", "/api/runs/" + long, nil, nil, 404, "not_found", ""},
		{"too long id", "GET", "/api/runs/" + long + long, nil, nil, 422, "invalid", "id"},
		{"unknown address", "GET", "/api/nope", nil, nil, 404, "not_found", ""},
		{"other case", "GET", "/api/Runs", nil, nil, 404, "not_found", ""},
		{"wrong method", "PATCH", "/api/runs", nil, nil, 405, "method_not_allowed", ""},
		{"get of a post", "GET", "/api/auth/signin", nil, nil, 405, "method_not_allowed", ""},
		{"unheard of method", "BREW", "/api/runs", nil, nil, 405, "method_not_allowed", ""},
		{"post to the page", "POST", "/", nil, nil, 405, "method_not_allowed", ""},
		{"not a socket", "GET", "/ws/runs/" + run.RunID, nil, nil, 426, "malformed", ""},
		{"log level", "GET", "/api/runs/" + run.RunID + "/logs?level=LOUD", nil, nil, 422, "invalid", "level"},
		{"no executions", "GET", "/api/runs/" + run.RunID + "/executions", nil, nil, 404, "not_found", ""},
		{"format", "GET", "/api/runs/" + run.RunID + "/executions?format=xls", nil, nil, 422, "invalid", "format"},
		{"download parameter", "GET", "/api/runs/" + run.RunID + "/executions?prt=1", nil, nil, 422, "invalid", "prt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.t = t
			p := b.do(c.method, c.path, c.body, c.header...).problem(t, c.status, c.code)
			if c.field == "" {
				return
			}
			for _, e := range p.Errors {
				if e.Field == c.field && e.Message != "" || strings.HasPrefix(e.Field, c.field+".") {
					return
				}
			}
			t.Errorf("no error blames %q: %+v", c.field, p)
		})
	}
	b.t = t
	b.do("GET", "/healthz", nil).want(t, 200)
}

// TestPathsArePercentDecoded asks for names as clients write them that escape more than they must.
func TestPathsArePercentDecoded(t *testing.T) {
	b := start(t)
	run := b.createRun("x")
	for _, path := range []string{"/api/plugins/mix%401.0.0", "/api/plugins/%6dix", "/api/runs/" + strings.ReplaceAll(run.RunID, "-", "%2D"), "/api/runs/%72" + run.RunID[1:] + "/logs"} {
		b.do("GET", path, nil).want(t, 200)
	}
	b.do("GET", "/api/plugins/mix%2540", nil).problem(t, 404, engine.CodeNotFound)
	b.do("GET", "/api/runs/%2e%2e%2fx", nil).problem(t, 404, engine.CodeNotFound)
}

// TestAllowIsCompleteAndOnce compares the header of a wrong method with the routes.
func TestAllowIsCompleteAndOnce(t *testing.T) {
	b := start(t)
	for path, want := range map[string]string{"/api/runs": "GET, HEAD, POST", "/api/connections/test": "POST", "/api/auth/signin": "POST",
		"/api/templates/schema": "GET, HEAD", "/api/templates/validate": "POST", "/api/plugins/x": "DELETE, GET, HEAD"} {
		for _, method := range []string{"PATCH", "QUERY"} {
			a := b.do(method, path, nil)
			a.problem(t, 405, "method_not_allowed")
			if got := a.Header.Values("Allow"); len(got) != 1 || got[0] != want {
				t.Errorf("%s %s: Allow %q, want %q", method, path, got, want)
			}
		}
		// A type of body that no address takes does not hide that.
		a := b.do("PATCH", path, "x", "Content-Type", "application/octet-stream")
		a.problem(t, 405, "method_not_allowed")
		if got := a.Header.Values("Allow"); len(got) != 1 || got[0] != want {
			t.Errorf("%s: Allow %q, want %q", path, got, want)
		}
	}
}

func TestInternalsDoNotLeak(t *testing.T) {
	b := start(t)
	b.runs.panics = true
	p := b.do("POST", "/api/runs", map[string]any{"scenario": scenario("x")}).problem(t, 500, engine.CodeInternal)
	if strings.Contains(fmt.Sprint(p), "secret internals") {
		t.Errorf("problem %+v", p)
	}
	if log := b.log.String(); !strings.Contains(log, "secret internals") || !strings.Contains(log, p.RequestID) {
		t.Errorf("the log lacks the cause or the id: %s", log)
	}
	b.store.mu.Lock()
	b.store.down = errors.New("pq: password authentication failed for user admin_of_store")
	b.store.mu.Unlock()
	a := b.do("GET", "/api/templates/x", nil)
	p = a.problem(t, 500, engine.CodeInternal)
	if strings.Contains(string(a.body), "admin_of_store") || !strings.Contains(b.log.String(), p.RequestID) {
		t.Errorf("answer %s", a.body)
	}
	b.store.mu.Lock()
	b.store.down = fmt.Errorf("asking: %w", store.ErrUnavailable)
	b.store.mu.Unlock()
	b.do("GET", "/api/templates/x", nil).problem(t, 503, engine.CodeUnavailable)
	b.do("GET", "/readyz", nil, "Authorization", "").problem(t, 503, engine.CodeUnavailable)
	b.do("GET", "/healthz", nil, "Authorization", "").want(t, 200)
}

func (b *bench) recorded(parts int, size int) engine.Run {
	run := b.createRun("recorded")
	for i := range parts {
		name := fmt.Sprintf("executions-worker-0-%d.parquet", i)
		if err := b.store.SaveArtifact(b.t.Context(), engine.Artifact{RunID: run.RunID, Kind: "executions", Name: name, SizeBytes: int64(size), SHA256: "aa"}); err != nil {
			b.t.Fatal(err)
		}
		b.files.parts[run.RunID+"/"+name] = bytes.Repeat([]byte{byte('a' + i)}, size)
	}
	return run
}

func TestDownloads(t *testing.T) {
	b := start(t)
	run := b.recorded(2, 300_000)
	path := "/api/runs/" + run.RunID + "/executions"
	a := b.do("GET", path, nil).want(t, 200)
	if d := a.Header.Get("Content-Disposition"); d != `attachment; filename=run-`+run.RunID+`-executions.zip` {
		t.Errorf("disposition %q", d)
	}
	z, err := zip.NewReader(bytes.NewReader(a.body), int64(len(a.body)))
	if err != nil || len(z.File) != 2 || z.File[0].Method != zip.Store {
		t.Fatalf("zip: %v", err)
	}
	f, err := z.File[1].Open()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err != nil || !bytes.Equal(data, bytes.Repeat([]byte("b"), 300_000)) {
		t.Errorf("part: %v, %d bytes", err, len(data))
	}
	a = b.do("GET", path+"?part=executions-worker-0-1.parquet", nil).want(t, 200)
	if len(a.body) != 300_000 || a.ContentLength != 300_000 || a.Header.Get("Content-Type") != "application/vnd.apache.parquet" {
		t.Errorf("part: %d bytes, %v", len(a.body), a.Header)
	}
	b.do("GET", path+"?part=..%2F..%2Fetc%2Fpasswd", nil).problem(t, 404, engine.CodeNotFound)
	if a = b.do("GET", path+"?format=csv", nil).want(t, 200); string(a.body) != "a,b\n" || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/csv") {
		t.Errorf("csv %q", a.body)
	}
	eventually(t, func() bool { return b.files.opened() == 0 }, "a part stays open")

	// A download that fails half way must not look whole.
	b.files.mu.Lock()
	b.files.broken = true
	b.files.mu.Unlock()
	req, _ := http.NewRequest(http.MethodGet, b.base+path+"?format=csv", nil)
	req.Header.Set("Authorization", "Bearer "+b.token)
	res, err := b.client.Do(req)
	if err == nil {
		_, err = io.ReadAll(res.Body)
		_ = res.Body.Close()
	}
	if err == nil {
		t.Error("half a file was taken for a whole one")
	}
}

// TestAPanicEndsItsDownloadOnly lets what writes a download panic, in the goroutine
// that has no handler above it, and what reads a part.
func TestAPanicEndsItsDownloadOnly(t *testing.T) {
	b := start(t)
	run := b.recorded(1, 10)
	b.files.mu.Lock()
	b.files.panics = true
	b.files.mu.Unlock()
	for _, query := range []string{"?format=csv", "", "?part=executions-worker-0-0.parquet"} {
		req, _ := http.NewRequest(http.MethodGet, b.base+"/api/runs/"+run.RunID+"/executions"+query, nil)
		req.Header.Set("Authorization", "Bearer "+b.token)
		res, err := b.client.Do(req)
		if err == nil {
			_, err = io.ReadAll(res.Body)
			_ = res.Body.Close()
		}
		if err == nil {
			t.Errorf("%s: half a file was taken for a whole one", query)
		}
	}
	b.do("GET", "/healthz", nil).want(t, 200)
	if !strings.Contains(b.log.String(), "a download panicked") {
		t.Error("the log does not have the panic")
	}
}

// TestFewExportsAtATime holds that CSV downloads are counted while they last.
func TestFewExportsAtATime(t *testing.T) {
	b := start(t)
	run := b.recorded(1, 10)
	b.files.endless = true
	path := "/api/runs/" + run.RunID + "/executions?format=csv"
	var open []io.Closer
	for range 3 {
		req, _ := http.NewRequest(http.MethodGet, b.base+path, nil)
		req.Header.Set("Authorization", "Bearer "+b.token)
		res, err := b.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, res.Body)
	}
	a := b.do("GET", path, nil)
	a.problem(t, 429, "rate_limited")
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	for _, c := range open {
		_ = c.Close()
	}
	b.files.mu.Lock()
	b.files.endless = false
	b.files.mu.Unlock()
	eventually(t, func() bool { return b.do("GET", path, nil).StatusCode == http.StatusOK }, "the places are not given back")
}

// TestProbesOfStrangersAskOnce asks for readiness many times at once: the store is asked once a second.
func TestProbesOfStrangersAskOnce(t *testing.T) {
	b := start(t)
	begin := time.Now()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { b.do("GET", "/readyz", nil, "Authorization", "").want(t, 200) })
	}
	wg.Wait()
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	if most := 1 + int(time.Since(begin)/time.Second); b.store.pings > most {
		t.Errorf("the store was asked %d times", b.store.pings)
	}
}

func TestHangingUpEndsTheDownload(t *testing.T) {
	b := start(t)
	run := b.recorded(1, 10)
	b.files.endless = true
	req, _ := http.NewRequest(http.MethodGet, b.base+"/api/runs/"+run.RunID+"/executions?format=csv", nil)
	req.Header.Set("Authorization", "Bearer "+b.token)
	res, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, res.Body, 1<<20); err != nil {
		t.Fatal(err)
	}
	if b.files.opened() != 1 {
		t.Fatal("nothing is being written")
	}
	_ = res.Body.Close()
	eventually(t, func() bool { return b.files.opened() == 0 }, "the exporter still runs")
}

func TestShutdownCutsAnEndlessDownload(t *testing.T) {
	b := start(t, func(o *server.Options) { o.ShutdownTimeout = 600 * time.Millisecond })
	run := b.recorded(1, 10)
	b.files.endless = true
	req, _ := http.NewRequest(http.MethodGet, b.base+"/api/runs/"+run.RunID+"/executions?format=csv", nil)
	req.Header.Set("Authorization", "Bearer "+b.token)
	res, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	go func() { _, _ = io.Copy(io.Discard, res.Body) }()
	if err := b.stop(); err != nil {
		t.Errorf("serving: %v", err)
	}
	eventually(t, func() bool { return b.files.opened() == 0 }, "the exporter still runs")
}

func TestSlowBodyIsRefused(t *testing.T) {
	b := start(t, func(o *server.Options) { o.ReadTimeout = 300 * time.Millisecond })
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(conn, "POST /api/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", b.token)
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	text, err := io.ReadAll(conn)
	if err != nil || !bytes.HasPrefix(text, []byte("HTTP/1.1 408")) || !bytes.Contains(text, []byte(`"code":"timeout"`)) {
		t.Errorf("answer %q, %v", text, err)
	}
}

func eventually(t *testing.T, ok func() bool, what string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal(what)
}

// TestHugeBodies sends more than is read at all: the server says so and lives.
func TestHugeBodies(t *testing.T) {
	b := start(t)
	for _, size := range []int{2 << 20, 3 << 20} {
		b.do("POST", "/api/templates", bytes.Repeat([]byte("x"), size)).problem(t, 413, engine.CodeTooLarge)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	// The announcement is refused when the body begins; the rest is not waited for.
	_, _ = fmt.Fprintf(conn, "POST /api/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 9000000000\r\n\r\n%s",
		b.token, strings.Repeat("x", 8<<10))
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	text, err := io.ReadAll(conn)
	if err != nil || !bytes.HasPrefix(text, []byte("HTTP/1.1 413")) || !bytes.Contains(text, []byte(`"code":"too_large"`)) {
		t.Errorf("answer %q, %v", text, err)
	}
	b.do("GET", "/healthz", nil).want(t, 200)
}

// TestStrangersSendNothing announces bodies without a token and holds that none of
// them is waited for or read, and that the connection goes on with the next request.
func TestStrangersSendNothing(t *testing.T) {
	b := start(t)
	ask := func(head, text string) (status int, seen string) {
		t.Helper()
		conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = fmt.Fprintf(conn, "%s\r\nHost: x\r\nContent-Type: application/json\r\n%s", head, text)
		r := bufio.NewReader(conn)
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%s: %v", head, err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.Close {
			return res.StatusCode, string(body)
		}
		_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		if next, err := http.ReadResponse(r, nil); err != nil || next.StatusCode != http.StatusOK {
			t.Errorf("%s: the next request on the connection: %v, %v", head, next, err)
		}
		return res.StatusCode, string(body)
	}
	whole := func(n int) string {
		return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", n, strings.Repeat("x", n))
	}
	chunked := "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("8000\r\n"+strings.Repeat("x", 0x8000)+"\r\n", 60) + "0\r\n\r\n"
	for _, c := range []struct {
		name, head, text string
		status           int
	}{
		{"announced and never sent", "POST /api/runs HTTP/1.1", "Content-Length: 1000000\r\n\r\n" + strings.Repeat("x", 9000), 401},
		{"one that fits", "POST /api/runs HTTP/1.1", whole(100), 401},
		{"a large one", "POST /api/runs HTTP/1.1", whole(1 << 20), 401},
		{"chunked", "PUT /api/templates/x HTTP/1.1", chunked, 401},
		{"an upload", "POST /api/plugins HTTP/1.1", whole(1 << 20), 401},
		{"a sign-in of 5 KB", "POST /api/auth/signin HTTP/1.1", whole(5 << 10), 413},
		{"a sign-in in chunks", "POST /api/auth/signin HTTP/1.1", chunked, 413},
		{"a sign-in that fits", "POST /api/auth/signin HTTP/1.1", whole(4 << 10), 400},
		{"a page", "POST / HTTP/1.1", whole(1 << 20), 405},
		{"a probe", "GET /healthz HTTP/1.1", whole(1 << 20), 200},
	} {
		if status, seen := ask(c.head, c.text); status != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.name, status, c.status, seen)
		}
	}
}

// TestShutdownWaitsForHandlers lets one request be in flight when the server stops.
func TestShutdownWaitsForHandlers(t *testing.T) {
	b := start(t)
	release := make(chan struct{})
	b.store.mu.Lock()
	b.store.block = release
	b.store.mu.Unlock()
	answered := make(chan int, 1)
	go func() {
		req, _ := http.NewRequest(http.MethodGet, b.base+"/api/templates", nil)
		req.Header.Set("Authorization", "Bearer "+b.token)
		res, err := b.client.Do(req)
		if err != nil {
			answered <- 0
			return
		}
		_ = res.Body.Close()
		answered <- res.StatusCode
	}()
	time.Sleep(100 * time.Millisecond) // the request is in its handler
	stopped := make(chan error, 1)
	go func() { stopped <- b.stop() }()
	time.Sleep(200 * time.Millisecond)
	close(release)
	if status := <-answered; status != 200 {
		t.Errorf("the request in flight got %d", status)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	b.srv.Close() // twice is safe
	if err := b.srv.Serve(t.Context()); err == nil {
		t.Error("a server served twice")
	}
}

func TestListenRefusesATakenPort(t *testing.T) {
	b := start(t)
	other, err := server.New(server.Options{Addr: strings.TrimPrefix(b.base, "http://"), Runs: b.runs, Store: b.store, Files: b.files, Plugins: plugins{}})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Listen(); err == nil || engine.AsError(err).Hint == "" {
		t.Errorf("listening: %v", err)
	}
}

// TestEndBeforeTheStart ends the context before the listener accepts anything.
func TestEndBeforeTheStart(t *testing.T) {
	b := start(t)
	for range 20 {
		srv, err := server.New(server.Options{Addr: "127.0.0.1:0", Runs: b.runs, Store: b.store, Files: b.files, Plugins: plugins{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := srv.Serve(ctx); err != nil {
			t.Fatalf("serving: %v", err)
		}
	}
}
