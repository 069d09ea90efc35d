package derived

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// RunSegment names the file that holds the series of a run, and what the run was.
type RunSegment struct {
	RunID, RunName, Template, Adapter, Connection, Table string
	Name, SHA256                                         string
	SizeBytes                                            int64
	StartedAt, EndedAt                                   time.Time
}

// Segments are those of the runs that were going on between two times, the newest run first.
func (d *Database) Segments(ctx context.Context, from, to time.Time) ([]RunSegment, error) {
	rows, err := d.owner.Query(ctx, `SELECT r.run_id, r.run_name, r.template, r.adapter, r.connection, r.table_name,
			s.name, s.sha256, s.size_bytes, r.started_at, coalesce(r.ended_at, clock_timestamp())
		FROM rollup.segments s JOIN rollup.runs r USING (run_id)
		WHERE r.started_at IS NOT NULL AND r.started_at <= $2 AND coalesce(r.ended_at, clock_timestamp()) >= $1
		ORDER BY r.started_at DESC, r.run_id`, from.UTC(), to.UTC())
	if err != nil {
		return nil, failed("reading which segments there are", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s RunSegment, err error) {
		err = row.Scan(&s.RunID, &s.RunName, &s.Template, &s.Adapter, &s.Connection, &s.Table, &s.Name, &s.SHA256,
			&s.SizeBytes, &s.StartedAt, &s.EndedAt)
		return s, err
	})
	return all, failed("reading which segments there are", err)
}
