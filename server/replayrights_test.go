package server_test

import (
	"net/http"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
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
