package server_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/dryrun"
	"github.com/loadstone-db/loadstone/server/auth"
)

// trials remembers what it was asked.
type trials struct{ asked []string }

func (b *trials) Try(_ context.Context, sc engine.Scenario, statement string) (dryrun.StatementTrial, error) {
	b.asked = append(b.asked, sc.Name+"/"+statement)
	return dryrun.StatementTrial{OK: true, Statement: statement}, nil
}

func (b *trials) Samples(_ context.Context, binds []json.RawMessage) ([]dryrun.GeneratorSample, error) {
	b.asked = append(b.asked, string(binds[0]))
	return []dryrun.GeneratorSample{{Name: "x", Values: []*string{}}}, nil
}

func (b *trials) Catalog(_ context.Context, ref engine.ConnectionRef) (dryrun.RelationCatalog, error) {
	b.asked = append(b.asked, ref.Name)
	return dryrun.RelationCatalog{Relations: []dryrun.CatalogRelation{}}, nil
}

// TestStatementsAreTriedByThoseWhoMay: a reader may not, production has to be confirmed, unknown fields are refused.
func TestStatementsAreTriedByThoseWhoMay(t *testing.T) {
	t.Parallel()
	b := start(t)
	reader, _ := b.mint(auth.ScopeRead)
	for _, name := range []string{"try", "samples", "catalog"} {
		b.do("POST", "/api/statements/"+name, "{}", "Authorization", "Bearer "+reader).problem(t, 403, engine.CodeForbidden)
	}
	b.do("POST", "/api/connections", map[string]any{"name": "live", "driver": "postgres", "production": true,
		"dsn": "postgres://u:p@h:5432/d"}).want(t, 201)
	live := scenario("x")
	live["target"].(map[string]any)["connection"] = "live"
	try := map[string]any{"scenario": live, "statement": "s"}
	p := b.do("POST", "/api/statements/try", try).problem(t, 422, engine.CodeInvalid)
	if len(p.Errors) != 1 || p.Errors[0].Field != "confirm_production" || len(b.trials.asked) > 0 {
		t.Errorf("production without consent: %+v, %v", p, b.trials.asked)
	}
	try["confirm_production"] = "live"
	b.do("POST", "/api/statements/try", try).want(t, 200)
	b.do("POST", "/api/statements/samples", map[string]any{"binds": []any{map[string]any{"name": "x"}}}).want(t, 200)
	b.do("POST", "/api/statements/catalog", map[string]any{"connection": "live"}).want(t, 200)
	if want := []string{"x/s", `{"name":"x"}`, "live"}; len(b.trials.asked) != 3 || b.trials.asked[0] != want[0] ||
		b.trials.asked[1] != want[1] || b.trials.asked[2] != want[2] {
		t.Errorf("asked %q, expected %q", b.trials.asked, want)
	}
	b.do("POST", "/api/statements/try", map[string]any{"scenario": scenario("x"), "execute": true}).problem(t, 422,
		engine.CodeInvalid)
}
