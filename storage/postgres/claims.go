package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// RefreshState implements refresh.Refreshes. It reads one snapshot, so that what it says fits together.
func (q RefreshQueue) RefreshState(ctx context.Context, runs int) (s refresh.State, err error) {
	s.Runs = map[string][]string{}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, q.Pool, options, func(tx pgx.Tx) error {
		var now time.Time
		behind := map[string]engine.Time{}
		var batch pgx.Batch
		batch.Queue("SELECT clock_timestamp()").QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
		batch.Queue("SELECT " + columns + from + " ORDER BY t.name").Query(func(rows pgx.Rows) (err error) {
			s.Tables, err = pgx.CollectRows(rows, table)
			return err
		})
		batch.Queue("SELECT dynamic_table, subtask, priority, next_refresh_due FROM pending_refreshes").Query(
			func(rows pgx.Rows) (err error) {
				s.Pending, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p refresh.Pending, err error) {
					err = row.Scan(&p.Table, &p.Subtask, &p.Priority, &p.Due.Time)
					p.Due = engine.At(p.Due.Time)
					return p, err
				})
				return err
			})
		batch.Queue("SELECT " + claimColumns + " FROM refresh_claims").Query(func(rows pgx.Rows) (err error) {
			s.Claims, err = pgx.CollectRows(rows, scanClaim)
			return err
		})
		batch.Queue(presentWorkers, refresh.WorkerTTL.Seconds()).Query(func(rows pgx.Rows) (err error) {
			s.Workers, err = pgx.CollectRows(rows, worker)
			return err
		})
		batch.Queue(staleRunsSQL, runs).Query(func(rows pgx.Rows) error {
			var name, run string
			var active bool
			var since time.Time
			_, err := pgx.ForEachRow(rows, []any{&name, &active, &run, &since}, func() error {
				if active {
					s.Runs[name] = append(s.Runs[name], run)
				}
				behind[name] = engine.At(since)
				return nil
			})
			return err
		})
		err := tx.SendBatch(ctx, &batch).Close()
		s.Now = engine.At(now)
		for i, t := range s.Tables {
			if t.Kind == refresh.Ingest {
				s.Tables[i].BehindSince = behind[t.Name]
			}
		}
		return err
	})
	return s, dberr.Failed("reading what is to be refreshed", err)
}

// staleSQL are the runs of an INGEST table t that have ended or changed since they were taken in, those that could not
// be taken in, and those that are gone, each with since when, and whether it is given up: it has failed too often, and
// nothing has changed since. What the table did not wait for before does not count: it was made since, or asked to take
// the run in once more.
const staleSQL = `SELECT r.run_id, r.created_at AS at, greatest(r.updated_at, p.updated_at, t.created_at, s.asked_at) AS since,
				coalesce(s.status = 'FAILED' AND s.as_of >= greatest(r.updated_at, p.updated_at), false) AS given_up
			FROM run_status r JOIN test_results p ON p.test_id = r.run_id
			LEFT JOIN refresh_subtasks s ON s.dynamic_table = t.name AND s.subtask = r.run_id
			WHERE r.phase IS NULL AND r.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
				AND (s.as_of IS NULL OR s.status <> 'DONE' OR greatest(r.updated_at, p.updated_at, s.asked_at) > s.as_of)
		UNION ALL
		SELECT s.subtask, s.updated_at, s.updated_at, s.status = 'FAILED' FROM refresh_subtasks s
			WHERE s.dynamic_table = t.name AND NOT EXISTS (SELECT FROM run_status r WHERE r.run_id = s.subtask)`

// staleRunsSQL are the first of them of each table that somebody should refresh, oldest first, with since when the
// oldest change waits, those that are given up last.
const staleRunsSQL = `SELECT t.name, t.status = 'ACTIVE' AND NOT x.given_up, x.run_id, x.since
	FROM dynamic_tables t CROSS JOIN LATERAL (SELECT run_id, at, min(since) OVER () AS since, given_up
		FROM (` + staleSQL + `) y ORDER BY given_up, at, run_id LIMIT $1) x
	WHERE t.kind = 'INGEST' AND t.status <> 'SUSPENDED'`

// IngestPending tells whether an INGEST table that is active is still to take in a run, as it is now.
func (q RefreshQueue) IngestPending(ctx context.Context, table, runID string) (pending bool, err error) {
	err = q.Pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM dynamic_tables t CROSS JOIN LATERAL (`+staleSQL+`) x
		WHERE t.name = $1 AND t.kind = 'INGEST' AND t.status = 'ACTIVE' AND x.run_id = $2 AND NOT x.given_up)`, table,
		runID).Scan(&pending)
	return pending, dberr.Failed("asking whether a run is taken in", err)
}

// TakenIn lists the runs that an INGEST table has taken in, as far as nothing of them has failed since.
func (q RefreshQueue) TakenIn(ctx context.Context, table string) ([]string, error) {
	rows, err := q.Pool.Query(ctx, `SELECT subtask FROM refresh_subtasks WHERE dynamic_table = $1 AND status = 'DONE'
		AND as_of IS NOT NULL`, table)
	if err != nil {
		return nil, dberr.Failed("reading which runs were taken in", err)
	}
	runs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return runs, dberr.Failed("reading which runs were taken in", err)
}

// TakeInAgain has runs that were taken in be taken in once more, though nothing of them has changed.
func (q RefreshQueue) TakeInAgain(ctx context.Context, table string, runs []string) (n int64, err error) {
	tag, err := q.Pool.Exec(ctx, `UPDATE refresh_subtasks SET as_of = NULL, asked_at = clock_timestamp()
		WHERE dynamic_table = $1 AND subtask = ANY ($2) AND status = 'DONE' AND as_of IS NOT NULL`, table, runs)
	return tag.RowsAffected(), dberr.Failed("having runs taken in again", err)
}

// ScheduleRefreshes implements refresh.Refreshes.
func (q RefreshQueue) ScheduleRefreshes(ctx context.Context, s refresh.Schedule) error {
	if len(s.Enqueue)+len(s.Due) == 0 {
		return nil
	}
	return dberr.Failed("putting refreshes into the queue", retryDeadlocks(func() error { return q.enqueue(ctx, s) }))
}

// enqueue puts entries in first, as who releases locks an entry and then the table.
func (q RefreshQueue) enqueue(ctx context.Context, s refresh.Schedule) error {
	var batch pgx.Batch
	if len(s.Enqueue) > 0 {
		var names, subtasks []string
		var priorities []int
		var dues []time.Time
		for _, p := range s.Enqueue {
			names, subtasks = append(names, p.Table), append(subtasks, p.Subtask)
			priorities, dues = append(priorities, p.Priority), append(dues, p.Due.Time)
		}
		// A table that was suspended or dropped meanwhile is left out.
		batch.Queue(`INSERT INTO pending_refreshes (dynamic_table, subtask, priority, next_refresh_due)
			SELECT e.name, e.subtask, e.priority, e.due
			FROM unnest($1::text[], $2::text[], $3::integer[], $4::timestamptz[]) AS e (name, subtask, priority, due)
				JOIN dynamic_tables t ON t.name = e.name AND t.status = 'ACTIVE'
			ORDER BY e.name, e.subtask ON CONFLICT DO NOTHING`, names, subtasks, priorities, dues)
	}
	if len(s.Due) > 0 {
		var names []string
		var dues []*time.Time
		for name, due := range s.Due {
			at := &due.Time
			if due.IsZero() {
				at = nil
			}
			names, dues = append(names, name), append(dues, at)
		}
		// Locked in the order of names, as release_refresh does.
		batch.Queue(`WITH due AS (SELECT * FROM unnest($1::text[], $2::timestamptz[]) AS d (name, at)),
				locked AS MATERIALIZED (SELECT t.name, d.at FROM dynamic_tables t JOIN due d USING (name)
					ORDER BY t.name FOR NO KEY UPDATE OF t)
			UPDATE dynamic_tables t SET next_refresh_due = l.at FROM locked l WHERE t.name = l.name`, names, dues)
	}
	return q.Pool.SendBatch(ctx, &batch).Close()
}

const claimColumns = "dynamic_table, subtask, worker_id, epoch, claimed_at, heartbeat_at, expires_at"

func scanClaim(row pgx.CollectableRow) (c refresh.Claim, err error) {
	err = row.Scan(&c.Table, &c.Subtask, &c.Worker, &c.Epoch, &c.ClaimedAt.Time, &c.HeartbeatAt.Time, &c.ExpiresAt.Time)
	c.ClaimedAt, c.HeartbeatAt = engine.At(c.ClaimedAt.Time), engine.At(c.HeartbeatAt.Time)
	c.ExpiresAt = engine.At(c.ExpiresAt.Time)
	return c, err
}

// ClaimRefreshes implements refresh.Refreshes. Where Postgres has ended it for a deadlock with another claimer, nothing
// is claimed, and it is tried again.
func (q RefreshQueue) ClaimRefreshes(
	ctx context.Context,
	worker string,
	life time.Duration,
	most int,
	kinds ...refresh.Kind,
) (
	claims []refresh.Claim, err error) {
	back, err := q.Limiter.acquire(ctx, most)
	if err != nil {
		return nil, dberr.Failed("claiming refreshes", err)
	}
	defer back()
	err = retryDeadlocks(func() error {
		rows, err := q.Pool.Query(ctx, "SELECT "+claimColumns+" FROM claim_refreshes($1, $2, $3, $4)", worker, most,
			life.Seconds(), kinds)
		if err != nil {
			return err
		}
		claims, err = pgx.CollectRows(rows, scanClaim)
		return err
	})
	return claims, dberr.Failed("claiming refreshes", err)
}

const (
	codeDeadlock = "40P01"
	maxDeadlocks = 10
)

// retryDeadlocks tries again what Postgres has ended because another session waited for it, too.
func retryDeadlocks(try func() error) (err error) {
	for range maxDeadlocks {
		err = try()
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != codeDeadlock {
			break
		}
	}
	return err
}

// RaiseRefreshEpochs has claims from now on get epochs above one that a results database or account has seen. They are
// ahead by some, so that claims that are made meanwhile do not pass it. Where they are above it already nothing is
// raised.
func (q RefreshQueue) RaiseRefreshEpochs(ctx context.Context, above int64) (raised bool, err error) {
	tag, err := q.Pool.Exec(ctx, "SELECT setval('refresh_epochs', $1 + 1000) FROM refresh_epochs WHERE last_value < $1",
		above)
	return tag.RowsAffected() > 0, dberr.Failed("raising the epochs of claims", err)
}

// RenewRefresh implements refresh.Refreshes.
func (q RefreshQueue) RenewRefresh(ctx context.Context, c refresh.Claim, life time.Duration) error {
	tag, err := q.Pool.Exec(
		ctx,
		`UPDATE refresh_claims SET heartbeat_at = n.now, expires_at = n.now + make_interval(secs => $4)
		FROM (SELECT clock_timestamp() AS now) n
		WHERE dynamic_table = $1 AND subtask = $2 AND epoch = $3 AND expires_at > clock_timestamp()`,
		c.Table,
		c.Subtask,
		c.Epoch,
		life.Seconds(),
	)
	if err == nil && tag.RowsAffected() == 0 {
		return lostClaim(c)
	}
	return dberr.Failed("renewing the claim on a refresh", err)
}

func lostClaim(c refresh.Claim) error {
	return fmt.Errorf("refreshing %s %s at epoch %d: %w", c.Table, c.Subtask, c.Epoch, store.ErrClaimLost)
}

// ReleaseRefresh implements refresh.Refreshes.
func (q RefreshQueue) ReleaseRefresh(ctx context.Context, c refresh.Claim, r refresh.Result) error {
	if len(r.Parts) > 0 {
		return q.divide(ctx, c, r)
	}
	return q.release(ctx, c, r)
}

// divide has the parts of a table refreshed in the place of all of it.
func (q RefreshQueue) divide(ctx context.Context, c refresh.Claim, r refresh.Result) error {
	var held bool
	err := retryDeadlocks(func() error {
		return q.Pool.QueryRow(
			ctx,
			"SELECT divide_refresh($1, $2, $3, $4)",
			c.Table,
			c.Epoch,
			r.Parts,
			r.ReplaceParts,
		).Scan(
			&held,
		)
	})
	if err == nil && !held {
		return lostClaim(c)
	}
	return dberr.Failed("dividing a refresh", err)
}

// release ends one claim.
func (q RefreshQueue) release(ctx context.Context, c refresh.Claim, r refresh.Result) error {
	var held bool
	err := retryDeadlocks(func() error {
		return q.Pool.QueryRow(ctx, "SELECT release_refresh($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)", c.Table,
			c.Subtask, c.Epoch, store.CleanText(r.Error), string(r.Mode), store.CleanText(r.Note), r.Rows, r.Bytes, r.Unchanged,
			r.Gone, pauses()).Scan(&held)
	})
	if err == nil && !held {
		return lostClaim(c)
	}
	return dberr.Failed("releasing the claim on a refresh", err)
}

// ReleaseRefreshes implements refresh.Refreshes. The claims end in the order of their tasks, so that two that end
// several at once seldom wait for each other.
func (q RefreshQueue) ReleaseRefreshes(
	ctx context.Context,
	ended []refresh.Completion,
) (lost []refresh.Claim, err error) {
	if len(ended) == 1 {
		err := q.release(ctx, ended[0].Claim, ended[0].Result)
		if errors.Is(err, store.ErrClaimLost) {
			return []refresh.Claim{ended[0].Claim}, nil
		}
		return nil, err
	}
	ended = slices.Clone(ended)
	slices.SortFunc(ended, func(a, b refresh.Completion) int {
		return cmp.Or(strings.Compare(a.Claim.Table, b.Claim.Table), strings.Compare(a.Claim.Subtask, b.Claim.Subtask))
	})
	var tables, subtasks, failures, modes, notes []string
	var epochs, rows, bytes []int64
	var unchanged, gone []bool
	for _, e := range ended {
		tables, subtasks = append(tables, e.Claim.Table), append(subtasks, e.Claim.Subtask)
		epochs, failures = append(epochs, e.Claim.Epoch), append(failures, store.CleanText(e.Result.Error))
		modes, notes = append(modes, string(e.Result.Mode)), append(notes, store.CleanText(e.Result.Note))
		rows, bytes = append(rows, e.Result.Rows), append(bytes, e.Result.Bytes)
		unchanged, gone = append(unchanged, e.Result.Unchanged), append(gone, e.Result.Gone)
	}
	back, err := q.Limiter.acquire(ctx, len(ended))
	if err != nil {
		return nil, dberr.Failed("releasing claims on refreshes", err)
	}
	defer back()
	err = retryDeadlocks(func() error {
		answers, err := q.Pool.Query(ctx, "SELECT release_refreshes($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)", tables,
			subtasks, epochs, failures, modes, notes, rows, bytes, unchanged, gone, pauses())
		if err != nil {
			return err
		}
		held, err := pgx.CollectRows(answers, pgx.RowTo[int64])
		lost = nil
		for _, e := range ended {
			if !slices.Contains(held, e.Claim.Epoch) {
				lost = append(lost, e.Claim)
			}
		}
		return err
	})
	return lost, dberr.Failed("releasing claims on refreshes", err)
}

// AbandonRefresh implements refresh.Refreshes.
func (q RefreshQueue) AbandonRefresh(ctx context.Context, c refresh.Claim, after time.Duration) error {
	if after <= 0 {
		_, err := q.Pool.Exec(ctx, `WITH gone AS (DELETE FROM refresh_claims WHERE dynamic_table = $1 AND subtask = $2
			AND epoch = $3 RETURNING 1) SELECT pg_notify('loadstone_refresh', '') FROM gone`, c.Table, c.Subtask, c.Epoch)
		return dberr.Failed("giving the claim on a refresh back", err)
	}
	// The entry first and the claim then, as everybody locks them. Nobody is to be woken for what has to wait.
	var batch pgx.Batch
	batch.Queue(`UPDATE pending_refreshes p SET next_refresh_due = clock_timestamp() + make_interval(secs => $4)
		WHERE dynamic_table = $1 AND subtask = $2 AND EXISTS (SELECT FROM refresh_claims c WHERE c.dynamic_table = $1
			AND c.subtask = $2 AND c.epoch = $3)`, c.Table, c.Subtask, c.Epoch, after.Seconds())
	batch.Queue("DELETE FROM refresh_claims WHERE dynamic_table = $1 AND subtask = $2 AND epoch = $3", c.Table, c.Subtask,
		c.Epoch)
	return dberr.Failed("giving the claim on a refresh back", q.Pool.SendBatch(ctx, &batch).Close())
}

// SweepRefreshes implements refresh.Refreshes. It moves the bounds of the queue, too, from where claimers look.
func (q RefreshQueue) SweepRefreshes(ctx context.Context) (int, error) {
	tag, err := q.Pool.Exec(ctx, "DELETE FROM refresh_claims WHERE expires_at <= clock_timestamp()")
	if err != nil {
		return 0, dberr.Failed("removing expired claims", err)
	}
	_, err = q.Pool.Exec(ctx, "SELECT raise_refresh_bounds()")
	return int(tag.RowsAffected()), dberr.Failed("moving the bounds of the queue of refreshes", err)
}
