package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server/api"
)

// document is the served OpenAPI document with its schemas ready to judge answers.
type document struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
}

func openDocument(t *testing.T, b *bench) document {
	t.Helper()
	text := b.do("GET", "/api/openapi.json", nil).want(t, 200).body
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	return document{doc.(map[string]any), c}
}

func at(v any, path ...string) any {
	for _, step := range path {
		m, _ := v.(map[string]any)
		v = m[step]
	}
	return v
}

func pointer(path ...string) string {
	for i, p := range path {
		path[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~", "~0"), "/", "~1")
	}
	return "mem:///openapi.json#/" + strings.Join(path, "/")
}

// conforms fails when an answer is not what the document says of its operation.
func (d document) conforms(t *testing.T, method, path string, a answer) {
	t.Helper()
	media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	status := fmt.Sprint(a.StatusCode)
	answer := at(d.doc, "paths", path, strings.ToLower(method), "responses", status)
	if answer == nil {
		t.Errorf("%s %s: the document does not know status %s", method, path, status)
		return
	}
	if len(a.body) == 0 {
		return
	}
	schema, err := d.compiler.Compile(
		strings.ReplaceAll(pointer("paths", path, strings.ToLower(method), "responses", status, "content", media, "schema"),
			"{", "%7B"))
	if err != nil {
		t.Errorf("%s %s %s %s: %v", method, path, status, media, err)
		return
	}
	if !strings.HasSuffix(media, "json") {
		return
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err == nil {
		err = schema.Validate(v)
	}
	if err != nil {
		t.Errorf("%s %s answers what its schema does not allow: %v\n%s", method, path, err, a.body)
	}
}

func TestOpenAPIDocument(t *testing.T) {
	t.Parallel()
	b := start(t)
	d := openDocument(t, b)
	if d.doc["openapi"] != "3.1.0" || at(d.doc, "info", "title") == "" || at(d.doc, "info", "version") != "1.2.3" {
		t.Errorf("head %v %v", d.doc["openapi"], d.doc["info"])
	}
	ids := map[string]bool{}
	tags := map[string]bool{}
	for _, tag := range d.doc["tags"].([]any) {
		tags[at(tag, "name").(string)] = true
	}
	known := []string{"summary", "description", "get", "put", "post", "patch", "delete", "parameters", "servers"}
	for path, item := range d.doc["paths"].(map[string]any) {
		for method, o := range item.(map[string]any) {
			if !slices.Contains(known, method) {
				t.Errorf("%s has a member %q", path, method)
			}
			name := method + " " + path
			id, _ := at(o, "operationId").(string)
			if id == "" || ids[id] || at(o, "summary") == nil || at(o, "responses") == nil {
				t.Errorf("%s: id %q, summary %v", name, id, at(o, "summary"))
			}
			ids[id] = true
			for _, tag := range at(o, "tags").([]any) {
				if !tags[tag.(string)] {
					t.Errorf("%s: unknown tag %v", name, tag)
				}
			}
			declared := map[string]bool{}
			params, _ := at(o, "parameters").([]any)
			for _, p := range params {
				if at(p, "in") == "path" {
					declared[at(p, "name").(string)] = true
					if at(p, "required") != true {
						t.Errorf("%s: path parameter %v is not required", name, at(p, "name"))
					}
				}
			}
			for _, step := range strings.Split(path, "/") {
				if n, ok := strings.CutPrefix(step, "{"); ok && !declared[strings.TrimSuffix(n, "}")] {
					t.Errorf("%s: %s is not declared", name, step)
				}
			}
			success := false
			for status, r := range at(o, "responses").(map[string]any) {
				success = success || status < "400"
				if at(r, "description") == nil {
					t.Errorf("%s %s: no description", name, status)
				}
			}
			if !success {
				t.Errorf("%s: no answer for success", name)
			}
		}
	}
	for name := range at(d.doc, "components", "schemas").(map[string]any) {
		if _, err := d.compiler.Compile(pointer("components", "schemas", name)); err != nil {
			t.Errorf("schema %s: %v", name, err)
		}
	}
	refs(t, d.doc, d.doc)
	// Every route is described, and everything described is a route.
	var routes []string
	for _, r := range b.srv.Routes() {
		if r.Method == http.MethodHead {
			continue
		}
		var steps []string
		for _, s := range strings.Split(r.Path, "/") {
			if n, ok := strings.CutPrefix(s, ":"); ok {
				s = "{" + n + "}"
			}
			steps = append(steps, s)
		}
		path := strings.Join(steps, "/")
		routes = append(routes, r.Method+" "+path)
		if at(d.doc, "paths", path, strings.ToLower(r.Method)) == nil {
			t.Errorf("%s %s is not described", r.Method, path)
		}
	}
	for path, item := range d.doc["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			if !slices.Contains(routes, strings.ToUpper(method)+" "+path) {
				t.Errorf("%s %s is described and does not exist", method, path)
			}
		}
	}
	kinds := at(d.doc, "components", "schemas", "SlowExecution", "properties", "kind", "enum").([]any)
	if len(kinds) != len(engine.Kinds()) {
		t.Errorf("kinds %v", kinds)
	}
	page := b.do("GET", "/api/docs", nil).want(t, 200)
	for _, want := range []string{"/api/runs/{id}/executions", "/ws/runs/{id}", "schema-RunDetail", "</html>"} {
		if !bytes.Contains(page.body, []byte(want)) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if got := bytes.Count(page.body, []byte("<script")); got != 1 ||
		!bytes.Contains(page.body, []byte(`<script src="/docs-search.js" defer>`)) {
		t.Errorf("the page has %d scripts, and may have the file of its search", got)
	}
	for path, item := range d.doc["paths"].(map[string]any) {
		for method, o := range item.(map[string]any) {
			id, _ := o.(map[string]any)["operationId"].(string)
			for _, want := range []string{`href="#op-` + id + `"`, `id="op-` + id + `"`} {
				if !bytes.Contains(page.body, []byte(want)) {
					t.Errorf("the page lacks %s of %s %s", want, method, path)
				}
			}
		}
	}
}

func refs(t *testing.T, doc, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && at(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...) == nil {
			t.Errorf("%s leads nowhere", ref)
		}
		for _, child := range v {
			refs(t, doc, child)
		}
	case []any:
		for _, child := range v {
			refs(t, doc, child)
		}
	}
}

// TestAnswersConform compares real answers with the document.
func TestAnswersConform(t *testing.T) {
	t.Parallel()
	b := start(t)
	d := openDocument(t, b)
	tpl := b.do("POST", "/api/templates", map[string]any{"source": yamlText})
	d.conforms(t, "POST", "/api/templates", tpl)
	id := decode[map[string]any](t, tpl)["template_id"].(string)
	con := b.do("POST", "/api/connections", map[string]any{"name": "c", "driver": "postgres", "dsn": "postgres://h/d"})
	d.conforms(t, "POST", "/api/connections", con)
	made := b.do("POST", "/api/runs", map[string]any{"template_id": id})
	d.conforms(t, "POST", "/api/runs", made)
	run := decode[engine.Run](t, made)
	done := b.createRun("done")
	b.runs.move(done.RunID, engine.PhaseNone, engine.StatusRunning, engine.StatusStopping, engine.StatusCompleted)
	b.store.measured(t, run.RunID)
	phase := engine.PhaseMeasurement
	live := b.createRun("live")
	b.runs.move(live.RunID, phase, engine.StatusRunning)
	b.runs.publish(&engine.LiveState{RunID: live.RunID, ResultID: live.RunID, Status: engine.StatusRunning, Phase: &phase,
		Timestamp: engine.At(time.Now()), Enrichment: engine.Enrichment{Status: engine.EnrichmentPending},
		Validity: engine.Validity{Verdict: engine.VerdictValid}, LatencyHistogram: &engine.HistogramData{Counts: []int64{1}}})
	for _, c := range []struct{ method, path, real string }{
		{"GET", "/api/templates", "/api/templates"},
		{"GET", "/api/templates/{id}", "/api/templates/" + id},
		{"GET", "/api/templates/{id}", "/api/templates/nope"},
		{"GET", "/api/connections", "/api/connections"},
		{"GET", "/api/plugins", "/api/plugins"},
		{"GET", "/api/plugins/{name}", "/api/plugins/mix"},
		{"GET", "/api/info", "/api/info"},
		{"GET", "/healthz", "/healthz"},
		{"GET", "/readyz", "/readyz"},
		{"GET", "/api/templates/schema", "/api/templates/schema"},
		{"GET", "/api/info", "/api/info?nope=1"},
		{"GET", "/api/openapi.json", "/api/openapi.json?a=%zz"},
		{"GET", "/api/connections", "/api/connections?a;b"},
		{"GET", "/api/plugins/{name}", "/api/plugins/nope"},
		{"GET", "/ws/runs/{id}", "/ws/runs/nope"},
		{"GET", "/api/auth/me", "/api/auth/me"},
		{"GET", "/api/auth/tokens", "/api/auth/tokens"},
		{"GET", "/api/runs", "/api/runs"},
		{"GET", "/api/runs", "/api/runs?limit=0"},
		{"GET", "/api/runs/{id}", "/api/runs/" + run.RunID},
		{"GET", "/api/runs/{id}", "/api/runs/" + done.RunID},
		{"GET", "/api/runs/{id}", "/api/runs/" + live.RunID},
		{"GET", "/api/runs/{id}/summary", "/api/runs/" + done.RunID + "/summary"},
		{"GET", "/api/runs/{id}/timeseries", "/api/runs/" + run.RunID + "/timeseries"},
		{"GET", "/api/runs/{id}/timeseries", "/api/runs/" + run.RunID + "/timeseries?worker_id=*"},
		{"GET", "/api/runs/{id}/logs", "/api/runs/" + run.RunID + "/logs"},
		{"GET", "/api/runs/{id}/executions", "/api/runs/" + run.RunID + "/executions"},
		{"POST", "/api/runs/{id}/start", "/api/runs/" + run.RunID + "/start"},
		{"POST", "/api/runs/{id}/stop", "/api/runs/" + run.RunID + "/stop"},
		{"POST", "/api/tests/{id}/stop", "/api/tests/" + run.RunID + "/stop"},
		{"DELETE", "/api/runs/{id}", "/api/runs/" + run.RunID},
	} {
		d.conforms(t, c.method, c.path, b.do(c.method, c.real, nil))
	}
	d.conforms(t, "POST", "/api/connections/test",
		b.do("POST", "/api/connections/test",
			map[string]any{"driver": "postgres", "dsn": "postgres://h/d", "connection_id": "nope"}))
	d.conforms(t, "POST", "/api/templates", b.do("POST", "/api/templates", "x", "Content-Type", "text/plain"))
	d.conforms(t, "POST", "/api/auth/tokens", b.do("POST", "/api/auth/tokens", map[string]any{"name": "x"}))
	d.conforms(t, "POST", "/api/templates/validate",
		b.do("POST", "/api/templates/validate", map[string]any{"source": yamlText}))
	d.conforms(t, "POST", "/api/templates/validate",
		b.do("POST", "/api/templates/validate", map[string]any{"source": "{}"}))
	d.conforms(t, "POST", "/api/runs", b.do("POST", "/api/runs", "{"))
	d.conforms(t, "POST", "/api/runs", b.do("POST", "/api/runs", `{"source":"`+strings.Repeat("x", api.MaxBody)+`"}`))
	if !json.Valid(made.body) {
		t.Error("not JSON")
	}
}

// TestEveryRefusalIsDescribed asks every address what it answers to a stranger, to an
// unknown id, to a query that cannot be read and to a parameter it does not know.
func TestEveryRefusalIsDescribed(t *testing.T) {
	t.Parallel()
	b := start(t)
	d := openDocument(t, b)
	open := []string{"GET /healthz", "GET /readyz", "POST /api/auth/signin", "GET /shared/{id}",
		"GET /api/auth/ways"}
	seen := 0
	for path, item := range d.doc["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			method = strings.ToUpper(method)
			real := strings.NewReplacer("{id}", "nope", "{name}", "nope").Replace(path)
			seen++
			if !slices.Contains(open, method+" "+path) {
				unknown := b.do(method, real, nil, "Authorization", "")
				unknown.problem(t, 401, engine.CodeUnauthorized)
				d.conforms(t, method, path, unknown)
			}
			d.conforms(t, method, path, b.do(method, real, nil))
			if strings.HasPrefix(path, "/api") || strings.HasPrefix(path, "/ws") {
				d.conforms(t, method, path, b.do(method, real+"?a=%zz", nil))
				d.conforms(t, method, path, b.do(method, real+"?unheard_of=1", nil))
			}
		}
	}
	if seen < 60 {
		t.Errorf("only %d operations were tried", seen)
	}
}

// TestSecondsBeyondAnyRunAreRefused: the store's numbers end before those of JSON.
func TestSecondsBeyondAnyRunAreRefused(t *testing.T) {
	t.Parallel()
	b := start(t)
	d := openDocument(t, b)
	run := b.createRun("short")
	for _, name := range []string{"from_seconds", "until_seconds"} {
		a := b.do("GET", "/api/runs/"+run.RunID+"/timeseries?"+name+"=1.7e308", nil)
		a.problem(t, 422, engine.CodeInvalid)
		d.conforms(t, "GET", "/api/runs/{id}/timeseries", a)
		b.do("GET", "/api/runs/"+run.RunID+"/timeseries?"+name+"=1000000000", nil).want(t, 200)
	}
}
