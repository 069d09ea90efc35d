package derived

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/analytics/snowflakeexport"
)

// NoteExport notes what of the run of a claim is in the account of a connection, for readers of rollup.exports. What an
// attempt that failed does not know stays as it was.
func (d *Database) NoteExport(
	ctx context.Context,
	c refresh.Claim,
	connection string,
	s snowflakeexport.ExportStatus,
) error {
	if err := d.Begin(ctx, c); err != nil {
		return err
	}
	err := d.withFence(ctx, c, nothing, func(tx pgx.Tx) error {
		if s.Gone {
			_, err := tx.Exec(ctx, "DELETE FROM rollup.exports WHERE run_id = $1", c.Subtask)
			return err
		}
		status := "DONE"
		if s.Failed {
			status = "FAILED"
		}
		_, err := tx.Exec(
			ctx,
			`INSERT INTO rollup.exports AS e (run_id, connection, place, status, executions, views, problem,
				whole)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (run_id) DO UPDATE SET connection = excluded.connection, status = excluded.status,
				problem = excluded.problem, noted_at = excluded.noted_at, whole = excluded.whole,
				place = CASE WHEN excluded.status = 'DONE' THEN excluded.place ELSE e.place END,
				executions = CASE WHEN excluded.status = 'DONE' THEN excluded.executions ELSE e.executions END,
				views = CASE WHEN excluded.status = 'DONE' THEN excluded.views ELSE e.views END`,
			c.Subtask,
			connection,
			s.Place,
			status,
			s.Executions,
			append([]string{}, s.Views...),
			s.Problem,
			s.Whole && !s.Failed,
		)
		return err
	})
	return wrapError("noting what is in the results connection", err)
}

// ExportedRuns are the runs of which nothing is owed to the account of a connection.
func (d *Database) ExportedRuns(ctx context.Context, connection string) (map[string]bool, error) {
	whole := map[string]bool{}
	rows, err := d.owner.Query(ctx, "SELECT run_id FROM rollup.exports WHERE connection = $1 AND whole", connection)
	if err == nil {
		var run string
		_, err = pgx.ForEachRow(rows, []any{&run}, func() error { whole[run] = true; return nil })
	}
	return whole, wrapError("reading what is in the results connection", err)
}

// RunExport implements query.RunExports.
func (d *Database) RunExport(ctx context.Context, runID string) (query.RunExport, error) {
	var record query.RunRecord
	var account query.RunAccount
	var status query.RunExport
	batch := &pgx.Batch{}
	batch.Queue("SELECT parts, part_problems FROM rollup.runs WHERE run_id = $1 AND NOT provisional", runID).QueryRow(
		func(row pgx.Row) error {
			err := row.Scan(&record.Parts, &record.Problems)
			if err == nil {
				status.Record = &record
			}
			return ignoreNoRows(err)
		})
	batch.Queue(`SELECT connection, place, status, executions, views, problem, noted_at FROM rollup.exports
		WHERE run_id = $1`, runID).QueryRow(
		func(row pgx.Row) error {
			err := row.Scan(&account.Connection, &account.Place, &account.Status, &account.Executions, &account.Views,
				&account.Problem, &account.NotedAt.Time)
			if err == nil {
				status.Account = &account
			}
			return ignoreNoRows(err)
		})
	err := d.owner.SendBatch(ctx, batch).Close()
	return status, wrapError("reading the export of a run", err)
}

// ignoreNoRows is nil for a query without rows.
func ignoreNoRows(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}
