package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/matrix"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
)

// noRight is what everybody reads of a run whose user is locked out, deleted or a viewer now.
const noRight = "the user who started it has no right to it any more"

// TestWhatBeginsLaterIsJudgedThen starts a run and a matrix as bob, who may use ada's connection then, and asks whether
// they may begin after each thing that can come between.
func TestWhatBeginsLaterIsJudgedThen(t *testing.T) {
	t.Parallel()
	type between struct {
		o   owned
		c   store.Connection
		bob string
	}
	put := func(b between, more map[string]any) {
		in := map[string]any{"name": b.c.Name, "driver": "postgres", "dsn": b.c.DSN}
		for k, v := range more {
			in[k] = v
		}
		b.o.as("root", "PUT", "/api/connections/"+b.c.ConnectionID, in).want(t, http.StatusOK)
	}
	for name, c := range map[string]struct {
		happens func(b between)
		want    string // in the refusal, "" for none
	}{
		"nothing": {func(between) {}, ""},
		"locked out": {func(b between) {
			b.o.do("PATCH", "/api/users/"+b.bob, map[string]any{"disabled": true}).want(t, http.StatusOK)
		}, noRight},
		"deleted, and another invited by the name": {func(b between) {
			b.o.do("DELETE", "/api/users/"+b.bob, nil).want(t, http.StatusNoContent)
			b.o.join("bob", store.RoleAdmin)
		}, noRight},
		"a viewer now": {func(b between) {
			b.o.do("PATCH", "/api/users/"+b.bob, map[string]any{"role": "viewer"}).want(t, http.StatusOK)
		}, noRight},
		"restricted": {func(b between) {
			put(b, map[string]any{"access": map[string]any{"restricted": true}})
		}, "may not use its connection"},
		"production now": {func(b between) { put(b, map[string]any{"production": true}) }, "is production now"},
	} {
		t.Run(name, func(t *testing.T) {
			o := own(t)
			conn, tpl := o.fresh(1)
			b := between{o, conn, o.people["bob"].UserID}
			run := decode[engine.Run](t, o.as("bob", "POST", "/api/runs", map[string]any{"template_id": tpl.TemplateID,
				"start": true}).want(t, http.StatusCreated))
			prepared := decode[engine.Run](t, o.as("ada", "POST", "/api/runs",
				map[string]any{"template_id": tpl.TemplateID}).want(t, http.StatusCreated))
			o.as("bob", "POST", "/api/runs/"+prepared.RunID+"/start", nil).want(t, http.StatusOK)
			c.happens(b)
			for _, id := range []string{run.RunID, prepared.RunID} {
				err := auth.Authorizer{Store: o.store}.RecheckStart(t.Context(), id)
				if c.want == "" && err != nil || c.want != "" && (!engine.HasCode(err, engine.CodeForbidden) ||
					!strings.Contains(engine.AsError(err).Message, c.want)) {
					t.Errorf("it is judged as %v, want %q", err, c.want)
				}
				if err != nil && strings.Contains(engine.AsError(err).Message, "bob") {
					t.Errorf("what viewers read names a user: %v", err)
				}
			}
		})
	}
}

// TestWhatWasConfirmedBegins: a run against production whose name was typed, and one that nobody's request began.
func TestWhatWasConfirmedBegins(t *testing.T) {
	t.Parallel()
	o := own(t)
	c := decode[store.Connection](t, o.as("ada", "POST", "/api/connections", map[string]any{"name": "prod",
		"driver": "postgres", "dsn": restrictedDSN, "production": true}).want(t, http.StatusCreated))
	config := scenario("s")
	config["target"].(map[string]any)["connection"] = c.Name
	run := decode[engine.Run](t, o.as("ada", "POST", "/api/runs", map[string]any{"scenario": config, "start": true,
		"confirm_production": c.Name}).want(t, http.StatusCreated))
	judge := auth.Authorizer{Store: o.store}
	if err := judge.RecheckStart(t.Context(), run.RunID); err != nil {
		t.Errorf("confirmed: %v", err)
	}
	several := map[string]any{"name": "m", "workload": config["workload"], "matrix": map[string]any{
		"targets": []any{map[string]any{"label": "a", "connection": c.Name, "table_name": "t"},
			map[string]any{"label": "b", "connection": c.Name, "table_name": "u"}}}}
	m := decode[matrix.State](t, o.as("ada", "POST", "/api/matrices", map[string]any{"scenario": several, "start": true,
		"confirm_production": c.Name}).want(t, http.StatusCreated))
	g, err := o.store.StartGrant(t.Context(), "none", m.MatrixID)
	if err != nil || g.UserName != "ada" || len(g.Confirmed) != 1 || g.Confirmed[0] != c.ConnectionID {
		t.Errorf("the matrix was granted as %+v, %v", g, err)
	}
	quiet := engine.Run{RunID: "of-the-process", RunName: "r", CreatedBy: "cli", Scenario: run.Scenario}
	if err := o.store.CreateRun(t.Context(), quiet); err != nil {
		t.Fatal(err)
	}
	if err := judge.RecheckStart(t.Context(), quiet.RunID); err != nil {
		t.Errorf("of the process: %v", err)
	}
}

// TestWithoutAGrantWhoMadeItIsJudged: runs that waited when the server was upgraded have no grant.
func TestWithoutAGrantWhoMadeItIsJudged(t *testing.T) {
	t.Parallel()
	o := own(t)
	c, tpl := o.fresh(1)
	made := decode[engine.Run](t, o.as("bob", "POST", "/api/runs",
		map[string]any{"template_id": tpl.TemplateID}).want(t, http.StatusCreated))
	judge := auth.Authorizer{Store: o.store}
	still := func(id, want string) {
		t.Helper()
		err := judge.RecheckStart(t.Context(), id)
		if want == "" && err != nil || want != "" && (!engine.HasCode(err, engine.CodeForbidden) ||
			!strings.Contains(engine.AsError(err).Message, want)) {
			t.Errorf("%s is judged as %v, want %q", id, err, want)
		}
	}
	still(made.RunID, "")
	for by, want := range map[string]string{"": "who started it is not known", "serve": "",
		"nobody": noRight} {
		run := engine.Run{RunID: "made-by-" + by, RunName: "r", CreatedBy: by, Scenario: made.Scenario}
		if err := o.store.CreateRun(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		still(run.RunID, want)
	}
	o.as("root", "PUT", "/api/connections/"+c.ConnectionID, map[string]any{"name": c.Name, "driver": "postgres",
		"dsn": c.DSN, "production": true}).want(t, http.StatusOK)
	still(made.RunID, "is production now")
	o.do("PATCH", "/api/users/"+o.people["bob"].UserID, map[string]any{"disabled": true}).want(t, http.StatusOK)
	still(made.RunID, noRight)
	// Another of the name has neither the run nor the links of who was deleted.
	o.do("DELETE", "/api/users/"+o.people["bob"].UserID, nil).want(t, http.StatusNoContent)
	gone := o.people["bob"].UserID
	another, _ := o.join("bob", store.RoleAdmin)
	still(made.RunID, noRight)
	if err := judge.RecheckShare(t.Context(), store.Share{CreatedBy: "bob", CreatedByID: gone,
		RunID: made.RunID}); !engine.HasCode(err, engine.CodeForbidden) {
		t.Errorf("a link of another bob's is judged as %v", err)
	}
	if err := judge.RecheckShare(t.Context(), store.Share{CreatedBy: "bob", CreatedByID: another.UserID,
		RunID: made.RunID}); err != nil {
		t.Errorf("a link of bob's is judged as %v", err)
	}
}
