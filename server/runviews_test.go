package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/api"
)

const viewsPath = "/api/v1/run-views"

// TestViewsOfRuns: each keeps its own, a viewer too; an operator shows one to everybody, who see it and do not change
// it; two tabs; a user that is deleted; one view more than may be.
func TestViewsOfRuns(t *testing.T) {
	t.Parallel()
	o := own(t)
	keep := func(who, name, query string) answer {
		return o.as(who, "POST", viewsPath, map[string]any{"name": name, "query": query})
	}
	list := func(who string) (names []string) {
		l := decode[api.RunViewList](t, o.as(who, "GET", viewsPath, nil).want(t, http.StatusOK))
		if l.Most != store.MaxRunViews {
			t.Errorf("most %d", l.Most)
		}
		for _, v := range l.Views {
			names = append(names, fmt.Sprintf("%s: %s", v.Owner, v.Name))
		}
		return names
	}
	sees := func(who string, want ...string) {
		t.Helper()
		if got := list(who); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s sees %q, want %q", who, got, want)
		}
	}
	mine := decode[store.RunView](t, keep("ada", "slowest", "sort=-p95_ms&columns=qps%2Cp95_ms").
		want(t, http.StatusCreated))
	viewers := decode[store.RunView](t, keep("vic", "slowest", "").want(t, http.StatusCreated))
	sees("ada", "ada: slowest")
	sees("vic", "vic: slowest")
	sees("root")

	change := func(who string, v store.RunView, more map[string]any) answer {
		in := map[string]any{"name": v.Name, "query": v.Query, "version": v.Version}
		for k, value := range more {
			in[k] = value
		}
		return o.as(who, "PUT", viewsPath+"/"+v.ViewID, in)
	}
	share := func(who string, v store.RunView, on bool) answer {
		return o.as(who, "PUT", viewsPath+"/"+v.ViewID+"/shared", map[string]any{"shared": on, "version": v.Version})
	}
	share("vic", viewers, true).problem(t, http.StatusForbidden, engine.CodeForbidden)
	for _, end := range []string{"/shared/", "/shared//"} { // which the router takes for the same
		o.as("vic", "PUT", viewsPath+"/"+viewers.ViewID+end, map[string]any{"shared": true, "version": viewers.Version}).
			problem(t, http.StatusForbidden, engine.CodeForbidden)
	}
	change("vic", viewers, map[string]any{"query": "search=x"}).want(t, http.StatusOK)
	// What is not shared is not told to others, by its name neither.
	if p := change("eve", mine, nil).problem(t, http.StatusForbidden, engine.CodeForbidden); strings.Contains(
		p.Detail+p.Hint, "slowest") || strings.Contains(p.Detail+p.Hint, "ada") {
		t.Errorf("refusal %+v", p)
	}
	mine = decode[store.RunView](t, share("ada", mine, true).want(t, http.StatusOK))
	sees("eve", "ada: slowest")
	sees("vic", "ada: slowest", "vic: slowest")
	if p := change("eve", mine, nil).problem(t, http.StatusForbidden, engine.CodeForbidden); !strings.Contains(
		p.Detail+p.Hint, "ada") {
		t.Errorf("refusal %+v", p)
	}
	o.as("eve", "DELETE", viewsPath+"/"+mine.ViewID, nil).problem(t, http.StatusForbidden, engine.CodeForbidden)
	share("eve", mine, false).problem(t, http.StatusForbidden, engine.CodeForbidden)
	// Two tabs: the second is told.
	second := mine
	mine = decode[store.RunView](t, change("ada", mine, map[string]any{"query": "trend=qps"}).want(t, http.StatusOK))
	p := change("ada", second, map[string]any{"query": "trend=p95_ms"}).
		problem(t, http.StatusConflict, engine.CodeConflict)
	if len(p.Errors) != 1 || p.Errors[0].Field != "version" || !strings.Contains(p.Detail, "ada") {
		t.Errorf("refusal %+v", p)
	}
	// It stays shared, and says who has changed it: an admin may.
	mine = decode[store.RunView](t, change("root", mine, map[string]any{"query": "trend=qps"}).want(t, http.StatusOK))
	if !mine.Shared || mine.UpdatedBy != "root" || mine.Owner != "ada" {
		t.Errorf("changed by an admin: %+v", mine)
	}
	p = keep("ada", "slowest", "").problem(t, http.StatusConflict, engine.CodeConflict)
	if len(p.Errors) != 1 || p.Errors[0].Field != "name" {
		t.Errorf("refusal %+v", p)
	}
	for field, in := range map[string][2]string{"body.name": {"", ""}, "name": {"a\u202eb", ""},
		"query": {"x", "evil=1"}} {
		p := keep("ada", in[0], in[1]).problem(t, http.StatusUnprocessableEntity, engine.CodeInvalid)
		if len(p.Errors) != 1 || !strings.HasSuffix(field, p.Errors[0].Field) {
			t.Errorf("%s: refusal %+v", field, p)
		}
	}
	for _, id := range []string{"none", "%00", url.PathEscape("../users"), strings.Repeat("x", 190)} {
		o.as("ada", "DELETE", viewsPath+"/"+id, nil).problem(t, http.StatusNotFound, engine.CodeNotFound)
	}
	// An admin takes back what somebody has shared.
	other := decode[store.RunView](t, keep("bob", "rude", "").want(t, http.StatusCreated))
	other = decode[store.RunView](t, share("bob", other, true).want(t, http.StatusOK))
	share("root", other, false).want(t, http.StatusOK)
	sees("eve", "ada: slowest")

	o.do("DELETE", "/api/users/"+o.people["ada"].UserID, nil).want(t, http.StatusNoContent)
	sees("eve", "ada: slowest")
	change("eve", mine, nil).problem(t, http.StatusForbidden, engine.CodeForbidden)
	share("root", mine, false).problem(t, http.StatusConflict, engine.CodeConflict)
	o.as("root", "DELETE", viewsPath+"/"+mine.ViewID, nil).want(t, http.StatusNoContent)
	sees("eve")
	lines, err := o.store.ListAudit(t.Context(),
		store.AuditFilter{Action: "run-view", Outcome: store.OutcomeDone, Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	noted := map[string]int{}
	for _, l := range lines {
		noted[l.UserName+" "+l.Action]++
	}
	if want := map[string]int{"ada run-view.add": 1, "bob run-view.add": 1, "vic run-view.add": 1,
		"ada run-view.share": 1,
		"bob run-view.share": 1, "root run-view.unshare": 1, "ada run-view.change": 1, "vic run-view.change": 1,
		"root run-view.change": 1,
		"root run-view.delete": 1}; !maps.Equal(noted, want) {
		t.Errorf("noted are %v, want %v", noted, want)
	}

	for i := range store.MaxRunViews {
		keep("eve", fmt.Sprint("view ", i), "").want(t, http.StatusCreated)
	}
	if p := keep("eve", "one more", "").problem(t, http.StatusConflict, engine.CodeConflict); p.Hint == "" ||
		!strings.Contains(p.Detail, "200") {
		t.Errorf("refusal %+v", p)
	}
}
