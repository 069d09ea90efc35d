package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	used "github.com/loadstone-db/loadstone/server/api"
)

// TestWhatUsesAConnection names its templates and its newest run, and when the database last answered.
func TestWhatUsesAConnection(t *testing.T) {
	t.Parallel()
	b := start(t)
	save := func(name string) store.Connection {
		return decode[store.Connection](t, b.do("POST", "/api/connections", map[string]any{"name": name,
			"driver": "postgres", "dsn": "postgres://u:pw@db.example/x"}).want(t, 201))
	}
	c, other := save("shop"), save("shop 2")
	use := func(id string) used.ConnectionUse {
		t.Helper()
		return decode[used.ConnectionUse](t, b.do("GET", "/api/connections/"+id+"/use", nil).want(t, 200))
	}
	if u := use(c.ConnectionID); u.Templates == nil || len(u.Templates) != 0 || u.Runs != 0 || u.LastRun != nil ||
		u.Worked != nil {
		t.Fatalf("nothing uses it yet: %+v", u)
	}
	config := scenario("lookups")
	config["target"] = map[string]any{"connection": "shop", "table_name": "orders"}
	tpl := decode[store.Template](t, b.do("POST", "/api/templates", map[string]any{"config": config}).want(t, 201))
	begin := func() engine.Run {
		return decode[engine.Run](t, b.do("POST", "/api/runs", map[string]any{"template_id": tpl.TemplateID}).want(t, 201))
	}
	_, second := begin(), begin()
	u := use(c.ConnectionID)
	if len(u.Templates) != 1 || u.Templates[0].TemplateID != tpl.TemplateID || u.Templates[0].Name != "lookups" ||
		u.Runs != 2 || u.LastRun == nil || u.LastRun.RunID != second.RunID || u.Worked != nil {
		t.Errorf("%+v", u)
	}
	b.do("POST", "/api/connections/"+c.ConnectionID+"/test", nil).want(t, 200)
	if left := time.Until(b.runs.checkUntil); left < 2*time.Minute {
		t.Errorf("a test of a connection has %v, and its hosts two minutes", left)
	}
	if u = use(c.ConnectionID); u.Worked == nil || u.Worked.By != "test" || u.Worked.ChangedSince ||
		time.Since(u.Worked.At.Time) > time.Minute {
		t.Errorf("after a test: %+v", u.Worked)
	}
	b.do("PUT", "/api/connections/"+c.ConnectionID, map[string]any{"name": "shop", "driver": "postgres",
		"dsn": "postgres://u:***@db.example/x", "description": "another"}).want(t, 200)
	if u = use(c.ConnectionID); u.Worked == nil || !u.Worked.ChangedSince {
		t.Errorf("after a change: %+v", u.Worked)
	}
	if u = use(other.ConnectionID); len(u.Templates) != 0 || u.Runs != 0 || u.Worked != nil {
		t.Errorf("another of a longer name: %+v", u)
	}
	b.do("GET", "/api/connections/nothing/use", nil).want(t, http.StatusNotFound)
}
