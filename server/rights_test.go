package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/matrix"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
)

// What a route does with a connection, a template or a run: it needs the right to use it, or to change it, or none.
const (
	uses    = "use"
	changes = "change"
	reads   = "read"
)

// judged are the routes of things that have an owner, each with what it needs. A route that is registered and is not
// here fails the test: somebody has to say whom it is for.
func judged() map[string]string {
	return map[string]string{
		"POST /api/connections/:id/test": uses, "PUT /api/connections/:id": changes, "DELETE /api/connections/:id": changes,
		"PUT /api/templates/:id": changes, "DELETE /api/templates/:id": changes,
		"POST /api/tests/from-template/:id": uses, "POST /api/runs/:id/start": uses, "POST /api/tests/:id/start": uses,
		"POST /api/runs/:id/enrichment/retry": uses, "POST /api/matrices/:id/start": uses,
		"POST /api/runs": uses, "POST /api/tests": uses, "POST /api/matrices": uses, "POST /api/preflight": uses,
		"POST /api/connections/test": uses,
		// What stops or ends loads nothing, and whoever sees it should be able to.
		"POST /api/runs/:id/stop": reads, "POST /api/tests/:id/stop": reads, "POST /api/runs/:id/enrichment/stop": reads,
		"POST /api/matrices/:id/stop": reads,
		// Figures that are deleted do not come back.
		"DELETE /api/runs/:id": uses, "DELETE /api/tests/:id": uses, "DELETE /api/matrices/:id": uses,
		// Who sees a run may write about it. To show it to strangers, and to say what a template's runs are held against, is
		// for who may use it.
		"POST /api/v1/runs/:id/binds": uses, "POST /api/runs/:id/shares": uses,
		"PUT /api/runs/:id/note": reads, "PUT /api/runs/:id/tags": reads,
		"PUT /api/templates/:id/baseline": uses, "DELETE /api/templates/:id/baseline": uses,
		"PUT /api/v1/run-views/:id": changes, "PUT /api/v1/run-views/:id/shared": changes,
		"POST /api/v1/schedules": uses, "PUT /api/v1/schedules/:id": changes, "DELETE /api/v1/schedules/:id": changes,
		"DELETE /api/v1/run-views/:id": changes, "POST /api/v1/run-views": reads,
		// A new one is whoever's who makes it, and checking a text needs none.
		"POST /api/connections": reads, "POST /api/templates": reads, "POST /api/templates/validate": reads,
	}
}

// owned is what the table is about: ada's connection and template, which bob may use.
type owned struct {
	*bench
	sessions map[string][]string
	people   map[string]store.User
}

func (o owned) as(who, method, path string, body any) answer {
	o.t.Helper()
	return o.do(method, path, body, o.sessions[who]...)
}

func own(t *testing.T) owned {
	t.Helper()
	return ownBy(t, func(*server.Options) {})
}

// ownBy is own on a server with more.
func ownBy(t *testing.T, change func(*server.Options)) owned {
	t.Helper()
	o := owned{bench: start(t, change, func(o *server.Options) {
		o.Matrices = &lineup{kept: o.Store.(matrix.Store)}
	}), sessions: map[string][]string{},
		people: map[string]store.User{}}
	o.makePlayground()
	for name, role := range map[string]store.Role{"ada": store.RoleOperator, "bob": store.RoleOperator,
		"eve": store.RoleOperator, "vic": store.RoleViewer, "root": store.RoleAdmin} {
		o.people[name], o.sessions[name] = o.join(name, role)
	}
	return o
}

const restrictedDSN = "postgres://u:pw@db.example/d"

// fresh makes ada's connection and template anew.
func (o owned) fresh(n int) (c store.Connection, tpl store.Template) {
	o.t.Helper()
	access := map[string]any{"restricted": true, "users": []string{"Bob"}}
	c = decode[store.Connection](o.t, o.as("ada", "POST", "/api/connections", map[string]any{
		"name": fmt.Sprint("orders ", n), "driver": "postgres", "dsn": restrictedDSN, "access": access}).want(o.t, 201))
	config := scenario(fmt.Sprint("template ", n))
	config["target"].(map[string]any)["connection"] = c.Name
	tpl = decode[store.Template](o.t, o.as("ada", "POST", "/api/templates",
		map[string]any{"config": config, "access": access}).want(o.t, 201))
	return c, tpl
}

// about tells the routes of things that have an owner.
func about(path string) bool {
	return strings.HasPrefix(path, "/api/connections") || strings.HasPrefix(path, "/api/templates") ||
		strings.HasPrefix(path, "/api/runs") || strings.HasPrefix(path, "/api/tests") ||
		strings.HasPrefix(path, "/api/matrices") || strings.HasPrefix(path, "/api/v1/run-views") ||
		strings.HasPrefix(path, "/api/v1/schedules") || path == "/api/preflight"
}

// askAs makes the request of a route about ada's things.
func (o owned) askAs(header []string, route string, n int) answer {
	o.t.Helper()
	c, tpl := o.fresh(n)
	method, path, _ := strings.Cut(route, " ")
	var body any = "{}"
	id := c.ConnectionID
	config := scenario(fmt.Sprint("s", n))
	config["target"].(map[string]any)["connection"] = c.Name
	several := map[string]any{"name": "m", "workload": config["workload"], "matrix": map[string]any{
		"targets": []any{map[string]any{"label": "a", "connection": "playground", "table_name": "t"},
			map[string]any{"label": "b", "connection": c.Name, "table_name": "t"}}}}
	switch {
	case path == "/api/connections/test":
		body = map[string]any{"driver": "postgres", "dsn": c.DSN, "connection_id": c.ConnectionID}
	case path == "/api/connections":
		body = map[string]any{"name": fmt.Sprint("new ", n), "driver": "postgres", "dsn": restrictedDSN}
	case strings.HasPrefix(path, "/api/connections/"):
		if method == http.MethodPut {
			body = map[string]any{"name": c.Name, "driver": "postgres", "dsn": c.DSN}
		}
	case path == "/api/v1/run-views":
		body = map[string]any{"name": fmt.Sprint("new ", n)}
	case strings.HasPrefix(path, "/api/v1/run-views/"):
		v := decode[store.RunView](o.t, o.as("ada", "POST", "/api/v1/run-views",
			map[string]any{"name": fmt.Sprint("view ", n)}).want(o.t, 201))
		id, body = v.ViewID, map[string]any{"name": v.Name, "version": v.Version}
		if strings.HasSuffix(path, "/shared") {
			body = map[string]any{"shared": true, "version": v.Version}
		}
	case path == "/api/v1/schedules":
		body = map[string]any{"name": fmt.Sprint("new ", n), "template_id": tpl.TemplateID, "cron": "@yearly"}
	case strings.HasPrefix(path, "/api/v1/schedules/"):
		in := map[string]any{"name": fmt.Sprint("schedule ", n), "template_id": tpl.TemplateID, "cron": "@yearly"}
		v := decode[engine.Schedule](o.t, o.as("ada", "POST", "/api/v1/schedules", in).want(o.t, 201))
		in["version"] = v.Version
		id, body = v.ScheduleID, in
	case path == "/api/templates/validate":
		body = map[string]any{"config": config}
	case path == "/api/templates":
		body = map[string]any{"config": config}
	case strings.HasSuffix(path, "/baseline"):
		id = tpl.TemplateID
		if method == http.MethodPut {
			body = map[string]any{"run_id": "none"}
		}
	case strings.HasPrefix(path, "/api/templates/"):
		id = tpl.TemplateID
		if method == http.MethodPut {
			body = map[string]any{"config": config, "version": tpl.Version}
		}
	case strings.Contains(path, "from-template"):
		id = tpl.TemplateID
	case path == "/api/matrices":
		body = map[string]any{"scenario": several}
	case strings.HasPrefix(path, "/api/matrices/"):
		id = decode[matrix.State](o.t, o.as("ada", "POST", "/api/matrices", map[string]any{"scenario": several}).
			want(o.t, 201)).MatrixID
	case path == "/api/runs", path == "/api/tests", path == "/api/preflight":
		body = map[string]any{"scenario": config}
		if n%2 == 1 {
			body = map[string]any{"template_id": tpl.TemplateID}
		}
	default:
		id = decode[engine.Run](o.t, o.as("ada", "POST", "/api/runs", map[string]any{"template_id": tpl.TemplateID}).
			want(o.t, 201)).RunID
	}
	return o.do(method, strings.Replace(path, ":id", id, 1), body, header...)
}

// TestWhoseAThingIs gives things away, restricts them, and holds who may.
func TestWhoseAThingIs(t *testing.T) {
	t.Parallel()
	o := own(t)
	c, _ := o.fresh(0)
	if c.Access.Owner != "ada" || !c.Access.Restricted || len(c.Access.Users) != 1 || c.Access.Users[0].Name != "bob" {
		t.Fatalf("access %+v", c.Access)
	}
	put := func(who string, more map[string]any) answer {
		in := map[string]any{"name": c.Name, "driver": "postgres", "dsn": c.DSN}
		for k, v := range more {
			in[k] = v
		}
		return o.as(who, "PUT", "/api/connections/"+c.ConnectionID, in)
	}
	use := func(who string) answer { return o.as(who, "POST", "/api/connections/"+c.ConnectionID+"/test", nil) }
	p := put("ada", map[string]any{"access": map[string]any{"restricted": true, "users": []string{"nobody"}}}).
		problem(t, 422, engine.CodeInvalid)
	if p.Errors[0].Field != "access.users[0]" {
		t.Errorf("problem %+v", p)
	}
	put("bob", map[string]any{"access": map[string]any{"restricted": false}}).problem(t, 403, engine.CodeForbidden)
	put("ada", nil).want(t, 200) // leaves the access as it is
	use("bob").want(t, 200)
	put("ada", map[string]any{"access": map[string]any{"restricted": true}}).want(t, 200)
	if p := use("bob").problem(t, 403, engine.CodeForbidden); !strings.Contains(p.Hint, "ada") {
		t.Errorf("refusal %+v", p)
	}
	put("ada", map[string]any{"access": map[string]any{"restricted": true, "owner": "eve"}}).want(t, 200)
	use("ada").problem(t, 403, engine.CodeForbidden)
	put("ada", nil).problem(t, 403, engine.CodeForbidden)
	use("eve").want(t, 200)
	// Who has the name of a user that is gone has not its rights.
	put("eve", map[string]any{"access": map[string]any{"restricted": true, "users": []string{"bob"}}}).want(t, 200)
	use("bob").want(t, 200)
	o.do("DELETE", "/api/users/"+o.people["bob"].UserID, nil).want(t, 204)
	_, o.sessions["bob"] = o.join("bob", store.RoleOperator)
	use("bob").problem(t, 403, engine.CodeForbidden)
	// What nobody owns is an admin's to restrict.
	if err := o.store.EnsureBuiltin(t.Context(), store.Connection{Name: "mine", Driver: "postgres",
		DSN: "postgres://h/d"}); err != nil {
		t.Fatal(err)
	}
	old, err := o.store.SaveConnection(t.Context(), store.Connection{Name: "old", Driver: "postgres",
		DSN: "postgres://h/d"})
	if err != nil {
		t.Fatal(err)
	}
	claim := map[string]any{"name": "old", "driver": "postgres", "dsn": "postgres://h/d",
		"access": map[string]any{"restricted": true}}
	o.as("eve", "PUT", "/api/connections/"+old.ConnectionID, claim).problem(t, 403, engine.CodeForbidden)
	o.as("root", "PUT", "/api/connections/"+old.ConnectionID, claim).want(t, 200)
	o.as("eve", "POST", "/api/connections/"+old.ConnectionID+"/test", nil).problem(t, 403, engine.CodeForbidden)
}

// TestAChangeOfWhatOthersHaveChanged is a form that was opened before an admin marked and restricted the connection:
// saving it undoes nothing of that, whoever saves it.
func TestAChangeOfWhatOthersHaveChanged(t *testing.T) {
	t.Parallel()
	o := own(t)
	c, _ := o.fresh(0)
	put := func(who string, version int64, more map[string]any) answer {
		in := map[string]any{"name": c.Name, "driver": "postgres", "dsn": c.DSN}
		if version != 0 {
			in["version"] = version
		}
		for k, v := range more {
			in[k] = v
		}
		return o.as(who, "PUT", "/api/connections/"+c.ConnectionID, in)
	}
	now := decode[store.Connection](t, put("root", c.Version, map[string]any{"production": true,
		"access": map[string]any{"restricted": true}}).want(t, http.StatusOK))
	if now.Version != c.Version+1 || !now.Production {
		t.Fatalf("marked: %+v", now)
	}
	for _, who := range []string{"ada", "root"} {
		p := put(who, c.Version, map[string]any{"production": false, "access": map[string]any{"restricted": false}}).
			problem(t, http.StatusConflict, engine.CodeConflict)
		if len(p.Errors) != 1 || p.Errors[0].Field != "version" || p.Hint == "" {
			t.Errorf("%s: refusal %+v", who, p)
		}
	}
	// What is not named stays, also when no version is said.
	left := decode[store.Connection](t, put("ada", 0, map[string]any{"description": "d"}).want(t, http.StatusOK))
	if !left.Production || !left.Access.Restricted || len(left.Access.Users) != 0 || left.Version != now.Version+1 {
		t.Errorf("after a change that names neither: %+v", left)
	}
}

// TestADeletionOfWhatOthersHaveChanged asks for the deletion of a connection as it was before an admin changed it, and
// has an admin restrict one between the check of who may delete it and the deletion.
func TestADeletionOfWhatOthersHaveChanged(t *testing.T) {
	t.Parallel()
	o := own(t)
	made := func(name string) (c store.Connection, change func(more map[string]any) store.Connection) {
		c = decode[store.Connection](t, o.as("ada", "POST", "/api/connections", map[string]any{"name": name,
			"driver": "postgres", "dsn": restrictedDSN}).want(t, http.StatusCreated))
		return c, func(more map[string]any) store.Connection {
			in := map[string]any{"name": name, "driver": "postgres", "dsn": c.DSN}
			maps.Copy(in, more)
			return decode[store.Connection](t, o.as("root", "PUT", "/api/connections/"+c.ConnectionID, in).
				want(t, http.StatusOK))
		}
	}
	refused := func(a answer, now store.Connection) {
		t.Helper()
		p := a.problem(t, http.StatusConflict, engine.CodeConflict)
		if len(p.Errors) != 1 || p.Errors[0].Field != "version" || p.Hint == "" ||
			!strings.HasSuffix(p.Errors[0].Message, fmt.Sprint(" ", now.Version)) {
			t.Errorf("refusal %+v", p)
		}
		if left := decode[store.Connection](t, o.as("root", "GET", "/api/connections/"+now.ConnectionID, nil).
			want(t, http.StatusOK)); left.Version != now.Version || left.Production != now.Production {
			t.Errorf("it is %+v, want %+v", left, now)
		}
	}
	remove := func(who string, c store.Connection, query string) answer {
		return o.as(who, "DELETE", "/api/connections/"+c.ConnectionID+query, nil)
	}
	c, change := made("looked at")
	now := change(map[string]any{"production": true})
	for _, who := range []string{"ada", "root"} {
		refused(remove(who, c, fmt.Sprint("?version=", c.Version)), now)
		refused(remove(who, c, fmt.Sprint("?version=", now.Version+1)), now)
	}
	remove("eve", c, fmt.Sprint("?version=", c.Version)).problem(t, http.StatusForbidden, engine.CodeForbidden)
	for _, wrong := range []string{"0", "-1", "1.5", "one", "9007199254740993"} {
		p := remove("ada", c, "?version="+wrong).problem(t, http.StatusUnprocessableEntity, engine.CodeInvalid)
		if len(p.Errors) != 1 || p.Errors[0].Field != "version" {
			t.Errorf("version %s: refusal %+v", wrong, p)
		}
	}
	remove("ada", c, fmt.Sprint("?version=", now.Version)).want(t, http.StatusNoContent)
	remove("ada", c, fmt.Sprint("?version=", now.Version)).problem(t, http.StatusNotFound, engine.CodeNotFound)

	// No version is said: that which was judged must be that which is deleted.
	c, change = made("in between")
	happens := func(f func()) {
		o.store.mu.Lock()
		defer o.store.mu.Unlock()
		o.store.deleting = f
	}
	happens(func() { now = change(map[string]any{"production": true}) })
	a := remove("ada", c, "")
	happens(nil)
	refused(a, now)
	remove("ada", c, "").want(t, http.StatusNoContent)
}

// TestProductionIsConfirmed starts runs and matrices against a production connection without and with its name.
func TestProductionIsConfirmed(t *testing.T) {
	t.Parallel()
	o := own(t)
	c := decode[store.Connection](t, o.as("ada", "POST", "/api/connections", map[string]any{"name": "orders, prod",
		"driver": "postgres", "dsn": restrictedDSN, "production": true}).want(t, 201))
	if !c.Production {
		t.Fatalf("connection %+v", c)
	}
	config := scenario("s")
	config["target"].(map[string]any)["connection"] = c.Name
	several := map[string]any{"name": "m", "workload": config["workload"], "matrix": map[string]any{
		"targets": []any{map[string]any{"label": "a", "connection": "playground", "table_name": "t"},
			map[string]any{"label": "b", "connection": c.Name, "table_name": "t"}}}}
	refused := func(a answer) {
		t.Helper()
		p := a.problem(t, 422, engine.CodeInvalid)
		if len(p.Errors) != 1 || p.Errors[0].Field != "confirm_production" ||
			!strings.HasSuffix(p.Errors[0].Hint, ": "+c.Name) || p.Errors[0].Subject != c.Name {
			t.Errorf("refusal %+v", p)
		}
	}
	for _, who := range []string{"eve", "root"} {
		for _, wrong := range []any{nil, "", "orders", "ORDERS, PROD", []string{"orders", "prod"}} {
			in := map[string]any{"scenario": config, "start": true}
			if wrong != nil {
				in["confirm_production"] = wrong
			}
			refused(o.as(who, "POST", "/api/runs", in))
		}
		in := map[string]any{"scenario": several, "start": true}
		refused(o.as(who, "POST", "/api/matrices", in))
		in["confirm_production"] = []string{c.Name}
		o.as(who, "POST", "/api/matrices", in).want(t, 201)
		prepared := decode[engine.Run](t, o.as(who, "POST", "/api/runs", map[string]any{"scenario": config}).want(t, 201))
		for _, base := range []string{"/api/runs/", "/api/tests/"} {
			refused(o.as(who, "POST", base+prepared.RunID+"/start", nil))
			refused(o.as(who, "POST", base+prepared.RunID+"/start", "{}"))
		}
		o.as(who, "POST", "/api/runs/"+prepared.RunID+"/start", map[string]any{"confirm_production": c.Name}).want(t, 200)
		// The preflight writes to production, if only until it rolls back, only where that was confirmed.
		for _, whole := range []any{config, several} {
			for typed, want := range map[any]bool{nil: false, "orders": false, c.Name: true} {
				in := map[string]any{"scenario": whole, "start": true}
				if typed != nil {
					in["confirm_production"] = typed
				}
				found := decode[map[string]any](t, o.as(who, "POST", "/api/preflight", in).want(t, 200))
				if found["trial"] != want {
					t.Errorf("confirmed with %v: %v", typed, found)
				}
				// As the page asks, which executes nothing unasked.
				in["trial"] = false
				found = decode[map[string]any](t, o.as(who, "POST", "/api/preflight", in).want(t, 200))
				if found["trial"] != false {
					t.Errorf("without trial, confirmed with %v: %v", typed, found)
				}
			}
		}
		m := decode[matrix.State](t, o.as(who, "POST", "/api/matrices", map[string]any{"scenario": several}).want(t, 201))
		refused(o.as(who, "POST", "/api/matrices/"+m.MatrixID+"/start", nil))
		o.as(who, "POST", "/api/matrices/"+m.MatrixID+"/start", map[string]any{"confirm_production": c.Name}).want(t, 200)
	}
	// Its owner may mark it, and only an admin takes the mark away.
	edit := map[string]any{"name": c.Name, "driver": "postgres", "dsn": c.DSN, "production": false}
	p := o.as("ada", "PUT", "/api/connections/"+c.ConnectionID, edit).problem(t, 403, engine.CodeForbidden)
	if p.Errors[0].Field != "production" {
		t.Errorf("refusal %+v", p)
	}
	delete(edit, "production")
	o.as("ada", "PUT", "/api/connections/"+c.ConnectionID, edit).want(t, 200)
	refused(o.as("ada", "POST", "/api/runs", map[string]any{"scenario": config, "start": true}))
	edit["production"] = false
	o.as("root", "PUT", "/api/connections/"+c.ConnectionID, edit).want(t, 200)
	o.as("ada", "POST", "/api/runs", map[string]any{"scenario": config, "start": true}).want(t, 201)
	o.as("ada", "POST", "/api/runs", map[string]any{"scenario": config, "start": true, "confirm": "x"}).want(t, 422)
}

// TestATemplateThatIsGoneOpensNothing deletes the restricted template of a run with an inline connection: the run is
// its maker's and admins' from then on.
func TestATemplateThatIsGoneOpensNothing(t *testing.T) {
	t.Parallel()
	o := own(t)
	config := scenario("inline")
	config["target"].(map[string]any)["connection"] = map[string]any{"driver": "postgres", "dsn": restrictedDSN}
	tpl := decode[store.Template](t, o.as("ada", "POST", "/api/templates",
		map[string]any{"config": config, "access": map[string]any{"restricted": true}}).want(t, 201))
	prepared := func() string {
		return decode[engine.Run](t, o.as("ada", "POST", "/api/runs", map[string]any{"template_id": tpl.TemplateID}).
			want(t, 201)).RunID
	}
	a, b := prepared(), prepared()
	o.as("eve", "POST", "/api/runs/"+a+"/start", "{}").problem(t, 403, engine.CodeForbidden)
	o.as("ada", "DELETE", "/api/templates/"+tpl.TemplateID, nil).want(t, 204)
	o.as("eve", "POST", "/api/runs/"+a+"/start", "{}").problem(t, 403, engine.CodeForbidden)
	o.as("ada", "POST", "/api/runs/"+a+"/start", "{}").want(t, 200)
	o.as("root", "POST", "/api/runs/"+b+"/start", "{}").want(t, 200)
}
