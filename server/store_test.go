package server_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// stored creates runs in the real store; nothing of them ever runs.
type stored struct {
	*orchestra
	*postgres.Store
}

func (s stored) Create(ctx context.Context, sc engine.Scenario, by engine.Actor) (engine.Run, error) {
	id := s.name()
	run := engine.Run{
		RunID:           id,
		ResultID:        id,
		TemplateID:      sc.TemplateID,
		RunName:         sc.Name,
		Scenario:        sc,
		Status:          engine.StatusPrepared,
		Phase:           engine.PhasePreparing,
		WorkersExpected: 1,
		CreatedBy:       by.Name,
		CreatedByID:     by.ID,
	}
	if err := s.CreateRun(ctx, run); err != nil {
		return run, err
	}
	return s.Run(ctx, id)
}

func (s stored) Delete(ctx context.Context, id, _ string) error { return s.DeleteRun(ctx, id) }

func (s stored) Detail(ctx context.Context, id string) (engine.RunDetail, error) {
	run, err := s.Run(ctx, id)
	return engine.RunDetail{Run: run}, err
}

// TestOnTheRealStore repeats on Postgres what depends on how the store answers.
func TestOnTheRealStore(t *testing.T) {
	t.Parallel()
	db, _ := postgrestest.Open(t, slices.Collect(maps.Values(drivers()))...)
	b := start(t, func(o *server.Options) {
		o.Runs, o.Store = stored{o.Runs.(*orchestra), db}, db
	})
	b.do("GET", "/readyz", nil, "Authorization", "").want(t, 200)
	cookie := b.session()
	b.do("GET", "/api/auth/me", nil, "Authorization", "", "Cookie", cookie.Name+"="+cookie.Value).want(t, 200)

	// Templates: comments stay, secrets do not, versions guard, names are unique.
	const secret = "s3cr3t-pass"
	text := "# why we do this\n" + strings.Replace(yamlText, "connection: playground",
		`connection: {driver: postgres, dsn: "postgres://u:`+secret+`@h:5432/d"}`, 1)
	a := b.do("POST", "/api/templates", map[string]any{"source": text}).want(t, 201)
	tpl := decode[store.Template](t, a)
	if strings.Contains(string(a.body), secret) || !strings.Contains(tpl.Source, "# why we do this") ||
		!strings.Contains(tpl.Source, "u:***@h") {
		t.Errorf("template %s", a.body)
	}
	if p := b.do("POST", "/api/templates", map[string]any{"source": text}).problem(t, 409,
		engine.CodeConflict); len(p.Errors) != 1 || p.Errors[0].Field != "name" {
		t.Errorf("a name that is taken: %+v", p)
	}
	tpl = decode[store.Template](t,
		b.do("PUT", "/api/templates/"+tpl.TemplateID, map[string]any{"source": tpl.Source, "version": 1}).want(t, 200))
	b.do("PUT", "/api/templates/"+tpl.TemplateID, map[string]any{"source": tpl.Source, "version": 1}).problem(t, 409,
		engine.CodeConflict)

	// A run keeps the secret through every way of making it from the template.
	for _, in := range []map[string]any{{"template_id": tpl.TemplateID},
		{"template_name": tpl.Name, "set": map[string]any{"workload.duration_seconds": 9}}, {"source": text}} {
		a := b.do("POST", "/api/runs", in).want(t, 201)
		run := decode[engine.Run](t, a)
		if strings.Contains(string(a.body), secret) || strings.Contains(string(a.body), "dsn_sealed") {
			t.Errorf("run %s", a.body)
		}
		kept, err := db.Run(t.Context(), run.RunID)
		if err != nil {
			t.Fatal(err)
		}
		if _, got, err := db.OpenDSN(t.Context(), kept.Scenario.Target.Connection); err != nil ||
			got.Reveal() != "postgres://u:"+secret+"@h:5432/d" {
			t.Errorf("%v: the run would connect with %q, %v", in, got, err)
		}
		b.do("GET", "/api/runs/"+run.RunID, nil).want(t, 200)
		b.do("GET", "/api/runs/"+run.RunID+"/logs", nil).want(t, 200)
		b.do("GET", "/api/runs/"+run.RunID+"/timeseries", nil).want(t, 200)
		b.do("GET", "/api/runs/"+run.RunID+"/timeseries?worker_id=*", nil).want(t, 200)
		b.do("GET", "/api/runs/"+run.RunID+"/executions", nil).problem(t, 404, engine.CodeNotFound)
	}
	d := openDocument(t, b)
	list := b.do("GET", "/api/runs?limit=2&tag=ticket:PERF-1&status=PREPARED&search=LOOK", nil).want(t, 200)
	d.conforms(t, "GET", "/api/runs", list)
	page := decode[store.RunList](t, list)
	if len(page.Runs) != 2 || page.NextCursor == "" || page.Total != 3 {
		t.Fatalf("page %+v", page)
	}
	rest := decode[store.RunList](t,
		b.do("GET", "/api/runs?limit=2&tag=ticket:PERF-1&cursor="+page.NextCursor, nil).want(t, 200))
	if len(rest.Runs) != 1 {
		t.Errorf("rest %+v", rest)
	}
	if a := b.do("GET", "/api/runs?cursor=garbage", nil); a.StatusCode >= 500 || a.StatusCode < 400 {
		t.Errorf("a made-up cursor: %d %s", a.StatusCode, a.body)
	}
	b.do("DELETE", "/api/runs/"+rest.Runs[0].RunID, nil).want(t, 204)
	b.do("GET", "/api/runs/"+rest.Runs[0].RunID, nil).problem(t, 404, engine.CodeNotFound)

	// Connections: the password stays, is not shown, and goes nowhere else.
	made := b.do("POST", "/api/connections",
		map[string]any{"name": "prod", "driver": "postgres", "dsn": "postgres://u:" + secret + "@h:5432/d"}).want(t, 201)
	d.conforms(t, "POST", "/api/connections", made)
	con := decode[store.Connection](t, made)
	b.do("PUT", "/api/connections/"+con.ConnectionID,
		map[string]any{"name": "prod", "driver": "postgres", "dsn": "postgres://u:***@h:5432/other"}).want(t, 200)
	if _, got, err := db.OpenDSN(t.Context(), engine.ConnectionRef{Name: "prod"}); err != nil ||
		got.Reveal() != "postgres://u:"+secret+"@h:5432/other" {
		t.Errorf("kept %q, %v", got, err)
	}
	b.do("PUT", "/api/connections/"+con.ConnectionID,
		map[string]any{"name": "prod", "driver": "postgres", "dsn": "postgres://u:***@evil/d"}).problem(t, 422,
		engine.CodeInvalid)
	b.do("POST", "/api/connections", map[string]any{"name": "prod", "driver": "postgres", "dsn": "postgres://h/d"}).
		problem(t, 409, engine.CodeConflict)
	b.do("POST", "/api/templates", map[string]any{"config": func() any {
		s := scenario("uses prod")
		s["target"].(map[string]any)["connection"] = "prod"
		return s
	}()}).want(t, 201)
	b.do("DELETE", "/api/connections/"+con.ConnectionID, nil).problem(t, 409, engine.CodeConflict)

	token := decode[map[string]any](t, b.do("POST", "/api/auth/tokens", map[string]any{"name": "ci"}).want(t, 201))
	b.do("DELETE", "/api/auth/tokens/"+token["token_id"].(string), nil).want(t, 204)
	b.do("DELETE", "/api/auth/tokens/"+token["token_id"].(string), nil).problem(t, 404, engine.CodeNotFound)
	b.do("DELETE", "/api/templates/nope", nil).problem(t, 404, engine.CodeNotFound)
	entries, err := db.ListAudit(t.Context(), store.AuditFilter{Limit: 100})
	if err != nil || len(entries) < 10 {
		t.Errorf("%d audit entries, %v", len(entries), err)
	}

	// Every id that HTTP can carry is answered with less than a 500.
	for _, id := range []string{"%00", "%ff", "'", "..", "00000000-0000-0000-0000-000000000000", strings.Repeat("9", 120),
		"%F0%9F%92%A9"} {
		for _, path := range []string{"/api/runs/", "/api/templates/", "/api/connections/", "/api/plugins/"} {
			if a := b.do("GET", path+id, nil); a.StatusCode >= 500 {
				t.Errorf("GET %s%s: %d %s", path, id, a.StatusCode, a.body)
			}
		}
	}
}
