package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// TestRetention: rules are previewed, saved over what was edited, and refused by their field.
func TestRetention(t *testing.T) {
	t.Parallel()
	b := start(t)
	ctx := t.Context()
	for _, id := range []string{"r1", "r2"} {
		if err := b.store.CreateRun(ctx, engine.Run{RunID: id, ResultID: id, RunName: "<b>" + id}); err != nil {
			t.Fatal(err)
		}
		none := engine.PhaseNone
		_, err := b.store.Transition(ctx, store.Transition{RunID: id, To: engine.StatusCancelled, Phase: &none})
		if err != nil {
			t.Fatal(err)
		}
	}
	read := decode[map[string]any](t, b.do("GET", "/api/v1/retention", nil).want(t, http.StatusOK))
	if read["on"] != false || read["version"] != float64(0) || read["last_pass"] != nil ||
		read["over_budget_bytes"] != float64(0) || read["over_budget_since"] != nil {
		t.Errorf("before anything was decided: %v", read)
	}
	rules := map[string]any{"on": false, "keep_runs_days": 30, "keep_executions_days": 7, "executions_budget_gb": 0.5,
		"keep_tags": []string{"*"}}
	preview := decode[map[string]any](t, b.do("POST", "/api/v1/retention/preview", rules).want(t, http.StatusOK))
	if preview["deleted_runs"] != float64(0) || preview["ended_runs"] != float64(2) {
		t.Errorf("preview: %v", preview)
	}
	rules["on"], rules["version"] = true, 0
	saved := decode[map[string]any](t, b.do("PUT", "/api/v1/retention", rules).want(t, http.StatusOK))
	if saved["version"] != float64(1) || saved["on"] != true || saved["keep_runs_days"] != float64(30) {
		t.Errorf("saved: %v", saved)
	}
	b.do("PUT", "/api/v1/retention", rules).problem(t, http.StatusConflict, engine.CodeConflict)
	rules["version"], rules["keep_executions_days"] = 1, 31
	b.do("PUT", "/api/v1/retention", rules).problem(t, http.StatusUnprocessableEntity, engine.CodeInvalid)
	rules["keep_executions_days"], rules["surprise"] = 7, true
	b.do("PUT", "/api/v1/retention", rules).problem(t, http.StatusUnprocessableEntity, engine.CodeInvalid)
	lines, err := b.store.ListAudit(ctx, store.AuditFilter{Action: "retention"})
	if err != nil || len(lines) != 5 || lines[3].Action != "retention.save" || lines[3].Outcome != "done" ||
		!strings.Contains(lines[3].Detail, "runs 30 days") {
		t.Errorf("the audit log: %+v, %v", lines, err)
	}
}

// TestDeletedExecutionsAreTold wherever somebody asks for them.
func TestDeletedExecutionsAreTold(t *testing.T) {
	t.Parallel()
	b := start(t)
	ctx := t.Context()
	if err := b.store.CreateRun(ctx, engine.Run{RunID: "r1", ResultID: "r1", RunName: "r"}); err != nil {
		t.Fatal(err)
	}
	none := engine.PhaseNone
	_, err := b.store.Transition(ctx, store.Transition{RunID: "r1", To: engine.StatusCancelled, Phase: &none})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.store.Expire(ctx, store.Expiry{RunID: "r1", By: "retention"}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/runs/r1/executions", "/api/runs/r1/executions?format=csv",
		"/api/v1/runs/r1/executions", "/api/v1/runs/r1/failures"} {
		p := b.do("GET", path, nil).problem(t, http.StatusNotFound, engine.CodeNotFound)
		if want := "by retention"; !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %q, want %q", path, p.Detail, want)
		}
	}
}
