package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/schedule"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

var _ schedule.Store = (*postgres.Store)(nil)

// scheduled is a store with a template and a schedule of it that is due.
func scheduled(t *testing.T) (s *postgres.Store, conn *pgx.Conn, v engine.Schedule) {
	t.Helper()
	s, dsn := postgrestest.Open(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	tpl, err := s.CreateTemplate(t.Context(), store.Template{Name: "Orders", Config: engine.Scenario{Name: "Orders"}})
	must(t, err)
	v, err = s.CreateSchedule(t.Context(), engine.Schedule{
		Name:       "nightly",
		TemplateID: tpl.TemplateID,
		Cron:       "@daily",
		TimeZone:   "UTC",
		NextDue:    engine.At(time.Now().Add(-time.Minute)),
		Confirmed:  []string{"c"},
		OwnerID:    "u",
		Owner:      "ada",
		UpdatedBy:  "ada",
	})
	must(t, err)
	return s, conn, v
}

func startOf(v engine.Schedule) []engine.ScheduledStart {
	return []engine.ScheduledStart{{ScheduleID: v.ScheduleID, DueAt: v.NextDue, Outcome: engine.StartBegun}}
}

// TestSchedules are saved, changed, suspended and deleted; a template that has one stays.
func TestSchedules(t *testing.T) {
	t.Parallel()
	s, conn, v := scheduled(t)
	ctx := t.Context()
	if v.ScheduleID == "" || v.Version != 1 || v.TemplateName != "Orders" || v.CreatedAt.IsZero() || v.Last != nil ||
		!slices.Equal(v.Confirmed, []string{"c"}) {
		t.Fatalf("%+v", v)
	}
	twice := v
	if _, err := s.CreateSchedule(ctx, twice); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a name twice: %v", err)
	}
	twice.Name, twice.TemplateID = "other", "none"
	if _, err := s.CreateSchedule(ctx, twice); !engine.HasCode(err, engine.CodeNotFound) {
		t.Errorf("a template that is not there: %v", err)
	}
	if err := s.DeleteTemplate(ctx, v.TemplateID); !errors.Is(err, store.ErrInUse) ||
		!strings.Contains(engine.AsError(err).Message, `the schedule nightly`) {
		t.Errorf("deleting the template: %v", err)
	}
	v.Cron, v.Paused, v.NextDue = "@hourly", true, engine.Time{}
	now, err := s.UpdateSchedule(ctx, v)
	if err != nil || now.Version != 2 || !now.Paused || now.Cron != "@hourly" || !now.NextDue.IsZero() {
		t.Fatalf("%+v, %v", now, err)
	}
	if _, err := s.UpdateSchedule(ctx, v); !errors.Is(err, store.ErrConflict) {
		t.Errorf("an old version: %v", err)
	}
	now.Paused, now.NextDue = false, engine.At(time.Now().Add(time.Hour))
	now, err = s.UpdateSchedule(ctx, now)
	must(t, err)
	must(t, s.SuspendSchedule(ctx, v.ScheduleID, now.Version-1, "not this version"))
	must(t, s.SuspendSchedule(ctx, v.ScheduleID, now.Version, "ada is locked out"))
	if now, err = s.Schedule(
		ctx,
		v.ScheduleID,
	); err != nil || now.Suspended != "ada is locked out" ||
		!now.NextDue.IsZero() {
		t.Errorf("%+v, %v", now, err)
	}
	if _, err := conn.Exec(ctx, `INSERT INTO schedules (schedule_id, schedule_name, template_id, cron, time_zone, paused,
		owner_id, owner) SELECT 'x' || n, 'x' || n, $1, '@daily', 'UTC', true, '', '' FROM generate_series(2, $2::int) n`,
		v.TemplateID, schedule.MaxSchedules); err != nil {
		t.Fatal(err)
	}
	twice.TemplateID = v.TemplateID
	if _, err := s.CreateSchedule(ctx, twice); !errors.Is(err, store.ErrConflict) {
		t.Errorf("one too many: %v", err)
	}
	must(t, s.DeleteSchedule(ctx, v.ScheduleID))
	for name, err := range map[string]error{"delete": s.DeleteSchedule(ctx, v.ScheduleID),
		"read": func() error { _, err := s.Schedule(ctx, v.ScheduleID); return err }(),
		"list": func() error { _, err := s.ScheduledStarts(ctx, v.ScheduleID, 1); return err }()} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAStartIsBegunOnce though many servers begin it at the same moment, and not while another schedule's run of the
// same template goes on.
func TestAStartIsBegunOnce(t *testing.T) {
	t.Parallel()
	s, _, v := scheduled(t)
	ctx := t.Context()
	due, now, next, err := s.DueSchedules(ctx)
	if err != nil || len(due) != 1 || !next.IsZero() || time.Since(now).Abs() > time.Minute {
		t.Fatalf("%+v, %s, %s, %v", due, now, next, err)
	}
	second, err := s.CreateSchedule(ctx, engine.Schedule{Name: "second", TemplateID: v.TemplateID, Cron: "@daily",
		TimeZone: "UTC", NextDue: v.NextDue, OwnerID: "u", Owner: "ada"})
	must(t, err)
	var all sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[engine.StartOutcome]int{}
	for range 8 {
		for _, one := range []engine.Schedule{due[0], second} {
			all.Go(func() {
				stored, err := s.BeginStart(ctx, one, startOf(one), time.Now().Add(time.Hour))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(err, store.ErrConflict):
				case err != nil:
					t.Error(err)
				default:
					outcomes[stored[0].Outcome]++
				}
			})
		}
	}
	all.Wait()
	if outcomes[engine.StartBegun] != 1 || outcomes[engine.StartSkipped] != 1 || len(outcomes) != 2 {
		t.Errorf("%v", outcomes)
	}
	if due, _, next, err = s.DueSchedules(ctx); err != nil || len(due) != 0 || next.Before(time.Now()) {
		t.Errorf("%+v, %s, %v", due, next, err)
	}
}

// TestAScheduledRunUnderWay has the next start skipped, with its id, until it has ended or is deleted.
func TestAScheduledRunUnderWay(t *testing.T) {
	t.Parallel()
	s, conn, v := scheduled(t)
	ctx := t.Context()
	begin := func(minute int) engine.ScheduledStart {
		t.Helper()
		due := engine.At(time.Now().Add(time.Duration(minute) * time.Minute).Truncate(time.Second))
		_, err := conn.Exec(ctx, "UPDATE schedules SET next_due = $1", due.Time)
		must(t, err)
		now, err := s.Schedule(ctx, v.ScheduleID)
		must(t, err)
		stored, err := s.BeginStart(ctx, now, startOf(now), time.Now().Add(time.Hour))
		if err != nil || len(stored) != 1 {
			t.Fatalf("%v, %v", stored, err)
		}
		return stored[0]
	}
	st := begin(0)
	must(t, s.CreateRun(ctx, engine.Run{RunID: "r", RunName: "r"}))
	st.RunID = "r"
	must(t, s.FinishStart(ctx, st))
	st.Outcome = engine.StartDone
	must(t, s.FinishStart(ctx, st))
	st.Outcome, st.Reason = engine.StartFailed, "too late"
	must(t, s.FinishStart(ctx, st))
	if got := begin(1); got.Outcome != engine.StartSkipped || !strings.Contains(got.Reason, "run r ") {
		t.Errorf("%+v", got)
	}
	now, err := s.Schedule(ctx, v.ScheduleID)
	if err != nil || now.Last == nil || now.Last.Outcome != engine.StartSkipped {
		t.Errorf("%+v, %v", now.Last, err)
	}
	_, err = conn.Exec(ctx, "UPDATE run_status SET status = 'CANCELLED', phase = NULL WHERE run_id = 'r'")
	must(t, err)
	if got := begin(2); got.Outcome != engine.StartBegun {
		t.Errorf("after it has ended: %+v", got)
	}
	// Its server dies: the start is settled by what the run is. Without a run it has failed.
	if got, err := s.SettleStarts(ctx, time.Minute); err != nil || len(got) != 0 {
		t.Errorf("too early: %+v, %v", got, err)
	}
	if got, err := s.SettleStarts(
		ctx,
		-time.Second,
	); err != nil || len(got) != 1 ||
		got[0].Outcome != engine.StartFailed ||
		got[0].Reason == "" {
		t.Errorf("%+v, %v", got, err)
	}
	st = begin(3)
	st.RunID = "r" // CANCELLED: it was started
	must(t, s.FinishStart(ctx, st))
	if got, err := s.SettleStarts(ctx, -time.Second); err != nil || len(got) != 1 || got[0].Outcome != engine.StartDone {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = conn.Exec(ctx, "DELETE FROM run_status")
	must(t, err)
	starts, err := s.ScheduledStarts(ctx, v.ScheduleID, 10)
	if err != nil || len(starts) != 4 || starts[0].Outcome != engine.StartDone || starts[0].RunID != "" ||
		starts[3].Outcome != engine.StartDone || starts[3].Reason != "" {
		t.Errorf("%+v, %v", starts, err)
	}
}

// TestOldStartsGo: the newest 200 are kept.
func TestOldStartsGo(t *testing.T) {
	t.Parallel()
	s, conn, v := scheduled(t)
	ctx := t.Context()
	_, err := conn.Exec(ctx, `INSERT INTO schedule_starts (schedule_id, due_at, outcome)
		SELECT $1, now() - make_interval(hours => n), 'STARTED' FROM generate_series(1, 300) n`, v.ScheduleID)
	must(t, err)
	_, err = s.BeginStart(ctx, v, []engine.ScheduledStart{{DueAt: v.NextDue, Outcome: engine.StartMissed, Missed: 2,
		Reason: "no server"}}, time.Time{})
	must(t, err)
	starts, err := s.ScheduledStarts(ctx, v.ScheduleID, 500)
	if err != nil || len(starts) != 200 || starts[0].Missed != 2 || fmt.Sprint(starts[0].Outcome) != "MISSED" {
		t.Errorf("%d, %+v, %v", len(starts), starts[0], err)
	}
	if now, err := s.Schedule(ctx, v.ScheduleID); err != nil || !now.Paused || !now.NextDue.IsZero() {
		t.Errorf("without a next time: %+v, %v", now, err)
	}
}

// TestAScheduleOfAnotherTemplate than the one that was checked is not saved.
func TestAScheduleOfAnotherTemplate(t *testing.T) {
	t.Parallel()
	s, _, v := scheduled(t)
	tpl, err := s.Template(t.Context(), v.TemplateID)
	must(t, err)
	tpl.Config.Workload.ConcurrentConnections, tpl.Editor = 7, engine.Actor{ID: "u", Name: "ada"}
	tpl, err = s.UpdateTemplate(t.Context(), tpl)
	must(t, err)
	v.TemplateVersion = tpl.Version - 1
	if _, err := s.UpdateSchedule(t.Context(), v); !engine.HasCode(err, engine.CodeConflict) {
		t.Errorf("a change: %v", err)
	}
	twice := v
	twice.Name = "twice"
	if _, err := s.CreateSchedule(t.Context(), twice); !engine.HasCode(err, engine.CodeConflict) {
		t.Errorf("a new one: %v", err)
	}
	v.TemplateVersion = tpl.Version
	now, err := s.UpdateSchedule(t.Context(), v)
	must(t, err)
	tpl.Config.Workload.ConcurrentConnections, tpl.Editor = 8, engine.Actor{}
	_, err = s.UpdateTemplate(t.Context(), tpl)
	must(t, err)
	if now, err = s.Schedule(
		t.Context(),
		now.ScheduleID,
	); err != nil ||
		!strings.Contains(now.Suspended, "somebody else") {
		t.Errorf("%+v, %v", now, err)
	}
	if now, err = s.UpdateSchedule(t.Context(), now); err != nil || now.Suspended == "" {
		t.Errorf("pausing what is suspended resumes it: %+v, %v", now, err)
	}
}
