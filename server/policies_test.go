package server_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/results/cost"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
)

// TestEachKindOfWorkIsJudged: what a user has begun, as docs/operate/security.md tells of it, and nothing that a flag names:
// exports, metrics and annotations of the house are no user's.
func TestEachKindOfWorkIsJudged(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/operate/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n| what goes on | ")
	table, _, ends := strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if !found || !ends || len(rows) < 3 {
		t.Fatalf("docs/operate/security.md has no table of what goes on: %q", table)
	}
	judged := start(t, func(o *server.Options) { o.Tables = noTables{} }).srv.Judged()
	for _, row := range rows[2:] {
		what, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		kind, known := "", false
		for begins, of := range map[string]string{
			"live runs":                         "auth.RunsWork",
			"continuous queries":                "auth.QueriesWork",
			"logins of programs":                "auth.LoginsWork",
			"the enrichment of a run":           "auth.EnrichmentsWork",
			"refreshes of a":                    "auth.TablesWork",
			"notifications":                     "auth.HooksWork",
			"schedules":                         "auth.SchedulesWork",
			"sockets, event streams, downloads": "", // each is judged by who serves it
			"requests by a token or session":    "",
			"nodes that would join":             "",
		} {
			if strings.HasPrefix(what, begins) {
				kind, known = of, true
			}
		}
		if !known {
			t.Errorf("docs/operate/security.md tells of work that this test does not know: %s", what)
			continue
		}
		if kind == "" {
			continue
		}
		if n := slices.Index(judged, kind); n >= 0 {
			judged = slices.Delete(judged, n, n+1)
		} else {
			t.Errorf("docs/operate/security.md says that it is judged, and no server does: %s", what)
		}
	}
	if len(judged) > 0 {
		t.Errorf("docs/operate/security.md does not tell of %q", judged)
	}
}

// TestWhatAdminsDecideOutlivesThem: retention and prices are as an admin has left them who is locked out and then
// deleted, and another admin changes them. The addresses of nodes refer to no user.
func TestWhatAdminsDecideOutlivesThem(t *testing.T) {
	t.Parallel()
	o := own(t)
	_, hers := o.join("lea", store.RoleAdmin)
	o.sessions["lea"] = hers
	left := o.people["root"]
	rules := map[string]any{"on": true, "keep_runs_days": 30, "keep_executions_days": 7, "executions_budget_gb": 0,
		"keep_tags": []string{"*"}, "version": 0}
	prices := func(version int, price string) map[string]any {
		return map[string]any{"version": version,
			"text": strings.Replace(string(cost.Embedded()), "credit_price: 3.00", "credit_price: "+price, 1)}
	}
	const retention, list = "/api/v1/retention", "/api/v1/prices"
	o.as("root", "PUT", retention, rules).want(t, http.StatusOK)
	o.as("root", "PUT", list, prices(0, "2.25")).want(t, http.StatusOK)
	as := func(want string) {
		t.Helper()
		for path, has := range map[string]string{retention: `"keep_runs_days":30`, list: `"credit_price":2.25`} {
			if got := string(o.as("lea", "GET", path, nil).want(t, http.StatusOK).body); !strings.Contains(got, has) {
				t.Errorf("%s, %s is %s", want, path, got)
			}
		}
	}
	o.do("PATCH", "/api/users/"+left.UserID, map[string]any{"disabled": true}).want(t, http.StatusOK)
	as("locked out")
	o.do("DELETE", "/api/users/"+left.UserID, nil).want(t, http.StatusNoContent)
	as("deleted")
	rules["version"], rules["keep_runs_days"] = 1, 31
	o.as("lea", "PUT", retention, rules).want(t, http.StatusOK)
	o.as("lea", "PUT", list, prices(1, "2.50")).want(t, http.StatusOK)
}
