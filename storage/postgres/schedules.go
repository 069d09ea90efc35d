// This part keeps schedules in Postgres, and what became of their starts.

package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/schedule"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// ScheduleStore implements schedule.Store, but for the lease. Its calls last as long as their context and the pool
// allow.
type ScheduleStore struct{ Pool *pgxpool.Pool }

const (
	scheduleColumns = `s.schedule_id, s.schedule_name, s.template_id, t.template_name, s.cron, s.time_zone, s.paused,
		s.next_due, s.confirmed, ARRAY(SELECT c.connection_name FROM connections c
			WHERE c.connection_id = ANY(s.confirmed) ORDER BY c.connection_name COLLATE "C"),
		s.owner_id, s.owner, s.suspended_reason, s.version, s.updated_by, s.created_at, s.updated_at`
	startColumns = `st.schedule_id, st.due_at, st.outcome, coalesce(st.run_id, ''), coalesce(st.matrix_id, ''), st.missed,
		st.reason, st.noted_at`
	fromSchedules = ` FROM schedules s JOIN test_templates t USING (template_id) `
	// startsKept is how many starts of a schedule are kept.
	startsKept = 200
)

func scheduleScan(row pgx.CollectableRow) (v engine.Schedule, err error) {
	var next *time.Time
	err = row.Scan(&v.ScheduleID, &v.Name, &v.TemplateID, &v.TemplateName, &v.Cron, &v.TimeZone, &v.Paused, &next,
		&v.Confirmed, &v.ConfirmedNames, &v.OwnerID, &v.Owner, &v.Suspended, &v.Version, &v.UpdatedBy, &v.CreatedAt.Time,
		&v.UpdatedAt.Time)
	v.NextDue = instant(next)
	v.CreatedAt, v.UpdatedAt = engine.At(v.CreatedAt.Time), engine.At(v.UpdatedAt.Time)
	return v, err
}

func startScan(row pgx.CollectableRow) (st engine.ScheduledStart, err error) {
	err = row.Scan(&st.ScheduleID, &st.DueAt.Time, &st.Outcome, &st.RunID, &st.MatrixID, &st.Missed, &st.Reason,
		&st.NotedAt.Time)
	st.DueAt, st.NotedAt = engine.At(st.DueAt.Time), engine.At(st.NotedAt.Time)
	return st, err
}

// listSchedules returns schedules with their newest starts.
func listSchedules(ctx context.Context, q querier, where string, args ...any) ([]engine.Schedule, error) {
	rows, err := q.Query(ctx, "SELECT "+scheduleColumns+fromSchedules+where, args...)
	if err != nil {
		return nil, dberr.Failed("listing schedules", err)
	}
	list, err := pgx.CollectRows(rows, scheduleScan)
	if err != nil {
		return nil, dberr.Failed("listing schedules", err)
	}
	ids, places := make([]string, len(list)), map[string]*engine.Schedule{}
	for i := range list {
		ids[i], places[list[i].ScheduleID] = list[i].ScheduleID, &list[i]
	}
	rows, err = q.Query(ctx, `SELECT DISTINCT ON (st.schedule_id) `+startColumns+` FROM schedule_starts st
		WHERE schedule_id = ANY($1) ORDER BY st.schedule_id, st.due_at DESC`, ids)
	if err != nil {
		return nil, dberr.Failed("listing starts", err)
	}
	starts, err := pgx.CollectRows(rows, startScan)
	for _, st := range starts {
		places[st.ScheduleID].Last = &st
	}
	return list, dberr.Failed("listing starts", err)
}

// Schedules implements schedule.Store.
func (s ScheduleStore) Schedules(ctx context.Context) ([]engine.Schedule, error) {
	return listSchedules(ctx, s.Pool, `ORDER BY s.schedule_name COLLATE "C"`)
}

// Schedule implements schedule.Store.
func (s ScheduleStore) Schedule(ctx context.Context, id string) (engine.Schedule, error) {
	list, err := listSchedules(ctx, s.Pool, "WHERE s.schedule_id = $1", id)
	if err != nil {
		return engine.Schedule{}, err
	}
	if len(list) == 0 {
		return engine.Schedule{}, dberr.NotFound("schedule", id)
	}
	return list[0], nil
}

// CreateSchedule implements schedule.Store.
func (s ScheduleStore) CreateSchedule(ctx context.Context, v engine.Schedule) (engine.Schedule, error) {
	if err := engine.CheckName("name", v.Name); err != nil {
		return v, err
	}
	id := uuid.NewString()
	var saved []engine.Schedule
	err := pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := checkedTemplate(ctx, tx, v); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `INSERT INTO schedules (schedule_id, schedule_name, template_id, cron, time_zone, paused,
				next_due, confirmed, owner_id, owner, updated_by)
			SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 WHERE (SELECT count(*) FROM schedules) < $12`,
			id, v.Name, v.TemplateID, v.Cron, v.TimeZone, v.Paused, stamp(v.NextDue.Time), append([]string{}, v.Confirmed...),
			v.OwnerID, store.CleanText(v.Owner), store.CleanText(v.UpdatedBy), schedule.MaxSchedules)
		if err == nil && tag.RowsAffected() == 0 {
			return dberr.Conflict(fmt.Sprintf("There are %d schedules already.", schedule.MaxSchedules),
				"Delete one that is not needed any more.")
		}
		if err == nil {
			saved, err = listSchedules(ctx, tx, "WHERE s.schedule_id = $1", id)
		}
		return err
	})
	if err != nil {
		return v, savingSchedule(v, err)
	}
	return saved[0], nil
}

// checkedTemplate is an error when a template is another than the one whose use was checked. It stays as it is until tx
// ends.
func checkedTemplate(ctx context.Context, tx pgx.Tx, v engine.Schedule) error {
	if v.TemplateVersion == 0 {
		return nil
	}
	var version int64
	err := tx.QueryRow(ctx, "SELECT version FROM test_templates WHERE template_id = $1 FOR SHARE", v.TemplateID).
		Scan(&version)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return dberr.NotFound("template", v.TemplateID)
	case err == nil && version != v.TemplateVersion:
		return dberr.Conflict("The template was changed while the schedule was saved.", "Look at it, and save again.")
	}
	return err
}

// suspendOthers suspends the schedules of a template whose owners have not made the change: its runs would do what
// somebody else has written, with the rights of the owner. What was confirmed was another load.
func suspendOthers(ctx context.Context, tx pgx.Tx, templateID string, by engine.Actor) error {
	who := "somebody else"
	if by.Name != "" {
		who = by.Name
	}
	_, err := tx.Exec(ctx, `UPDATE schedules SET suspended_reason = $3, next_due = NULL, confirmed = '{}'
		WHERE template_id = $1 AND owner_id <> $2`, templateID, by.ID, store.CleanText("the template was changed by "+who+
		", who does not own the schedule; look at it, and save the schedule again"))
	return err
}

// savingSchedule is the error of a schedule that could not be saved.
func savingSchedule(v engine.Schedule, err error) error {
	err = dberr.Saving("schedule", v.Name, err)
	if errors.Is(err, store.ErrNotFound) {
		return dberr.NotFound("template", v.TemplateID)
	}
	return err
}

// UpdateSchedule implements schedule.Store.
func (s ScheduleStore) UpdateSchedule(ctx context.Context, v engine.Schedule) (engine.Schedule, error) {
	old, err := s.Schedule(ctx, v.ScheduleID)
	if err == nil && old.Name != v.Name {
		err = engine.CheckName("name", v.Name)
	}
	if err != nil {
		return v, err
	}
	var saved []engine.Schedule
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := checkedTemplate(ctx, tx, v); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `UPDATE schedules SET schedule_name = $3, template_id = $4, cron = $5, time_zone = $6,
				paused = $7, next_due = $8, confirmed = $9, owner_id = $10, owner = $11, updated_by = $12,
				suspended_reason = $13, version = version + 1, updated_at = clock_timestamp()
			WHERE schedule_id = $1 AND version = $2`,
			v.ScheduleID, v.Version, v.Name, v.TemplateID, v.Cron, v.TimeZone, v.Paused, stamp(v.NextDue.Time),
			append([]string{}, v.Confirmed...), v.OwnerID, store.CleanText(v.Owner), store.CleanText(v.UpdatedBy),
			store.CleanText(v.Suspended))
		if err == nil && tag.RowsAffected() == 1 {
			saved, err = listSchedules(ctx, tx, "WHERE s.schedule_id = $1", v.ScheduleID)
		}
		return err
	})
	if err != nil {
		return v, savingSchedule(v, err)
	}
	if len(saved) == 0 {
		if old, err = s.Schedule(ctx, v.ScheduleID); err != nil {
			return v, err
		}
		return v, store.ConcurrentEditError("schedule", old.Name, old.UpdatedBy, old.UpdatedAt, old.Version)
	}
	return saved[0], nil
}

// DeleteSchedule implements schedule.Store.
func (s ScheduleStore) DeleteSchedule(ctx context.Context, id string) error {
	tag, err := s.Pool.Exec(ctx, "DELETE FROM schedules WHERE schedule_id = $1", id)
	if err == nil && tag.RowsAffected() == 0 {
		return dberr.NotFound("schedule", id)
	}
	return dberr.Failed("deleting a schedule", err)
}

// SuspendSchedule implements schedule.Store.
func (s ScheduleStore) SuspendSchedule(ctx context.Context, id string, version int64, reason string) error {
	_, err := s.Pool.Exec(ctx, `UPDATE schedules SET suspended_reason = $3, next_due = NULL
		WHERE schedule_id = $1 AND version = $2 AND suspended_reason = ''`, id, version, store.CleanText(reason))
	return dberr.Failed("suspending a schedule", err)
}

// ScheduledStarts implements schedule.Store.
func (s ScheduleStore) ScheduledStarts(ctx context.Context, id string, limit int) ([]engine.ScheduledStart, error) {
	if _, err := s.Schedule(ctx, id); err != nil {
		return nil, err
	}
	rows, err := s.Pool.Query(ctx, "SELECT "+startColumns+` FROM schedule_starts st WHERE st.schedule_id = $1
		ORDER BY st.due_at DESC LIMIT $2`, id, limit)
	if err != nil {
		return nil, dberr.Failed("listing starts", err)
	}
	list, err := pgx.CollectRows(rows, startScan)
	return list, dberr.Failed("listing starts", err)
}

// DueSchedules implements schedule.Store.
func (s ScheduleStore) DueSchedules(ctx context.Context) (due []engine.Schedule, now, next time.Time, err error) {
	var soonest *time.Time
	if err := s.Pool.QueryRow(ctx, `SELECT c.now, (SELECT min(next_due) FROM schedules WHERE next_due > c.now)
		FROM (SELECT clock_timestamp() AS now) c`).Scan(&now, &soonest); err != nil {
		return nil, now, next, dberr.Failed("reading the clock", err)
	}
	if soonest != nil {
		next = *soonest
	}
	due, err = listSchedules(ctx, s.Pool, "WHERE s.next_due <= $1 ORDER BY s.next_due, s.schedule_id", now)
	return due, now, next, err
}

// busyStart finds a scheduled run of the template $1 that is under way: its id, or "" for one that is being started.
const busyStart = `SELECT coalesce(st.run_id, st.matrix_id, '') FROM schedule_starts st
	JOIN schedules s USING (schedule_id)
	LEFT JOIN run_status r ON r.run_id = st.run_id LEFT JOIN matrices m ON m.matrix_id = st.matrix_id
	WHERE s.template_id = $1 AND (st.outcome = 'STARTING'
		OR st.outcome = 'STARTED' AND coalesce(r.status, m.status) IN ('PREPARED', 'RUNNING', 'STOPPING', 'CANCELLING'))
	LIMIT 1`

// BeginStart implements schedule.Store. Starts of one template follow each other here.
func (s ScheduleStore) BeginStart(ctx context.Context, v engine.Schedule, starts []engine.ScheduledStart,
	next time.Time) (stored []engine.ScheduledStart, err error) {
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT FROM test_templates WHERE template_id = $1 FOR NO KEY UPDATE",
			v.TemplateID); err != nil {
			return err
		}
		// Without a next time it is paused: the constraint has it so.
		tag, err := tx.Exec(ctx, `UPDATE schedules SET next_due = $4, paused = $4::timestamptz IS NULL
			WHERE schedule_id = $1 AND version = $2 AND next_due = $3`, v.ScheduleID, v.Version, v.NextDue.Time, stamp(next))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return store.ErrConflict
		}
		for _, st := range starts {
			if err := skipIfBusy(ctx, tx, v.TemplateID, &st); err != nil {
				return err
			}
			rows, err := tx.Query(ctx, `INSERT INTO schedule_starts AS st (schedule_id, due_at, outcome, missed, reason)
				VALUES ($1, $2, $3, $4, $5) ON CONFLICT (schedule_id, due_at) DO UPDATE
					SET outcome = excluded.outcome, missed = excluded.missed, reason = excluded.reason,
						noted_at = excluded.noted_at
				RETURNING `+startColumns, v.ScheduleID, st.DueAt.Time, st.Outcome, st.Missed, st.Reason)
			if err == nil {
				st, err = pgx.CollectExactlyOneRow(rows, startScan)
			}
			if err != nil {
				return err
			}
			stored = append(stored, st)
		}
		_, err = tx.Exec(ctx, `DELETE FROM schedule_starts WHERE schedule_id = $1 AND due_at < (
			SELECT due_at FROM schedule_starts WHERE schedule_id = $1 ORDER BY due_at DESC OFFSET $2 LIMIT 1)`,
			v.ScheduleID, startsKept-1)
		return err
	})
	if errors.Is(err, store.ErrConflict) {
		return nil, err
	}
	return stored, dberr.Failed("starting a schedule", err)
}

// skipIfBusy has a start skipped while a scheduled run of the template is under way.
func skipIfBusy(ctx context.Context, tx pgx.Tx, templateID string, st *engine.ScheduledStart) error {
	if st.Outcome != engine.StartBegun {
		return nil
	}
	var running string
	err := tx.QueryRow(ctx, busyStart, templateID).Scan(&running)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	st.Outcome, st.Reason = engine.StartSkipped, "The scheduled run before it was still under way."
	if running != "" {
		st.Reason = fmt.Sprintf("The scheduled run %s was still under way.", running)
	}
	return nil
}

// FinishStart implements schedule.Store.
func (s ScheduleStore) FinishStart(ctx context.Context, st engine.ScheduledStart) error {
	_, err := s.Pool.Exec(ctx, `UPDATE schedule_starts SET outcome = $3, reason = $4, noted_at = clock_timestamp(),
			run_id = (SELECT run_id FROM run_status WHERE run_id = $5),
			matrix_id = (SELECT matrix_id FROM matrices WHERE matrix_id = $6)
		WHERE schedule_id = $1 AND due_at = $2 AND outcome = 'STARTING'`,
		st.ScheduleID, st.DueAt.Time, st.Outcome, store.CleanText(st.Reason), st.RunID, st.MatrixID)
	return dberr.Failed("storing a start", err)
}

// SettleStarts implements schedule.Store.
func (s ScheduleStore) SettleStarts(ctx context.Context, longer time.Duration) ([]engine.ScheduledStart, error) {
	rows, err := s.Pool.Query(ctx, `WITH known AS (
			SELECT o.schedule_id, o.due_at, coalesce(r.status, m.status, 'PREPARED') <> 'PREPARED' AS started
			FROM schedule_starts o LEFT JOIN run_status r ON r.run_id = o.run_id
				LEFT JOIN matrices m ON m.matrix_id = o.matrix_id
			WHERE o.outcome = 'STARTING' AND o.noted_at < clock_timestamp() - make_interval(secs => $1))
		UPDATE schedule_starts st SET noted_at = clock_timestamp(),
			outcome = CASE WHEN started THEN 'STARTED' ELSE 'FAILED' END,
			reason = CASE WHEN started THEN '' ELSE 'The server ended while it started the run.' END
		FROM known WHERE (st.schedule_id, st.due_at) = (known.schedule_id, known.due_at) AND st.outcome = 'STARTING'
		RETURNING `+startColumns, longer.Seconds())
	if err != nil {
		return nil, dberr.Failed("settling starts", err)
	}
	list, err := pgx.CollectRows(rows, startScan)
	return list, dberr.Failed("settling starts", err)
}
