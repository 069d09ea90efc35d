package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

func TestRunsOverHTTP(t *testing.T) {
	t.Parallel()
	b := start(t)
	tpl := decode[store.Template](t, b.do("POST", "/api/templates", map[string]any{"source": yamlText}).want(t, 201))

	for name, in := range map[string]map[string]any{
		"by id":     {"template_id": tpl.TemplateID},
		"by name":   {"template_name": "lookups"},
		"by source": {"source": yamlText},
		"by json":   {"scenario": scenario("x")},
		"with set": {"template_id": tpl.TemplateID,
			"set": map[string]any{"workload.duration_seconds": 9, "tags.ticket": "PERF-2"}},
		"set text": {"source": yamlText, "set": map[string]any{"workload.duration_seconds": "9"}},
	} {
		t.Run(name, func(t *testing.T) {
			run := decode[engine.Run](t, b.do("POST", "/api/runs", in).want(t, 201))
			if run.Status != engine.StatusPrepared || run.CreatedBy != "admin" {
				t.Errorf("run %+v", run)
			}
			if _, set := in["set"]; set && run.Scenario.Workload.DurationSeconds != 9 {
				t.Errorf("duration %v", run.Scenario.Workload.DurationSeconds)
			}
			if _, from := in["template_id"]; from &&
				(run.TemplateID != tpl.TemplateID || run.Scenario.TemplateName != "lookups") {
				t.Errorf("template %q %q", run.TemplateID, run.Scenario.TemplateName)
			}
		})
	}

	run := decode[engine.Run](t, b.do("POST", "/api/runs", map[string]any{"scenario": scenario("s"), "start": true}).
		want(t, 201))
	if run.Status != engine.StatusRunning {
		t.Errorf("status %s", run.Status)
	}
	if p := b.do("POST", "/api/runs/"+run.RunID+"/start", nil).problem(t, 409,
		engine.CodeConflict); p.Detail != "The run has been started already." {
		t.Errorf("detail %q", p.Detail)
	}
	b.store.measured(t, run.RunID)
	for _, base := range []string{"/api/runs/", "/api/tests/"} {
		b.do("GET", base+run.RunID, nil).want(t, 200)
		points := decode[struct{ Points []engine.Point }](t, b.do("GET", base+run.RunID+"/timeseries", nil).want(t, 200))
		if len(points.Points) != 1 || points.Points[0].QPSByKind[engine.KindInsert] != 10 {
			t.Errorf("points %v", points)
		}
		workers := decode[struct{ Points []store.WorkerPoint }](t,
			b.do("GET", base+run.RunID+"/timeseries?worker_id=worker-0", nil).want(t, 200))
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

	b.do("GET",
		"/api/runs?status=RUNNING,FAILED&template_id=x&search=a%20b&since=2026-01-02T03:04:05Z&tag=a:b&tag=c:d:e&limit=7&"+
			"cursor=zzz", nil).problem(t, 422, engine.CodeInvalid)
	f := b.store.lastFilter
	if len(f.Statuses) != 2 || f.Search != "a b" || f.Limit != 7 || f.Cursor != "zzz" || f.Tag["c"] != "d:e" ||
		f.Tag["a"] != "b" || f.Since.IsZero() {
		t.Errorf("filter %+v", f)
	}
	for _, action := range []string{"template.create", "run.create", "run.start", "run.stop", "run.delete"} {
		if !strings.Contains(strings.Join(b.store.actions(), " "), action) {
			t.Errorf("%s is not in the audit log: %v", action, b.store.actions())
		}
	}
}

func TestTemplatesOverHTTP(t *testing.T) {
	t.Parallel()
	b := start(t)
	made := decode[store.Template](t, b.do("POST", "/api/templates", map[string]any{"source": yamlText}).want(t, 201))
	if made.Source != yamlText || made.Config.Workload.ConcurrentConnections == 0 {
		t.Errorf("template %+v", made)
	}
	p := b.do("POST", "/api/templates", map[string]any{"source": yamlText}).problem(t, 409, engine.CodeConflict)
	if len(p.Errors) != 1 || p.Errors[0].Field != "name" {
		t.Errorf("problem %+v", p)
	}
	second := decode[store.Template](t,
		b.do("PUT", "/api/templates/"+made.TemplateID, map[string]any{"config": scenario("renamed"), "version": 1}).want(t,
			200))
	if second.Version != 2 || second.Name != "renamed" || !strings.Contains(second.Source, "name: renamed") {
		t.Errorf("second %+v", second)
	}
	p = b.do("PUT", "/api/templates/"+made.TemplateID, map[string]any{"config": scenario("late"), "version": 1}).problem(t,
		409, engine.CodeConflict)
	if p.Errors[0].Field != "version" {
		t.Errorf("problem %+v", p)
	}
	for name, in := range map[string]map[string]any{
		"source": {"source": "name: x\nworklod: {}\n"},
		"config": {"config": map[string]any{"name": "x", "workload": map[string]any{"duration_seconds": -1}}},
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
	valid := decode[map[string]any](t,
		b.do("POST", "/api/templates/validate", map[string]any{"config": scenario("x")}).want(t, 200))
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

// TestNamesThatStandForNothingAreWarnings: a template may be written before its connection is.
func TestNamesThatStandForNothingAreWarnings(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.do("POST", "/api/connections", map[string]any{"name": "orders db", "driver": "postgres",
		"dsn": "postgres://u:p@h:5432/d"}).want(t, 201)
	source := "name: x\nworkload: {plugin: nothing-like-it}\ntarget:\n  connection: order db\n  table_name: t\n"
	v := decode[struct {
		Valid            bool
		Errors, Warnings []engine.FieldError
	}](t, b.do("POST", "/api/templates/validate", map[string]any{"source": source}).want(t, 200))
	if !v.Valid || len(v.Errors) > 0 || len(v.Warnings) != 2 {
		t.Fatalf("%+v", v)
	}
	if w := v.Warnings[0]; w.Field != "workload.plugin" || w.Line != 2 || !strings.Contains(w.Message, "nothing-like-it") {
		t.Errorf("the plugin: %+v", w)
	}
	if w := v.Warnings[1]; w.Field != "target.connection" || w.Line != 4 || w.Hint != `did you mean "orders db"?` {
		t.Errorf("the connection: %+v", w)
	}
	b.do("POST", "/api/templates", map[string]any{"source": source}).want(t, 201)
}

// TestSecretsNeverLeave writes passwords in every form and looks for them in every answer.
func TestSecretsNeverLeave(t *testing.T) {
	t.Parallel()
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
		"postgres://u:" + secret + "@h:5432/d", "postgres://u:x" + secret + "%40y@h/d?sslmode=require",
		"host=h user=u password=" + secret + " dbname=d",
		"host=h user=u password = '" + secret + " \\' x'", "postgres://h/d?user=u&password=" + secret,
		"postgres://h/d?user=u&sslpassword=" + secret + "&sslmode=require",
	} {
		name := fmt.Sprintf("c%d", i)
		made := decode[store.Connection](t,
			hides(b.do("POST", "/api/connections", map[string]any{"name": name, "driver": "postgres", "dsn": dsn})).want(t, 201))
		if !strings.Contains(made.DSN, "***") {
			t.Errorf("%s is shown as %s", dsn, made.DSN)
		}
		// Saving what was read keeps the password.
		hides(b.do("PUT", "/api/connections/"+made.ConnectionID,
			map[string]any{"name": name, "driver": "postgres", "dsn": made.DSN, "description": "d"})).want(t, 200)
		if got := b.store.secret(t, made.ConnectionID); got != dsn {
			t.Errorf("kept %q, want %q", got, dsn)
		}
		hides(b.do("POST", "/api/connections/"+made.ConnectionID+"/test", nil)).want(t, 200)

		s := scenario("inline " + name)
		s["target"].(map[string]any)["connection"] = map[string]any{"driver": "postgres", "dsn": dsn}
		text, _ := json.Marshal(s)
		tpl := decode[store.Template](t,
			hides(b.do("POST", "/api/templates", map[string]any{"source": string(text)})).want(t, 201))
		hides(b.do("GET", "/api/templates/"+tpl.TemplateID, nil)).want(t, 200)
		run := decode[engine.Run](t,
			hides(b.do("POST", "/api/runs", map[string]any{"template_id": tpl.TemplateID})).want(t, 201))
		hides(b.do("GET", "/api/runs/"+run.RunID, nil)).want(t, 200)
		if got := b.runs.created[len(b.runs.created)-1].Target.Connection.DSN; got != dsn {
			t.Errorf("the run got %q, want %q", got, dsn)
		}
		// The same through a copy whose password is masked.
		hides(b.do("PUT", "/api/templates/"+tpl.TemplateID, map[string]any{"config": tpl.Config, "version": 1})).want(t, 200)
		hides(b.do("POST", "/api/runs",
			map[string]any{"template_id": tpl.TemplateID, "set": map[string]any{"workload.duration_seconds": 7}})).want(t, 201)
		if got := b.runs.created[len(b.runs.created)-1].Target.Connection.DSN; got != dsn {
			t.Errorf("the second run got %q, want %q", got, dsn)
		}
		p := b.do("POST", "/api/runs", map[string]any{"scenario": tpl.Config}).problem(t, 422, engine.CodeInvalid)
		if p.Errors[0].Field != "target.connection.dsn" {
			t.Errorf("problem %+v", p)
		}
	}
	// What somebody could read in two ways is refused at its field, with how to write it.
	for _, dsn := range []string{"postgres://u:x@" + secret + "@h/d", "postgres://u:1/" + secret + "@h/d",
		"postgres://u:1?x=" + secret + "@h/d", "host=h user=u password='x " + secret} {
		s := scenario("ambiguous")
		s["target"].(map[string]any)["connection"] = map[string]any{"driver": "postgres", "dsn": dsn}
		text, _ := json.Marshal(s)
		for path, in := range map[string]map[string]any{"/api/connections": {"name": "a", "driver": "postgres", "dsn": dsn},
			"/api/connections/test": {"driver": "postgres", "dsn": dsn}, "/api/templates": {"source": string(text)},
			"/api/runs": {"source": string(text)}} {
			p := hides(b.do("POST", path, in)).problem(t, 422, engine.CodeInvalid)
			if len(p.Errors) != 1 || !strings.HasSuffix(p.Errors[0].Field, "dsn") ||
				!strings.Contains(p.Errors[0].Hint, "%40") && !strings.Contains(p.Errors[0].Hint, "quote") {
				t.Errorf("%s of %s: %+v", path, dsn, p)
			}
		}
	}
	for _, path := range []string{"/api/connections", "/api/templates", "/api/runs"} {
		hides(b.do("GET", path, nil)).want(t, 200)
	}
	if strings.Contains(b.log.String(), secret) {
		t.Error("the log shows the password")
	}

	made := decode[store.Connection](t,
		b.do("POST", "/api/connections",
			map[string]any{"name": "moved", "driver": "postgres", "dsn": "postgres://u:" + secret + "@h:5432/d"}).want(t, 201))
	for dsn, want := range map[string]int{
		"postgres://u:***@h:5432/other?application_name=x": 200, "postgres://u:***@evil:5432/d": 422,
		"postgres://v:***@h:5432/d": 422, "postgres://u:***@h:5432/d?host=evil": 422,
	} {
		hides(b.do("POST", "/api/connections/test",
			map[string]any{"driver": "postgres", "dsn": dsn, "connection_id": made.ConnectionID})).want(t, want)
	}
	if got := b.runs.dsns[len(b.runs.dsns)-1]; got != "postgres://u:"+secret+"@h:5432/other?application_name=x" {
		t.Errorf("tested %q", got)
	}
	scenarioWithSeal := scenario("sealed")
	scenarioWithSeal["target"].(map[string]any)["connection"] = map[string]any{"driver": "postgres",
		"dsn": "postgres://u:***@h/d", "dsn_sealed": "AAAA"}
	b.do("POST", "/api/runs", map[string]any{"scenario": scenarioWithSeal}).problem(t, 422, engine.CodeInvalid)
}

func TestConnectionsAndPlugins(t *testing.T) {
	t.Parallel()
	b := start(t)
	made := decode[store.Connection](t,
		b.do("POST", "/api/connections", map[string]any{"name": "c", "driver": "postgres", "dsn": "postgres://h/d"}).want(t,
			201))
	b.do("POST", "/api/connections", map[string]any{"name": "c", "driver": "postgres", "dsn": "postgres://h/d"}).problem(t,
		409, engine.CodeConflict)
	p := b.do("POST", "/api/connections", map[string]any{"name": "", "driver": "oracle", "dsn": "x"}).problem(t, 422,
		engine.CodeInvalid)
	if len(p.Errors) != 2 {
		t.Errorf("errors %+v", p.Errors)
	}
	p = b.do("POST", "/api/connections/test", map[string]any{"driver": "postgres", "dsn": "postgres://unreachable/d"}).
		problem(t, 422, engine.CodeTarget)
	if p.Hint == "" {
		t.Error("no hint")
	}
	got := decode[map[string]any](t, b.do("POST", "/api/connections/"+made.ConnectionID+"/test", nil).want(t, 200))
	if got["ok"] != true || got["round_trip_ms"] != 1.5 {
		t.Errorf("test %v", got)
	}
	b.do("DELETE", "/api/connections/"+made.ConnectionID, nil).want(t, 204)
	b.makePlayground()
	playground, err := b.store.ConnectionByName(t.Context(), "playground")
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

// TestPathsArePercentDecoded asks for names as clients write them that escape more than they must.
func TestPathsArePercentDecoded(t *testing.T) {
	t.Parallel()
	b := start(t)
	run := b.createRun("x")
	for _, path := range []string{"/api/plugins/mix%401.0.0", "/api/plugins/%6dix",
		"/api/runs/" + strings.ReplaceAll(run.RunID, "-", "%2D"), "/api/runs/%72" + run.RunID[1:] + "/logs"} {
		b.do("GET", path, nil).want(t, 200)
	}
	b.do("GET", "/api/plugins/mix%2540", nil).problem(t, 404, engine.CodeNotFound)
	b.do("GET", "/api/runs/%2e%2e%2fx", nil).problem(t, 404, engine.CodeNotFound)
}

// TestAllowIsCompleteAndOnce compares the header of a wrong method with the routes.
func TestAllowIsCompleteAndOnce(t *testing.T) {
	t.Parallel()
	b := start(t)
	for path, want := range map[string]string{"/api/runs": "GET, HEAD, POST", "/api/connections/test": "POST",
		"/api/auth/signin":      "POST",
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
