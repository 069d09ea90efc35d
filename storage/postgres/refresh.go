// This part keeps the definitions of derived tables, the queue of their refreshes and the
// claims of workers in Postgres.

package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// RefreshQueue implements refresh.Refreshes. Its calls last as long as their context and the pool allow.
type RefreshQueue struct {
	Pool *pgxpool.Pool
	// Limiter bounds how many calls about several entries are under way; nil does not.
	Limiter ClaimLimiter
}

// ClaimLimiter are taken by who claims or releases several entries in one call. Many sessions that do so at once are in
// each other's way: each passes by what the others have locked, and reads what they have just written. A few at a time
// get more done. Who claims or releases a single one takes none: commits of many sessions share one write to the disk.
type ClaimLimiter chan struct{}

// NewClaimLimiter are for the claimers of one process.
func NewClaimLimiter() ClaimLimiter {
	const atOnce = 8
	return make(ClaimLimiter, atOnce) // room: whoever finds none waits with its context
}

// acquire waits for a turn where there are many entries, and returns what gives it back.
func (t ClaimLimiter) acquire(ctx context.Context, entries int) (back func(), err error) {
	if t == nil || entries < 2 {
		return func() {}, nil
	}
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for other claimers of this process: %w", ctx.Err())
	}
}

var _ refresh.Refreshes = RefreshQueue{}

// columns are those of a table, in the order of fields.
const columns = `t.name, t.kind, t.definition, t.description, t.bundled, t.target_lag_seconds, t.refresh_mode, t.partition_by,
	t.partitions, t.priority, t.status, t.version, t.changed_at, t.behind_since, t.as_of, t.next_refresh_due, t.last_seconds, t.wait_seconds,
	CASE t.kind WHEN 'INGEST' THEN f.runs ELSE t.failures END, CASE t.kind WHEN 'INGEST' THEN f.error ELSE t.error END,
	f.failing,
	t.created_by, t.owner_id, t.owner, t.suspended_reason, t.created_at, t.updated_at, t.updated_by,
	ARRAY(SELECT s.source FROM dynamic_table_sources s WHERE s.dynamic_table = t.name ORDER BY s.source)`

// from is where they are read. Of an INGEST table each run fails by itself: those that are given up count. A run that
// was taken in has no failures; those that have are few, and have an index of their own.
const from = ` FROM dynamic_tables t CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE s.given_up) AS runs,
		coalesce((array_agg('Run ' || s.subtask || ': ' || s.error) FILTER (WHERE s.given_up))[1], '') AS error,
		coalesce(jsonb_agg(to_jsonb(s) - 'n') FILTER (WHERE s.n <= 20), '[]') AS failing
	FROM (SELECT subtask, failures, status = 'FAILED' AS given_up, error, updated_at AS failed_at,
			row_number() OVER (ORDER BY updated_at DESC, subtask) AS n
		FROM refresh_subtasks WHERE dynamic_table = t.name AND failures > 0 ORDER BY n) s) f`

func table(row pgx.CollectableRow) (t refresh.Table, err error) {
	var changed, behind, asOf, due *time.Time
	err = row.Scan(&t.Name, &t.Kind, &t.Definition, &t.Description, &t.Bundled, &t.TargetLagSeconds, &t.Mode,
		&t.PartitionBy, &t.Partitions, &t.Priority, &t.Status, &t.Version, &changed, &behind, &asOf, &due, &t.LastSeconds,
		&t.WaitSeconds,
		&t.Failures, &t.Error, &t.Failing, &t.CreatedBy, &t.OwnerID, &t.Owner, &t.Suspended,
		&t.CreatedAt.Time, &t.UpdatedAt.Time, &t.UpdatedBy, &t.Sources)
	t.ChangedAt, t.BehindSince, t.AsOf, t.NextDue = refreshInstant(
		changed,
	), refreshInstant(
		behind,
	), refreshInstant(
		asOf,
	), refreshInstant(
		due,
	)
	t.CreatedAt, t.UpdatedAt = engine.At(t.CreatedAt.Time), engine.At(t.UpdatedAt.Time)
	return t, err
}

func refreshInstant(t *time.Time) engine.Time {
	if t == nil {
		return engine.Time{}
	}
	return engine.At(*t)
}

func read(ctx context.Context, q interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, name string) (refresh.Table, error) {
	rows, err := q.Query(ctx, "SELECT "+columns+from+" WHERE t.name = $1", name)
	if err != nil {
		return refresh.Table{}, dberr.Failed("reading a derived table", err)
	}
	t, err := pgx.CollectExactlyOneRow(rows, table)
	return t, dberr.Reading("derived table", name, err)
}

// CreateDynamicTable implements refresh.Refreshes.
func (q RefreshQueue) CreateDynamicTable(ctx context.Context, t refresh.Table) (made refresh.Table, err error) {
	if err := errors.Join(refresh.Check(t), engine.CheckName("name", t.Name)); err != nil {
		return made, err
	}
	err = pgx.BeginFunc(ctx, q.Pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO dynamic_tables (name, kind, definition, description, bundled, target_lag_seconds,
				refresh_mode, partition_by, priority, created_by, updated_by, partitions, owner_id, owner)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11, $12, $13)`,
			t.Name, string(t.Kind), t.Definition, store.CleanText(t.Description), t.Bundled, t.TargetLagSeconds, string(t.Mode),
			t.PartitionBy, t.Priority, store.CleanText(t.CreatedBy), t.Partitions, t.OwnerID, store.CleanText(t.Owner))
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == "23505" {
			return store.NameTaken("derived table", t.Name)
		}
		if err != nil {
			return dberr.Failed("saving a derived table", err)
		}
		if err := sources(ctx, tx, t); err != nil {
			return err
		}
		made, err = read(ctx, tx, t.Name)
		return err
	})
	return made, err
}

// DynamicTable implements refresh.Refreshes.
func (q RefreshQueue) DynamicTable(ctx context.Context, name string) (refresh.Table, error) {
	return read(ctx, q.Pool, name)
}

// sources writes what a table reads.
func sources(ctx context.Context, tx pgx.Tx, t refresh.Table) error {
	if _, err := tx.Exec(ctx, "DELETE FROM dynamic_table_sources WHERE dynamic_table = $1", t.Name); err != nil {
		return dberr.Failed("saving what a derived table reads", err)
	}
	_, err := tx.Exec(ctx, `INSERT INTO dynamic_table_sources (dynamic_table, source) SELECT $1, unnest($2::text[])`,
		t.Name, t.Sources)
	var refused *pgconn.PgError
	switch {
	case !errors.As(err, &refused):
	case refused.Code == "23503":
		return refresh.UnknownSource(t.Name)
	case refused.Code == "LS005" || refused.Code == "23514":
		return refresh.ReadsItself(t.Name)
	}
	return dberr.Failed("saving what a derived table reads", err)
}

// UpdateDynamicTable implements refresh.Refreshes.
func (q RefreshQueue) UpdateDynamicTable(ctx context.Context, t refresh.Table) (made refresh.Table, err error) {
	if err := refresh.Check(t); err != nil {
		return made, err
	}
	err = pgx.BeginFunc(ctx, q.Pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE dynamic_tables SET definition = $3, description = $4, target_lag_seconds = $5,
				refresh_mode = $6, partition_by = $7, priority = $8, version = version + 1, updated_at = clock_timestamp(),
				as_of = NULL, changed_at = clock_timestamp(), behind_since = clock_timestamp(), updated_by = $9, partitions = $10,
				status = CASE WHEN status = 'FAILED' OR $11 <> '' AND suspended_reason <> '' THEN 'ACTIVE' ELSE status END,
				failures = 0, error = '', suspended_reason = CASE $11 WHEN '' THEN suspended_reason ELSE '' END,
				owner_id = CASE $11 WHEN '' THEN owner_id ELSE $11 END, owner = CASE $11 WHEN '' THEN owner ELSE $12 END
			WHERE name = $1 AND version = $2`, t.Name, t.Version, t.Definition, store.CleanText(t.Description),
			t.TargetLagSeconds, string(t.Mode), t.PartitionBy, t.Priority, store.CleanText(t.UpdatedBy), t.Partitions, t.OwnerID,
			store.CleanText(t.Owner))
		if err != nil {
			return dberr.Failed("saving a derived table", err)
		}
		if tag.RowsAffected() == 0 {
			there, err := read(ctx, tx, t.Name)
			if err != nil {
				return err
			}
			return store.ConcurrentEditError("table", t.Name, there.UpdatedBy, there.UpdatedAt, there.Version)
		}
		if err := sources(ctx, tx, t); err != nil {
			return err
		}
		made, err = read(ctx, tx, t.Name)
		return err
	})
	return made, err
}

// DropDynamicTable implements refresh.Refreshes.
func (q RefreshQueue) DropDynamicTable(ctx context.Context, name string) error {
	var readers []string
	err := q.Pool.QueryRow(ctx, `SELECT ARRAY(SELECT dynamic_table FROM dynamic_table_sources WHERE source = $1
		ORDER BY 1)`, name).Scan(&readers)
	if err != nil {
		return dberr.Failed("looking who reads a derived table", err)
	}
	if len(readers) > 0 {
		return refresh.ReadBy(name, readers)
	}
	tag, err := q.Pool.Exec(ctx, "DELETE FROM dynamic_tables WHERE name = $1", name)
	if err == nil && tag.RowsAffected() == 0 {
		return dberr.NotFound("derived table", name)
	}
	return dberr.Failed("dropping a derived table", err)
}

// SetDynamicTableStatus implements refresh.Refreshes.
func (q RefreshQueue) SetDynamicTableStatus(ctx context.Context, name string, status refresh.Status) error {
	return q.setStatus(ctx, name, status, "", "")
}

// ResumeDynamicTable implements refresh.Refreshes.
func (q RefreshQueue) ResumeDynamicTable(ctx context.Context, name, ownerID, owner string) error {
	return q.setStatus(ctx, name, refresh.Active, ownerID, owner)
}

// OwnedTables implements refresh.Refreshes.
func (q RefreshQueue) OwnedTables(ctx context.Context) ([]refresh.Table, error) {
	rows, err := q.Pool.Query(
		ctx,
		"SELECT "+columns+from+" WHERE t.owner_id <> '' AND t.status = 'ACTIVE' ORDER BY t.name",
	)
	if err != nil {
		return nil, dberr.Failed("listing the derived tables of users", err)
	}
	tables, err := pgx.CollectRows(rows, table)
	return tables, dberr.Failed("listing the derived tables of users", err)
}

// RevokeDynamicTable implements refresh.Refreshes.
func (q RefreshQueue) RevokeDynamicTable(ctx context.Context, name, ownerID, why string) error {
	err := pgx.BeginFunc(ctx, q.Pool, func(tx pgx.Tx) error {
		// The entries of the queue before the table, as release_refresh locks them; claims go with them.
		_, err := tx.Exec(ctx, `WITH entries AS MATERIALIZED (SELECT ctid FROM pending_refreshes WHERE dynamic_table = $1
				ORDER BY subtask FOR UPDATE) SELECT count(*) FROM entries`, name)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `UPDATE dynamic_tables SET status = 'SUSPENDED', failures = 0, suspended_reason = $3
			WHERE name = $1 AND owner_id = $2 AND status = 'ACTIVE'`, name, ownerID, store.CleanText(why))
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		// Who refreshes it hears of it at once.
		_, err = tx.Exec(ctx, `WITH gone AS (DELETE FROM pending_refreshes WHERE dynamic_table = $1)
			SELECT pg_notify('loadstone_refresh', '')`, name)
		return err
	})
	return dberr.Failed("suspending a derived table", err)
}

// setStatus has a table be refreshed, or no longer; a user that resumes it is its owner, unless it is bundled.
func (q RefreshQueue) setStatus(ctx context.Context, name string, status refresh.Status, ownerID, owner string) error {
	err := pgx.BeginFunc(ctx, q.Pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE dynamic_tables SET status = $2, failures = 0,
			error = CASE WHEN $2 = 'ACTIVE' THEN '' ELSE error END,
			suspended_reason = CASE WHEN $2 = 'ACTIVE' THEN '' ELSE suspended_reason END,
			owner_id = CASE WHEN $3 = '' OR bundled THEN owner_id ELSE $3 END,
			owner = CASE WHEN $3 = '' OR bundled THEN owner ELSE $4 END
			WHERE name = $1`, name, string(status), ownerID, store.CleanText(owner))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return pgx.ErrNoRows
		}
		if status == refresh.Active {
			_, err = tx.Exec(ctx, "DELETE FROM refresh_subtasks WHERE dynamic_table = $1 AND status <> 'DONE'", name)
			return err
		}
		// What a worker has in its hands it finishes.
		_, err = tx.Exec(ctx, `DELETE FROM pending_refreshes p WHERE p.dynamic_table = $1 AND NOT EXISTS (SELECT FROM
			refresh_claims c WHERE c.dynamic_table = p.dynamic_table AND c.subtask = p.subtask)`, name)
		return err
	})
	return dberr.Reading("derived table", name, err)
}

// RequestRefresh implements refresh.Refreshes.
func (q RefreshQueue) RequestRefresh(ctx context.Context, name string) error {
	tag, err := q.Pool.Exec(ctx, `WITH asked AS (SELECT t.name,
			EXISTS (SELECT FROM refresh_claims c WHERE c.dynamic_table = t.name AND c.subtask = ''
				AND c.expires_at > clock_timestamp()) AS under_way
			FROM dynamic_tables t WHERE t.name = $1 AND t.kind = 'SQL' AND t.status = 'ACTIVE'),
		touched AS (UPDATE dynamic_tables t SET changed_at = clock_timestamp() FROM asked a
			WHERE t.name = a.name AND NOT a.under_way RETURNING t.name, t.priority),
		queued AS (INSERT INTO pending_refreshes AS p (dynamic_table, priority, next_refresh_due)
			SELECT name, priority, clock_timestamp() FROM touched
			ON CONFLICT (dynamic_table, subtask) DO UPDATE SET next_refresh_due = least(p.next_refresh_due, clock_timestamp()))
		SELECT FROM asked`, name)
	if err != nil || tag.RowsAffected() > 0 {
		return dberr.Failed("asking for a refresh", err)
	}
	t, err := read(ctx, q.Pool, name)
	if err != nil {
		return err
	}
	return refresh.NotRefreshable(t)
}

// RefreshHistory implements refresh.Refreshes.
func (q RefreshQueue) RefreshHistory(ctx context.Context, name string, limit int) ([]refresh.Record, error) {
	rows, err := q.Pool.Query(ctx,
		`SELECT seq, dynamic_table, subtask, worker_id, epoch, started_at, ended_at, refresh_mode,
			note, row_count, byte_count, lag_seconds, error
		FROM refresh_history WHERE dynamic_table = $1 ORDER BY seq DESC LIMIT $2`, name, limit)
	if err != nil {
		return nil, dberr.Failed("reading the history of a derived table", err)
	}
	records, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r refresh.Record, err error) {
		err = row.Scan(&r.Seq, &r.Table, &r.Subtask, &r.Worker, &r.Epoch, &r.StartedAt.Time, &r.EndedAt.Time, &r.Mode,
			&r.Note,
			&r.Rows, &r.Bytes, &r.LagSeconds, &r.Error)
		r.StartedAt, r.EndedAt = engine.At(r.StartedAt.Time), engine.At(r.EndedAt.Time)
		return r, err
	})
	return records, dberr.Failed("reading the history of a derived table", err)
}

// PruneRefreshHistory implements refresh.Refreshes.
func (q RefreshQueue) PruneRefreshHistory(ctx context.Context, keep int) error {
	_, err := q.Pool.Exec(
		ctx,
		`DELETE FROM refresh_history h USING dynamic_tables t WHERE h.dynamic_table = t.name AND h.seq <=
		(SELECT o.seq FROM refresh_history o WHERE o.dynamic_table = t.name ORDER BY o.seq DESC OFFSET $1 LIMIT 1)`,
		keep,
	)
	if err != nil {
		return dberr.Failed("deleting old lines of the history of derived tables", err)
	}
	_, err = q.Pool.Exec(ctx, "DELETE FROM refresh_workers WHERE seen_at < clock_timestamp() - make_interval(secs => $1)",
		refresh.WorkerTTL.Seconds())
	return dberr.Failed("forgetting workers that are gone", err)
}

// AwaitRefreshes implements refresh.Refreshes, on a connection of its own.
func (q RefreshQueue) AwaitRefreshes(ctx context.Context, told func()) error {
	return listen(ctx, q.Pool, "loadstone_refresh", "waiting for something to refresh", told)
}

// pauses are what release_refresh waits after each failure.
func pauses() []float64 {
	var all []float64
	for n := 1; ; n++ {
		pause, failed := refresh.AfterFailure(n)
		if failed {
			return slices.Clip(all)
		}
		all = append(all, pause.Seconds())
	}
}
