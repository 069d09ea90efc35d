package server_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/api"
)

// lines are those of the log, as the API lists them.
func (b *bench) lines(query string) []store.AuditEntry {
	b.t.Helper()
	return decode[api.AuditPage](b.t, b.do("GET", "/api/audit?limit=500&"+query, nil).want(b.t, 200)).Entries
}

// TestTheAuditLogHasWhoDidWhat makes changes, tests, downloads and sign-ins, allowed, refused and failed, and reads who
// did them from where, by which token.
func TestTheAuditLogHasWhoDidWhat(t *testing.T) {
	t.Parallel()
	o := own(t)
	c, tpl := o.fresh(0)
	o.as("ada", "POST", "/api/connections/"+c.ConnectionID+"/test", nil).want(t, 200)
	o.as("eve", "POST", "/api/connections/"+c.ConnectionID+"/test", nil).want(t, 403)
	o.as("eve", "PUT", "/api/connections/"+c.ConnectionID, "{}").want(t, 422)
	o.as("vic", "POST", "/api/runs", map[string]any{"template_id": tpl.TemplateID}).want(t, 403)
	run := decode[engine.Run](t, o.as("bob", "POST", "/api/runs", map[string]any{"template_id": tpl.TemplateID,
		"start": true}).want(t, 201))
	o.as("bob", "POST", "/api/preflight", map[string]any{"template_id": tpl.TemplateID}).want(t, 200)
	o.as("bob", "GET", "/api/runs", nil).want(t, 200)
	o.as("bob", "POST", "/api/templates/validate", map[string]any{"source": "x"}).want(t, 200)
	o.files.parts[run.RunID+"/part-0.parquet"] = []byte("PAR1")
	o.as("bob", "GET", "/api/runs/"+run.RunID+"/executions?format=csv", nil)
	o.signIn("ada", "not her password").want(t, 401)
	o.signIn("my secret password, typed in the wrong field", "x").want(t, 401)
	token := decode[map[string]any](t, o.as("ada", "POST", "/api/auth/tokens", map[string]any{"name": "ci"}).want(t, 201))
	o.do("DELETE", "/api/templates/"+tpl.TemplateID, nil, "Authorization", "Bearer "+token["secret"].(string)).want(t, 204)

	for name, want := range map[string]struct{ query, user, object, outcome, token string }{
		"connection.create": {"action=connection.create&user=ada", "ada", c.ConnectionID, "done", "browser"},
		"connection.test":   {"action=connection.test&user=ada", "ada", c.ConnectionID, "done", "browser"},
		"no right":          {"action=connection.test&user=eve", "eve", c.ConnectionID, "refused", "browser"},
		"wrong body":        {"action=connection.update&user=eve", "eve", c.ConnectionID, "failed", "browser"},
		"viewer":            {"action=run.create&user=vic", "vic", "", "refused", "browser"},
		"run.start":         {"action=run.start&object=" + run.RunID, "bob", run.RunID, "done", "browser"},
		"preflight":         {"action=preflight", "bob", "", "done", "browser"},
		"sign-in":           {"action=auth&user=ada&outcome=done", "ada", "ada", "done", ""},
		"refused sign-in":   {"action=auth.signin&outcome=refused&object=ada", "", "ada", "refused", ""},
		"by token":          {"action=template.delete", "ada", tpl.TemplateID, "done", "ci"},
	} {
		found := o.lines(want.query)
		if len(found) != 1 {
			t.Errorf("%s: %d lines: %+v", name, len(found), found)
			continue
		}
		if e := found[0]; e.UserName != want.user || e.Object != want.object || e.Outcome != want.outcome ||
			e.TokenName != want.token || e.Address != "127.0.0.1" || e.At.IsZero() ||
			(e.UserName != "" && o.people[e.UserName].UserID != e.UserID) {
			t.Errorf("%s: %+v, want %+v", name, e, want)
		}
	}
	if n := len(o.lines("user=bob")); n != 4 { // joining is two lines, and a run, and its start; and preflight
		for _, e := range o.lines("user=bob") {
			t.Logf("%+v", e)
		}
		if n < 5 || n > 6 {
			t.Errorf("bob has %d lines", n)
		}
	}
	text := o.do("GET", "/api/audit?limit=500", nil).want(t, 200).body
	for _, secret := range []string{"secret", password, "not her password", ":pw@", token["secret"].(string)} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
}

// TestSlashesAtTheEndHideNothing: an address that ends in slashes is served as the one without, and judged and kept in
// the log as it.
func TestSlashesAtTheEndHideNothing(t *testing.T) {
	t.Parallel()
	o := own(t)
	c, _ := o.fresh(0)
	at := "/api/connections/" + c.ConnectionID + "/test"
	for i, end := range []string{"", "/", "//", "////"} {
		o.as("eve", "POST", at+end, nil).want(t, 403)
		o.as("ada", "POST", at+end, nil).want(t, 200)
		for user, outcome := range map[string]string{"eve": "refused", "ada": "done"} {
			found := o.lines("action=connection.test&user=" + user)
			if len(found) != i+1 || found[0].Outcome != outcome || found[0].Object != c.ConnectionID {
				t.Fatalf("%q by %s: %+v", end, user, found)
			}
		}
	}
	o.do("GET", "//", nil).want(t, 200)
}

// TestTheAuditLogIsReadInPagesAndFiles pages through the log, filters and exports it; formulas are text there.
func TestTheAuditLogIsReadInPagesAndFiles(t *testing.T) {
	t.Parallel()
	o := own(t)
	for i := range 30 {
		if err := o.store.AppendAudit(t.Context(), store.AuditEntry{Action: "x.y", UserName: "=HYPERLINK(1)",
			Object: fmt.Sprintf("@cmd|%d", i), Detail: "a\"b,\u202egnirts"}); err != nil {
			t.Fatal(err)
		}
	}
	var ids []int64
	before := int64(0)
	for range 4 {
		p := decode[api.AuditPage](t, o.do("GET", fmt.Sprint("/api/audit?action=x&limit=8&before=", before), nil).
			want(t, 200))
		for _, e := range p.Entries {
			ids = append(ids, e.AuditID)
		}
		before = p.NextBefore
	}
	if len(ids) != 30 || before != 0 || !slices.IsSortedFunc(ids, func(a, b int64) int { return int(b - a) }) {
		t.Errorf("pages: %v, then %d", ids, before)
	}
	for _, bad := range []string{"outcome=maybe", "since=yesterday", "limit=0", "before=-1", "nothing=1",
		"user=" + strings.Repeat("x", 129)} {
		o.do("GET", "/api/audit?"+bad, nil).problem(t, 422, engine.CodeInvalid)
	}
	a := o.do("GET", "/api/audit/export?action=x", nil).want(t, 200)
	if !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment; filename=\"loadstone-audit-") ||
		a.Header.Get("Loadstone-Truncated") != "false" {
		t.Errorf("header %v", a.Header)
	}
	rows, err := csv.NewReader(strings.NewReader(string(a.body))).ReadAll()
	if err != nil || len(rows) != 31 || rows[1][2] != "'=HYPERLINK(1)" || rows[1][8] != "'@cmd|29" {
		t.Errorf("CSV: %d rows, %v, %v", len(rows), err, rows[1])
	}
	var list []store.AuditEntry
	a = o.do("GET", "/api/audit/export?action=x&format=json", nil).want(t, 200)
	if err := json.Unmarshal(a.body, &list); err != nil || len(list) != 30 {
		t.Errorf("JSON: %d, %v", len(list), err)
	}
	if got := o.lines("action=audit.export"); len(got) != 2 {
		t.Errorf("exports are noted as %+v", got)
	}
	for _, who := range []string{"ada", "vic"} {
		for _, path := range []string{"/api/audit", "/api/audit/export", "/api/audit/retention"} {
			o.as(who, "GET", path, nil).problem(t, 403, engine.CodeForbidden)
		}
		o.as(who, "PUT", "/api/audit/retention", map[string]any{"keep_days": 60}).problem(t, 403, engine.CodeForbidden)
	}
	for _, days := range []int{1, 29, -1} {
		p := o.do("PUT", "/api/audit/retention", map[string]any{"keep_days": days}).problem(t, 422, engine.CodeInvalid)
		if !strings.Contains(p.Errors[0].Field, "keep_days") {
			t.Errorf("%d days: %+v", days, p)
		}
	}
	o.do("PUT", "/api/audit/retention", map[string]any{"keep_days": 90, "was": 0}).want(t, 200)
	p := o.do("PUT", "/api/audit/retention", map[string]any{"keep_days": 0, "was": 0}).problem(t, 409, engine.CodeConflict)
	if p.Hint == "" || len(p.Errors) != 1 || p.Errors[0].Field != "was" || !strings.Contains(p.Detail, "for 90 days") {
		t.Errorf("who came second is told %+v", p)
	}
	if found := o.lines("action=audit.keep&outcome=done"); len(found) != 1 || found[0].Detail != "for ever → 90 days" {
		t.Errorf("the log has %+v", found)
	}
	if r := decode[api.AuditRetention](t, o.do("GET", "/api/audit/retention", nil).want(t, 200)); r.KeepDays != 90 {
		t.Errorf("kept for %d days", r.KeepDays)
	}
}

// TestAFloodOfRefusalsDoesNotFillTheLog asks for what it may not, a thousand times.
func TestAFloodOfRefusalsDoesNotFillTheLog(t *testing.T) {
	t.Parallel()
	o := own(t)
	for range 300 {
		o.as("vic", "POST", "/api/runs", "{}").want(t, 403)
	}
	if n := len(o.lines("user=vic&outcome=refused")); n < 50 || n > 70 {
		t.Errorf("300 refusals are %d lines", n)
	}
	o.as("ada", "POST", "/api/runs", "{}").want(t, 422)
	if n := len(o.lines("user=ada&outcome=failed")); n != 1 {
		t.Errorf("another user has %d lines", n)
	}
}
