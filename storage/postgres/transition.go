package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// Transition implements writer.Store: one conditional UPDATE that also takes the
// sequence ids, and its events, in one transaction.
func (s *Store) Transition(ctx context.Context, t store.Transition) ([]engine.Event, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	set := []string{"updated_at = now()"}
	var args []any
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	where := "run_id = " + arg(t.RunID)
	if t.Epoch != 0 {
		where += " AND owner_epoch = " + arg(t.Epoch)
	}
	if len(t.From) > 0 {
		where += " AND status = ANY(" + arg(texts(t.From)) + "::text[])"
	}
	if t.To != "" {
		set = append(set, "status = "+arg(string(t.To)))
	}
	if t.Owner != "" {
		set = append(set, "owner = "+arg(t.Owner), "lease_until = clock_timestamp() + make_interval(secs => "+
			arg(s.Lease().Seconds())+")")
	}
	if t.Phase != nil {
		set = append(set, "phase = "+arg(orNull(*t.Phase)))
	}
	for _, c := range []struct {
		column string
		at     time.Time
	}{
		{"start_time", t.StartTime}, {"warmup_start_time", t.WarmupStartTime}, {"warmup_end_time", t.WarmupEndTime},
		{"measurement_end_time", t.MeasurementEndTime}, {"end_time", t.EndTime},
	} {
		if !c.at.IsZero() {
			set = append(set, c.column+" = "+arg(c.at.UTC()))
		}
	}
	if t.StopReason != "" {
		set = append(set, "stop_reason = "+arg(string(t.StopReason)))
	}
	if t.CancellationReason != "" {
		set = append(set, "cancellation_reason = "+arg(store.CleanText(t.CancellationReason)))
	}
	if t.WorkerTargets != nil {
		targets, err := document("worker targets", t.WorkerTargets)
		if err != nil {
			return nil, err
		}
		set = append(set, "worker_targets = worker_targets || "+arg(targets)+"::jsonb")
	}
	if t.WorkersExpected > 0 {
		set = append(set, "total_workers_expected = "+arg(t.WorkersExpected))
	}
	if t.Rules != nil {
		rules, err := document("rules", t.Rules)
		if err != nil {
			return nil, err
		}
		set = append(set, "rules_state = "+arg(rules))
	}
	if n := len(t.Events); n > 0 {
		set = append(set, "next_sequence_id = next_sequence_id + "+arg(n))
	}
	update := "UPDATE run_status SET " + strings.Join(set, ", ") + " WHERE " + where + " RETURNING next_sequence_id"

	var events []engine.Event
	err := s.Admit(ctx, t.RunID, t.Admission, func(tx pgx.Tx) error {
		var next int64
		if err := tx.QueryRow(ctx, update, args...).Scan(&next); err != nil {
			return err
		}
		if t.To.Terminal() || t.To == engine.StatusRunning {
			// The parent's result follows the run, so that no list contradicts itself.
			if _, err := tx.Exec(ctx, `UPDATE test_results SET status = $2, start_time = coalesce($3, start_time),
				end_time = coalesce($4, end_time), updated_at = now() WHERE test_id = $1`,
				t.RunID, string(t.To), stamp(t.StartTime), stamp(t.EndTime)); err != nil {
				return err
			}
		}
		err := appendLogs(ctx, tx, t.RunID, t.Logs)
		if err != nil {
			return err
		}
		events, err = appendEvents(ctx, tx, t.RunID, next-int64(len(t.Events)), t.Events)
		return err
	})
	if err == nil {
		return events, nil
	}
	if lookupErr := dberr.Reading("run", t.RunID, err); !engine.HasCode(lookupErr, engine.CodeNotFound) {
		return nil, dberr.Failed("changing run", err)
	}
	return nil, s.explain(ctx, t)
}

// explain says why a conditional change found no row.
func (s *Store) explain(ctx context.Context, t store.Transition) error {
	run, err := s.Run(ctx, t.RunID)
	if err != nil {
		return err
	}
	if t.Epoch != 0 && run.OwnerEpoch != t.Epoch {
		return fmt.Errorf("changing run: %w (epoch %d, not %d)", store.ErrFenced, run.OwnerEpoch, t.Epoch)
	}
	doing := "changed"
	if t.To != "" {
		doing = "made " + string(t.To)
	}
	return dberr.Conflict(fmt.Sprintf("The run is %s and cannot be %s.", run.Status, doing), "")
}

func appendEvents(ctx context.Context, tx pgx.Tx, runID string, first int64, events []engine.Event) ([]engine.Event,
	error) {
	if len(events) == 0 {
		return nil, nil
	}
	out := make([]engine.Event, len(events))
	ids, kinds, data := make([]string, len(events)), make([]string, len(events)), make([]string, len(events))
	at := make([]time.Time, len(events))
	for i, e := range events {
		if e.Data.Scope == "" {
			e.Data.Scope = engine.ScopeRun
		}
		if e.EventID == "" {
			e.EventID = newID()
		}
		e.RunID, e.SequenceID = runID, first+int64(i)
		if e.CreatedAt.IsZero() {
			e.CreatedAt.Time = time.Now()
		}
		e.CreatedAt = engine.At(e.CreatedAt.Truncate(time.Microsecond))
		at[i] = e.CreatedAt.Time
		body, err := document("event", e.Data)
		if err != nil {
			return nil, err
		}
		out[i], ids[i], kinds[i], data[i] = e, e.EventID, string(e.Type), string(body)
	}
	_, err := tx.Exec(
		ctx,
		`INSERT INTO run_control_events (event_id, run_id, event_type, event_data, sequence_id, created_at)
		SELECT e.id, $1, e.kind, e.data::jsonb, $2 + e.n - 1, e.at
		FROM unnest($3::timestamptz[], $4::text[], $5::text[], $6::text[]) WITH ORDINALITY AS e(at, id, kind, data, n) ORDER BY e.n`,
		runID,
		first,
		at,
		ids,
		kinds,
		data,
	)
	return out, err
}

// Events implements writer.Store.
func (s *Store) Events(ctx context.Context, runID string, after int64, only ...engine.EventType) ([]engine.Event,
	error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `SELECT event_id, run_id, event_type, sequence_id, event_data, created_at
		FROM run_control_events WHERE run_id = $1 AND sequence_id > $2 AND ($3::text[] IS NULL OR event_type = ANY($3))
		ORDER BY sequence_id`, runID, after, only)
	if err != nil {
		return nil, dberr.Failed("reading events", err)
	}
	events, err := pgx.CollectRows(rows, toEvent)
	return events, dberr.Failed("reading events", err)
}

func toEvent(row pgx.CollectableRow) (e engine.Event, err error) {
	var data []byte
	if err := row.Scan(&e.EventID, &e.RunID, &e.Type, &e.SequenceID, &data, &e.CreatedAt.Time); err != nil {
		return e, err
	}
	e.CreatedAt = engine.At(e.CreatedAt.Time)
	return e, parse("event", data, &e.Data)
}
