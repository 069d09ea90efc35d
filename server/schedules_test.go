package server_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/run/schedule"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/api"
)

// schedules are ada's, on her template, with what moves their times.
type schedules struct {
	owned
	conn *pgx.Conn
	wake func()
}

func scheduling(t *testing.T) schedules {
	t.Helper()
	var service *schedule.Service
	o := ownBy(t, func(opts *server.Options) { service = opts.Schedules.(*schedule.Service) })
	conn, err := pgx.Connect(t.Context(), o.store.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return schedules{o, conn, service.Wake}
}

func (s schedules) create(who string, in map[string]any) engine.Schedule {
	s.t.Helper()
	return decode[engine.Schedule](s.t, s.as(who, "POST", "/api/v1/schedules", in).want(s.t, http.StatusCreated))
}

// due has a schedule due now, and awaits what becomes of it.
func (s schedules) due(v engine.Schedule) engine.ScheduledStart {
	s.t.Helper()
	if _, err := s.conn.Exec(s.t.Context(), `UPDATE schedules SET next_due = clock_timestamp() WHERE schedule_id = $1
		AND next_due IS NOT NULL`, v.ScheduleID); err != nil {
		s.t.Fatal(err)
	}
	s.wake()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		list := decode[api.ScheduledStartList](s.t, s.as("ada", "GET", "/api/v1/schedules/"+v.ScheduleID+"/starts", nil).
			want(s.t, http.StatusOK))
		if len(list.Starts) > 0 && list.Starts[0].Outcome != engine.StartBegun &&
			(v.Last == nil || v.Last.DueAt != list.Starts[0].DueAt) {
			return list.Starts[0]
		}
	}
	s.t.Fatal("it did not start")
	return engine.ScheduledStart{}
}

// read is a schedule as ada sees it.
func (s schedules) read(id string) engine.Schedule {
	s.t.Helper()
	return decode[engine.Schedule](s.t, s.as("ada", "GET", "/api/v1/schedules/"+id, nil).want(s.t, http.StatusOK))
}

// TestAScheduleStartsRuns in its owner's name, with a tag, and with the rights that the owner has then; production is
// confirmed when it is saved.
func TestAScheduleStartsRuns(t *testing.T) {
	t.Parallel()
	s := scheduling(t)
	c, tpl := s.fresh(1)
	v := s.create("ada", map[string]any{"name": "nightly", "template_name": tpl.Name, "cron": "30 2 * * *",
		"time_zone": "Europe/Berlin"})
	if v.Owner != "ada" || v.TemplateID != tpl.TemplateID || v.NextDue.IsZero() || v.Version != 1 {
		t.Fatalf("%+v", v)
	}
	st := s.due(v)
	run, err := s.store.Run(t.Context(), st.RunID)
	if st.Outcome != engine.StartDone || err != nil || run.Status != engine.StatusRunning ||
		run.CreatedByID != s.people["ada"].UserID || run.Scenario.Tags[notify.ScheduleTag] != "nightly" {
		t.Fatalf("%+v, %+v, %v", st, run, err)
	}
	// While that run goes on, the next start is skipped.
	v = s.read(v.ScheduleID)
	if st = s.due(v); st.Outcome != engine.StartSkipped || !strings.Contains(st.Reason, run.RunID) {
		t.Errorf("%+v", st)
	}
	s.runs.move(run.RunID, engine.PhaseNone, engine.StatusStopping, engine.StatusCompleted)

	// The connection becomes production: nobody has confirmed that.
	production := map[string]any{"name": c.Name, "driver": "postgres", "dsn": c.DSN, "production": true}
	s.as("root", "PUT", "/api/connections/"+c.ConnectionID, production).want(t, http.StatusOK)
	v = s.read(v.ScheduleID)
	if st = s.due(v); st.Outcome != engine.StartFailed || !strings.Contains(st.Reason, "is production") || st.RunID != "" {
		t.Errorf("%+v", st)
	}
	change := map[string]any{"name": "nightly", "template_id": tpl.TemplateID, "cron": "@daily", "version": 1}
	path := "/api/v1/schedules/" + v.ScheduleID
	if p := s.as(
		"ada",
		"PUT",
		path,
		change,
	).problem(
		t,
		422,
		engine.CodeInvalid,
	); p.Errors[0].Field != "confirm_production" {
		t.Errorf("%+v", p)
	}
	change["confirm_production"] = c.Name
	s.as("ada", "PUT", path, change).want(t, http.StatusOK)
	delete(change, "confirm_production")
	change["version"] = 2
	v = decode[engine.Schedule](t, s.as("ada", "PUT", path, change).want(t, http.StatusOK)) // it stays confirmed
	if st = s.due(v); st.Outcome != engine.StartDone {
		t.Errorf("%+v", st)
	}
	s.runs.move(st.RunID, engine.PhaseNone, engine.StatusStopping, engine.StatusCompleted)

	// Others read it; its template stays while it is there.
	s.as("bob", "PUT", path, change).problem(t, 403, engine.CodeForbidden)
	s.as("eve", "POST", "/api/v1/schedules", map[string]any{"name": "x", "template_id": tpl.TemplateID,
		"cron": "@daily"}).problem(t, 403, engine.CodeForbidden)
	if got := decode[api.ScheduleList](
		t,
		s.as("vic", "GET", "/api/v1/schedules", nil).want(t, 200),
	); len(got.Schedules) != 1 ||
		got.Schedules[0].Last == nil ||
		got.Schedules[0].Last.RunID != st.RunID {
		t.Errorf("%+v", got)
	}
	if p := s.as(
		"ada",
		"DELETE",
		"/api/templates/"+tpl.TemplateID,
		nil,
	).problem(
		t,
		409,
		engine.CodeConflict,
	); !strings.Contains(
		p.Detail,
		"nightly",
	) {
		t.Errorf("%+v", p)
	}
	// Its owner is locked out: it is suspended, and an admin who saves it resumes it.
	s.as("root", "PATCH", "/api/users/"+s.people["ada"].UserID, map[string]any{"disabled": true}).want(t, 200)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		v = decode[engine.Schedule](t, s.as("root", "GET", path, nil).want(t, 200))
		if v.Suspended != "" || time.Now().After(end) {
			break
		}
	}
	if !strings.Contains(v.Suspended, "locked out") || !v.NextDue.IsZero() {
		t.Errorf("%+v", v)
	}
	change["version"], change["confirm_production"] = v.Version, c.Name
	v = decode[engine.Schedule](t, s.as("root", "PUT", path, change).want(t, 200))
	if v.Suspended != "" || v.Owner != "root" || v.NextDue.IsZero() {
		t.Errorf("%+v", v)
	}
	s.as("root", "DELETE", path, nil).want(t, http.StatusNoContent)
	s.as("root", "GET", path, nil).want(t, http.StatusNotFound)
	for _, action := range []string{"schedule.create", "schedule.update", "schedule.delete"} {
		if !slices.Contains(s.store.actions(), action) {
			t.Errorf("the audit log has no %s: %v", action, s.store.actions())
		}
	}
	entries, err := s.store.ListAudit(t.Context(), store.AuditFilter{Limit: 1000})
	if err != nil || !slices.ContainsFunc(entries, func(e store.AuditEntry) bool {
		return e.Action == "run.start" && e.Object == run.RunID && e.UserName == "ada" &&
			strings.Contains(e.Detail, "schedule nightly")
	}) {
		t.Errorf("the audit log does not have the start: %v", err)
	}
}

// TestSchedulesThatCannotBeSaved name the field; and times are shown before anything is saved.
func TestSchedulesThatCannotBeSaved(t *testing.T) {
	t.Parallel()
	s := scheduling(t)
	_, tpl := s.fresh(1)
	for field, change := range map[string]map[string]any{
		"cron":        {"cron": "* * * *"},
		"time_zone":   {"time_zone": "Nowhere"},
		"template_id": {"template_name": tpl.Name},
		"name":        {"name": "a\tb"},
	} {
		in := map[string]any{"name": "n", "template_id": tpl.TemplateID, "cron": "@daily"}
		for k, value := range change {
			in[k] = value
		}
		if p := s.as("ada", "POST", "/api/v1/schedules", in).problem(t, 422, engine.CodeInvalid); len(p.Errors) != 1 ||
			p.Errors[0].Field != field {
			t.Errorf("%s: %+v", field, p)
		}
	}
	s.as("ada", "POST", "/api/v1/schedules", map[string]any{"name": "n", "template_id": "none", "cron": "@daily"}).
		want(t, http.StatusNotFound)
	times := decode[api.ScheduleTimes](t, s.as("vic", "GET", "/api/v1/schedule-times?count=3&time_zone=Asia/Tokyo&cron="+
		url.QueryEscape("0 9 * * *"), nil).want(t, http.StatusOK))
	if len(times.Times) != 3 || times.Times[1].Sub(times.Times[0].Time) != 24*time.Hour || times.Times[0].Hour() != 0 {
		t.Errorf("%v", times)
	}
	s.as("vic", "GET", "/api/v1/schedule-times?cron=nonsense", nil).problem(t, 422, engine.CodeInvalid)
}

// TestAScheduledMatrix starts the runs of all targets.
func TestAScheduledMatrix(t *testing.T) {
	t.Parallel()
	s := scheduling(t)
	c, _ := s.fresh(1)
	several := map[string]any{"name": "both", "workload": scenario("x")["workload"], "matrix": map[string]any{
		"targets": []any{map[string]any{"label": "a", "connection": "playground", "table_name": "t"},
			map[string]any{"label": "b", "connection": c.Name, "table_name": "t"}}}}
	tpl := decode[store.Template](t, s.as("ada", "POST", "/api/templates", map[string]any{"config": several}).want(t, 201))
	v := s.create("ada", map[string]any{"name": "both", "template_id": tpl.TemplateID, "cron": "@weekly"})
	if st := s.due(v); st.Outcome != engine.StartDone || st.MatrixID == "" || st.RunID != "" {
		t.Errorf("%+v", st)
	}
}

// TestATemplateChangedBySomebodyElse suspends the schedules of others: a schedule does with its owner's rights what its
// owner has seen. Whoever owns it may go on, and confirms production again.
func TestATemplateChangedBySomebodyElse(t *testing.T) {
	t.Parallel()
	s := scheduling(t)
	c, tpl := s.fresh(1)
	s.as("root", "PUT", "/api/connections/"+c.ConnectionID, map[string]any{"name": c.Name, "driver": "postgres",
		"dsn": c.DSN, "production": true}).want(t, http.StatusOK)
	in := map[string]any{"name": "nightly", "template_id": tpl.TemplateID, "cron": "@daily", "confirm_production": c.Name}
	v := s.create("ada", in)
	if !slices.Equal(v.ConfirmedNames, []string{c.Name}) {
		t.Errorf("%v is confirmed", v.ConfirmedNames)
	}
	path := "/api/v1/schedules/" + v.ScheduleID
	config := scenario(tpl.Name)
	config["target"].(map[string]any)["connection"] = c.Name
	change := func(who string, clients int) {
		t.Helper()
		config["workload"].(map[string]any)["concurrent_connections"] = clients
		tpl = decode[store.Template](t, s.as(who, "PUT", "/api/templates/"+tpl.TemplateID,
			map[string]any{"config": config, "version": tpl.Version}).want(t, http.StatusOK))
	}
	change("ada", 3)
	if v = s.read(v.ScheduleID); v.Suspended != "" {
		t.Errorf("the owner's own change suspends it: %s", v.Suspended)
	}
	config["description"] = "words"
	change("root", 3)
	if v = s.read(v.ScheduleID); v.Suspended != "" {
		t.Errorf("a description suspends it: %s", v.Suspended)
	}
	before := v // as a server has read it that starts it in this moment
	change("root", 700)
	if v = s.read(v.ScheduleID); !strings.Contains(v.Suspended, "changed by root") || !v.NextDue.IsZero() ||
		len(v.ConfirmedNames) > 0 {
		t.Errorf("%+v", v)
	}
	var started bool
	err := s.srv.Starter().StartScheduled(t.Context(), before, func(string, string) error { started = true; return nil })
	if started || err == nil || !strings.Contains(err.Error(), "changed by root") {
		t.Errorf("a start under way: %v, started: %t", err, started)
	}
	again := map[string]any{"name": "nightly", "template_id": tpl.TemplateID, "cron": "@daily", "version": v.Version}
	s.as("ada", "PUT", path, again).problem(t, 422, engine.CodeInvalid)
	again["confirm_production"] = c.Name
	v = decode[engine.Schedule](t, s.as("ada", "PUT", path, again).want(t, http.StatusOK))
	if v.Suspended != "" || v.NextDue.IsZero() {
		t.Errorf("%+v", v)
	}
}

// TestPausing a schedule needs neither its template nor the confirmation of a load, and leaves it to its owner.
func TestPausing(t *testing.T) {
	t.Parallel()
	s := scheduling(t)
	c, tpl := s.fresh(1)
	v := s.create("ada", map[string]any{"name": "nightly", "template_id": tpl.TemplateID, "cron": "@daily"})
	path := "/api/v1/schedules/" + v.ScheduleID
	s.as("root", "PUT", "/api/connections/"+c.ConnectionID, map[string]any{"name": c.Name, "driver": "postgres",
		"dsn": c.DSN, "production": true}).want(t, http.StatusOK)
	in := map[string]any{"name": "nightly", "template_name": tpl.Name, "cron": "@daily", "paused": true, "version": 1}
	s.as("bob", "PUT", path, in).problem(t, 403, engine.CodeForbidden)
	for range 2 { // pausing what is paused is no other thing
		v = decode[engine.Schedule](t, s.as("root", "PUT", path, in).want(t, http.StatusOK))
		if !v.Paused || !v.NextDue.IsZero() || v.Owner != "ada" || v.UpdatedBy != "root" {
			t.Errorf("%+v", v)
		}
		in["version"] = v.Version
	}
	in["cron"] = "@weekly"
	s.as("root", "PUT", path, in).problem(t, 422, engine.CodeInvalid) // it does more than pause
	in["cron"], in["paused"] = "@daily", false
	s.as("root", "PUT", path, in).problem(t, 422, engine.CodeInvalid)
}

// TestAnEqualConnectionIsKept when a client asks for that, and another password is not equal.
func TestAnEqualConnectionIsKept(t *testing.T) {
	t.Parallel()
	o := own(t)
	c, _ := o.fresh(1)
	put := func(dsn string, keep bool) store.Connection {
		t.Helper()
		return decode[store.Connection](t, o.as("ada", "PUT", "/api/connections/"+c.ConnectionID, map[string]any{
			"name": c.Name, "driver": "postgres", "dsn": dsn, "keep_equal": keep}).want(t, http.StatusOK))
	}
	other := strings.Replace(restrictedDSN, "pw", "another", 1)
	for i, step := range []struct {
		dsn     string
		keep    bool
		version int64
	}{{restrictedDSN, true, 1}, {c.DSN, true, 1}, {restrictedDSN, false, 2}, {other, true, 3}, {other, true, 3}} {
		if got := put(step.dsn, step.keep); got.Version != step.version || strings.Contains(got.DSN, "another") {
			t.Errorf("%d: version %d, not %d: %s", i, got.Version, step.version, got.DSN)
		}
	}
	_, dsn, err := o.store.OpenDSN(t.Context(), engine.ConnectionRef{ID: c.ConnectionID})
	if err != nil || dsn.Reveal() != other {
		t.Errorf("%s, %v", dsn.Reveal(), err)
	}
}
