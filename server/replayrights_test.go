package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// TestAReplayIsJudgedAsItsRun: the values of a run are made again for who may use its template and its connection, and
// for nobody else, through whatever the replay is started by.
func TestAReplayIsJudgedAsItsRun(t *testing.T) {
	t.Parallel()
	o := own(t)
	_, tpl := o.fresh(1)
	run := decode[engine.Run](t, o.as("ada", "POST", "/api/runs", map[string]any{"template_id": tpl.TemplateID}).
		want(t, http.StatusCreated))
	replay := func(id string) map[string]any {
		config := scenario("replay " + id)
		workload, _ := config["workload"].(map[string]any)
		workload["feed"], workload["plugin"], workload["binds"] = map[string]any{"run": id}, "replay", "plain"
		return config
	}
	for who, want := range map[string]int{"ada": http.StatusCreated, "bob": http.StatusCreated, "root": http.StatusCreated,
		"eve": http.StatusForbidden} {
		o.as(who, "POST", "/api/runs", map[string]any{"scenario": replay(run.RunID)}).want(t, want)
	}
	// A template of eve's own is no way around, nor a matrix, nor what was prepared by another.
	saved := decode[map[string]any](t, o.as("eve", "POST", "/api/templates", map[string]any{"config": replay(run.RunID)}).
		want(t, http.StatusCreated))
	several := replay(run.RunID)
	several["matrix"] = map[string]any{"targets": []any{
		map[string]any{"label": "a", "connection": restrictedDSNRef(), "adapter": "postgres", "table_name": "orders"},
		map[string]any{"label": "b", "connection": restrictedDSNRef(), "adapter": "postgres", "table_name": "orders"}}}
	delete(several, "target")
	prepared := decode[engine.Run](t, o.as("ada", "POST", "/api/runs", map[string]any{"scenario": replay(run.RunID)}).
		want(t, http.StatusCreated))
	for path, body := range map[string]map[string]any{
		"/api/runs": {"template_id": saved["template_id"]},
		"/api/tests/from-template/" + saved["template_id"].(string): {},
		"/api/matrices":                             {"scenario": several},
		"/api/preflight":                            {"scenario": replay(run.RunID)},
		"/api/statements/try":                       {"scenario": replay(run.RunID)},
		"/api/runs/" + prepared.RunID + "/start":    {},
		"/api/v1/runs/" + prepared.RunID + "/binds": {},
	} {
		if got := o.as("eve", "POST", path, body); got.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.body)
		}
	}
}

func restrictedDSNRef() map[string]any {
	return map[string]any{"driver": "postgres", "dsn": restrictedDSN}
}

// TestWhatIsGoneOpensNoRun: with the connection or the template of a run goes who may use it. Then the run is for who
// made it, and for admins: nobody else replays it, reads its values, shares or deletes it; nor does another of the
// maker's name, or who has a connection of the name.
func TestWhatIsGoneOpensNoRun(t *testing.T) {
	t.Parallel()
	type kept struct {
		o   owned
		c   store.Connection
		tpl store.Template
	}
	remove := func(k kept, path string) { k.o.as("ada", "DELETE", path, nil).want(t, http.StatusNoContent) }
	open := func(k kept) {
		k.o.as("ada", "PUT", "/api/connections/"+k.c.ConnectionID, map[string]any{"name": k.c.Name, "driver": "postgres",
			"dsn": k.c.DSN, "access": map[string]any{"restricted": false}}).want(t, http.StatusOK)
	}
	for name, happens := range map[string]func(kept){
		"a deleted connection": func(k kept) {
			remove(k, "/api/templates/"+k.tpl.TemplateID)
			remove(k, "/api/connections/"+k.c.ConnectionID)
			k.o.as("eve", "POST", "/api/connections", map[string]any{"name": k.c.Name, "driver": "postgres",
				"dsn": restrictedDSN}).want(t, http.StatusCreated)
		},
		"a deleted template": func(k kept) {
			remove(k, "/api/templates/"+k.tpl.TemplateID)
			open(k)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := own(t)
			c, tpl := o.fresh(1)
			run := decode[engine.Run](t, o.as("ada", "POST", "/api/runs", map[string]any{"template_id": tpl.TemplateID,
				"start": true}).want(t, http.StatusCreated))
			config := scenario("no template")
			config["target"].(map[string]any)["connection"] = c.Name
			plain := decode[engine.Run](t, o.as("ada", "POST", "/api/runs", map[string]any{"scenario": config, "start": true}).
				want(t, http.StatusCreated))
			ids := []string{run.RunID, plain.RunID}
			for _, id := range ids {
				o.runs.move(id, engine.PhaseMeasurement, engine.StatusStopping)
				o.runs.move(id, engine.PhaseNone, engine.StatusCompleted)
			}
			happens(kept{o, c, tpl})
			if name == "a deleted template" {
				ids = ids[:1] // the other had none
			}
			replay := func(who, id string) int {
				config := scenario("replay " + id)
				workload, _ := config["workload"].(map[string]any)
				workload["feed"], workload["plugin"], workload["binds"] = map[string]any{"run": id}, "replay", "plain"
				return o.as(who, "POST", "/api/runs", map[string]any{"scenario": config}).StatusCode
			}
			judged := func(who string, replayed, other int) {
				t.Helper()
				for _, id := range ids {
					if got := replay(who, id); got != replayed {
						t.Errorf("%s replays: %d, want %d", who, got, replayed)
					}
					for _, request := range []string{"POST /api/v1/runs/" + id + "/binds", "POST /api/runs/" + id + "/shares",
						"DELETE /api/runs/" + id} {
						method, path, _ := strings.Cut(request, " ")
						if other == 0 && method == "DELETE" {
							continue
						}
						if got := o.as(who, method, path, "{}").StatusCode; (got == http.StatusForbidden) != (other != 0) {
							t.Errorf("%s: %s gives %d", who, request, got)
						}
					}
				}
			}
			judged("bob", http.StatusForbidden, http.StatusForbidden)
			judged("eve", http.StatusForbidden, http.StatusForbidden)
			judged("ada", http.StatusCreated, 0)
			judged("root", http.StatusCreated, 0)
			o.do("DELETE", "/api/users/"+o.people["ada"].UserID, nil).want(t, http.StatusNoContent)
			_, o.sessions["ada"] = o.join("ada", store.RoleOperator)
			judged("ada", http.StatusForbidden, http.StatusForbidden)
		})
	}
}
