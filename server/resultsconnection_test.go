package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/store"
)

// TestTheResultsConnectionIsAdmins: where servers take the results of all users is not decided by who owns the
// connection, nor by who saves another of its name.
func TestTheResultsConnectionIsAdmins(t *testing.T) {
	t.Parallel()
	o := own(t)
	lake := decode[store.Connection](t, o.as("ada", "POST", "/api/connections", map[string]any{"name": "lake",
		"driver": "postgres", "dsn": restrictedDSN}).want(t, http.StatusCreated))
	other := decode[store.Connection](t, o.as("ada", "POST", "/api/connections", map[string]any{"name": "other",
		"driver": "postgres", "dsn": restrictedDSN}).want(t, http.StatusCreated))
	keep := func(r store.ResultsConnection) {
		t.Helper()
		if err := o.store.KeepResultsConnection(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	with := func(name, dsn string, more ...any) map[string]any {
		in := map[string]any{"name": name, "driver": "postgres", "dsn": dsn}
		for i := 0; i < len(more); i += 2 {
			in[more[i].(string)] = more[i+1]
		}
		return in
	}
	const elsewhere, hidden = "postgres://u:pw@elsewhere.example/d", "postgres://u:***@db.example/d"
	refused := func(what, field string, got answer) {
		t.Helper()
		text := string(got.body)
		if got.StatusCode != http.StatusForbidden || !strings.Contains(text, "--results-connection") ||
			!strings.Contains(text, `"hint"`) || field != "" && !strings.Contains(text, `"`+field+`"`) {
			t.Errorf("%s: %d %s", what, got.StatusCode, text)
		}
	}
	at := func(c store.Connection) string { return "/api/connections/" + c.ConnectionID }
	for name, kept := range map[string]store.ResultsConnection{
		"known": {Name: "lake", ConnectionID: lake.ConnectionID}, "looked for": {Name: "lake"}} {
		keep(kept)
		refused(name+": another host", "dsn", o.as("ada", "PUT", at(lake), with("lake", elsewhere)))
		refused(name+": another database", "dsn", o.as("ada", "PUT", at(lake), with("lake", "postgres://u:***@db.example/e")))
		refused(name+": another parameter", "dsn", o.as("ada", "PUT", at(lake), with("lake", hidden+"?application_name=x")))
		refused(name+": another driver", "driver", o.as("ada", "PUT", at(lake),
			map[string]any{"name": "lake", "driver": "snowflake", "dsn": "snowflake://u:pw@a.example/d"}))
		refused(name+": another name", "name", o.as("ada", "PUT", at(lake), with("pond", hidden)))
		refused(name+": deleted", "", o.as("ada", "DELETE", at(lake), nil))
		refused(name+": its name", "name", o.as("bob", "POST", "/api/connections", with("lake", elsewhere)))
		refused(name+": its name with spaces", "name", o.as("bob", "POST", "/api/connections", with(" lake ", elsewhere)))
		refused(name+": renamed to it", "name", o.as("ada", "PUT", at(other), with("lake", elsewhere)))
		o.as("ada", "PUT", at(lake), with("lake", hidden, "description", name)).want(t, http.StatusOK)
		o.as("ada", "PUT", at(other), with("other", elsewhere)).want(t, http.StatusOK)
	}
	// An admin renames it: it is the results connection all the same, and its name is nobody's.
	keep(store.ResultsConnection{Name: "lake", ConnectionID: lake.ConnectionID})
	o.as("root", "PUT", at(lake), with("pond", "postgres://u:pw@new.example/d")).want(t, http.StatusOK)
	refused("renamed by an admin", "dsn", o.as("ada", "PUT", at(lake), with("pond", elsewhere)))
	refused("the name that is free", "name", o.as("bob", "POST", "/api/connections", with("lake", elsewhere)))
	o.as("root", "POST", "/api/connections", with("lake", elsewhere)).want(t, http.StatusCreated)
	uses := func(c store.Connection) bool {
		t.Helper()
		return decode[struct{ Results bool }](t, o.as("vic", "GET", at(c)+"/use", nil).want(t, http.StatusOK)).Results
	}
	if !uses(lake) || uses(other) {
		t.Error("what uses the results connection is not said, or of another")
	}
	// Servers take results nowhere any more.
	keep(store.ResultsConnection{})
	o.as("ada", "PUT", at(lake), with("pond", elsewhere)).want(t, http.StatusOK)
	o.as("ada", "DELETE", at(lake), nil).want(t, http.StatusNoContent)
}
