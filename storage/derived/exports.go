package derived

import (
	"context"

	"github.com/jackc/pgx/v5"

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
