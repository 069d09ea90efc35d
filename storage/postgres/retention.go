// This part finds the runs that may go in Postgres, lets them go, and remembers whose files are left over.

package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// RetentionStore implements retention.Store. Its calls last as long as their context and the pool allow.
type RetentionStore struct{ Pool *pgxpool.Pool }

// replayedSQL are the runs that somebody replays, or will.
const replayedSQL = `WITH replayed AS MATERIALIZED (
		SELECT config #>> '{workload,feed,run}' AS run_id FROM test_templates
		UNION SELECT scenario_config #>> '{workload,feed,run}' FROM run_status
			WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED'))
	`

// pin is why the run r stays; $1 are the tags that keep runs.
const pin = `CASE
		WHEN EXISTS (SELECT FROM template_baselines b WHERE b.run_id = r.run_id) THEN 'baseline'
		WHEN EXISTS (SELECT FROM run_notes n WHERE n.run_id = r.run_id AND n.note <> '') THEN 'note'
		WHEN EXISTS (SELECT FROM run_shares s WHERE s.run_id = r.run_id AND s.expires_at > clock_timestamp()) THEN 'share'
		WHEN r.run_id IN (SELECT run_id FROM replayed WHERE run_id IS NOT NULL) THEN 'replay'
		WHEN EXISTS (SELECT FROM matrices m WHERE m.matrix_id = r.matrix_id
			AND m.status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')) THEN 'matrix'
		WHEN r.scenario_config -> 'tags' ?| $1::text[] OR '*' = ANY($1::text[])
			AND coalesce(r.scenario_config -> 'tags', '{}') NOT IN ('{}', 'null') THEN 'tag'
		ELSE '' END`

// LockReplayedRun keeps the run that a scenario replays, until the end of the transaction that saves who replays it:
// one that is being let go of is waited for, and gone then.
func LockReplayedRun(ctx context.Context, tx pgx.Tx, s engine.Scenario) error {
	if s.Workload.Feed == nil || s.Workload.Feed.Run == "" {
		return nil
	}
	_, err := tx.Exec(ctx, "SELECT FROM run_status WHERE run_id = $1 FOR KEY SHARE", s.Workload.Feed.Run)
	return err
}

// IsDeletedPart reports whether a part is one of executions that were deleted; it is a leftover then.
func IsDeletedPart(ctx context.Context, tx pgx.Tx, a engine.Artifact) (late bool, err error) {
	if !record.HoldsExecutions(a.Kind) {
		return false, nil
	}
	err = tx.QueryRow(ctx, "SELECT executions_deleted_at IS NOT NULL FROM run_status WHERE run_id = $1 FOR KEY SHARE",
		a.RunID).Scan(&late)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil // who saves it is told
	}
	if late {
		_, err = tx.Exec(ctx, "SELECT queue_file_deletion($1, false)", a.RunID)
	}
	return late, err
}

// over holds for a run that is over, and everything that follows its end.
const over = `r.status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND r.phase IS DISTINCT FROM 'PROCESSING'
	AND NOT EXISTS (SELECT FROM test_results t WHERE t.test_id = r.run_id AND t.enrichment_status IN ('PENDING', 'RUNNING'))`

// ended is when the run r did.
const ended = "coalesce(r.end_time, r.updated_at)"

// EndedRuns implements retention.Store.
func (k RetentionStore) EndedRuns(ctx context.Context, keepTags []string) ([]store.EndedRun, time.Time, error) {
	var now time.Time
	if err := k.Pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return nil, now, dberr.Failed("asking the control store for the time", err)
	}
	rows, err := k.Pool.Query(ctx, replayedSQL+`SELECT r.run_id, r.test_name, `+ended+`, `+pin+`,
			coalesce(a.parts, 0), coalesce(a.bytes, 0)
		FROM run_status r LEFT JOIN (SELECT run_id, count(*) AS parts, sum(artifact_size_bytes)::bigint AS bytes
			FROM query_execution_artifacts WHERE kind = ANY ($2) GROUP BY run_id) a ON a.run_id = r.run_id
		WHERE `+over+` ORDER BY `+ended+`, r.run_id`, tags(keepTags), record.ExecutionKinds())
	if err != nil {
		return nil, now, dberr.Failed("listing runs that are over", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e store.EndedRun, err error) {
		err = row.Scan(&e.RunID, &e.RunName, &e.EndedAt.Time, &e.Pin, &e.Parts, &e.Bytes)
		e.EndedAt = engine.At(e.EndedAt.Time)
		return e, err
	})
	return list, now, dberr.Failed("listing runs that are over", err)
}

func tags(names []string) []string { return append([]string{}, names...) }

// Expire implements retention.Store.
func (k RetentionStore) Expire(ctx context.Context, e store.Expiry) error {
	err := pgx.BeginFunc(ctx, k.Pool, func(tx pgx.Tx) error {
		// Who makes what keeps a run locks its row, too: they wait for this, and are told that the run is gone, or are waited
		// for. What keeps it is therefore read after the lock, by a statement of its own.
		var gone bool
		err := tx.QueryRow(ctx, "SELECT executions_deleted_at IS NOT NULL FROM run_status WHERE run_id = $1 FOR UPDATE",
			e.RunID).Scan(&gone)
		if errors.Is(err, pgx.ErrNoRows) {
			return dberr.NotFound("run", e.RunID)
		}
		if err != nil {
			return err
		}
		var isOver, young bool
		var pinned store.Pin
		if err := tx.QueryRow(ctx, replayedSQL+"SELECT "+over+", "+ended+" > clock_timestamp() - make_interval(secs => $3), "+
			pin+" FROM run_status r WHERE r.run_id = $2", tags(e.KeepTags), e.RunID,
			e.OlderThan.Seconds()).Scan(&isOver, &young, &pinned); err != nil {
			return err
		}
		switch {
		case !isOver:
			return store.NotExpiredError("it is not over")
		case young && e.OlderThan > 0:
			return store.NotExpiredError(store.TooRecentReason(e.OlderThan))
		case pinned != "":
			return store.NotExpiredError("it is kept, for its " + string(pinned))
		case gone && !e.Whole:
			return store.NotExpiredError("its executions are gone already")
		}
		if _, err = tx.Exec(ctx, "SELECT queue_file_deletion($1, $2)", e.RunID, e.Whole); err != nil {
			return err
		}
		if e.Whole {
			_, err = tx.Exec(ctx, "DELETE FROM run_status WHERE run_id = $1", e.RunID)
		} else {
			_, err = tx.Exec(ctx, `WITH parts AS (DELETE FROM query_execution_artifacts WHERE run_id = $1 AND kind = ANY ($3))
				UPDATE run_status SET executions_deleted_at = clock_timestamp(), executions_deleted_by = $2 WHERE run_id = $1`,
				e.RunID, store.CleanText(e.By), record.ExecutionKinds())
		}
		if err == nil && e.Line.Action != "" {
			err = AppendAuditEntry(ctx, tx, e.Line)
		}
		return err
	})
	return dberr.Failed("letting a run go", err)
}

// RegisterLocation implements retention.Store.
func (k RetentionStore) RegisterLocation(ctx context.Context, p store.FileLocation) error {
	_, err := k.Pool.Exec(ctx, `INSERT INTO result_stores (place, label) VALUES ($1, $2)
		ON CONFLICT (place) DO UPDATE SET label = excluded.label, seen_at = clock_timestamp()`, p.ID,
		store.CleanText(p.Label))
	return dberr.Failed("noting where files are", err)
}

// QueueDeletion implements retention.Store.
func (k RetentionStore) QueueDeletion(ctx context.Context, l store.PendingDeletion) error {
	_, err := k.Pool.Exec(
		ctx,
		`INSERT INTO pending_file_deletions (run_id, place, part, whole, bytes) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (run_id, place, part) DO UPDATE SET whole = pending_file_deletions.whole OR excluded.whole`,
		l.RunID,
		l.Location,
		l.Part,
		l.Whole,
		l.Bytes,
	)
	return dberr.Failed("noting what is left over", err)
}

// PendingDeletions implements retention.Store.
func (k RetentionStore) PendingDeletions(ctx context.Context, place string, most int) ([]store.PendingDeletion, error) {
	rows, err := k.Pool.Query(
		ctx,
		`SELECT run_id, place, whole, part, bytes FROM pending_file_deletions WHERE place IN ($1, '')
		ORDER BY tried_at NULLS FIRST, since, run_id, part LIMIT $2`,
		place,
		most,
	)
	if err != nil {
		return nil, dberr.Failed("looking for what is left over", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[store.PendingDeletion])
	return list, dberr.Failed("looking for what is left over", err)
}

// DeletionFailed implements retention.Store.
func (k RetentionStore) DeletionFailed(ctx context.Context, l store.PendingDeletion, problem string) error {
	_, err := k.Pool.Exec(ctx, `UPDATE pending_file_deletions SET tried_at = clock_timestamp(), problem = $4
		WHERE run_id = $1 AND place = $2 AND part = $3`, l.RunID, l.Location, l.Part, store.CleanText(problem))
	return dberr.Failed("noting that files are not gone", err)
}

// DeletionDone implements retention.Store.
func (k RetentionStore) DeletionDone(ctx context.Context, l store.PendingDeletion) error {
	_, err := k.Pool.Exec(ctx, `DELETE FROM pending_file_deletions WHERE run_id = $1 AND place = $2 AND part = $3
		AND (NOT whole OR $4)`, l.RunID, l.Location, l.Part, l.Whole)
	return dberr.Failed("noting that files are gone", err)
}

// DeletionBacklogs implements retention.Store.
func (k RetentionStore) DeletionBacklogs(ctx context.Context) ([]store.LeftPlace, error) {
	rows, err := k.Pool.Query(ctx, `SELECT l.place, coalesce(p.label, ''), count(DISTINCT l.run_id), min(l.since),
			max(l.tried_at), max(p.seen_at),
			coalesce((array_agg(l.problem ORDER BY l.tried_at DESC) FILTER (WHERE l.problem <> ''))[1], '')
		FROM pending_file_deletions l LEFT JOIN result_stores p USING (place) GROUP BY l.place, p.label ORDER BY l.place`)
	if err != nil {
		return nil, dberr.Failed("summing up what is left over", err)
	}
	list, err := pgx.AppendRows([]store.LeftPlace{}, rows, func(row pgx.CollectableRow) (l store.LeftPlace, err error) {
		var tried, seen *time.Time
		err = row.Scan(&l.Location, &l.Label, &l.Runs, &l.Since.Time, &tried, &seen, &l.Problem)
		l.Since = engine.At(l.Since.Time)
		if tried != nil {
			l.TriedAt = engine.At(*tried)
		}
		if seen != nil {
			l.SeenAt = engine.At(*seen)
		}
		return l, err
	})
	return list, dberr.Failed("summing up what is left over", err)
}
