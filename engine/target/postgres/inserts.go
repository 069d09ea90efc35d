package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// insertedValues bounds the values of one INSERT of a load.
const insertedValues = 2_000

// isPGlite reports the version string of PGlite, whose socket hands each message to the one session that all connections
// share.
func isPGlite(version string) bool { return strings.Contains(version, "PGlite") }

const pgliteNote = "All connections to PGlite share one session, so every operation brings its statement, and several " +
	"connections at work take each other's: its figures stand for workload.concurrent_connections: 1."

// copies reports whether a server takes COPY FROM STDIN over its connections. PGlite's socket does not, for any client (it
// is the same with psql): the database finds no rows behind the message, ends the session and answers nobody any more. That
// is why it is not tried.
func copies(ctx context.Context, c *pgconn.PgConn) (bool, error) {
	rs, err := query(ctx, c, "SELECT pg_catalog.version()", nil)
	if err != nil || len(rs.Rows) != 1 {
		return true, err
	}
	version, _ := rs.Rows[0][0].(string)
	return !isPGlite(version), nil
}

// insert loads rows by INSERT in one transaction: all of them or none.
func (r *rowReader) insert(ctx context.Context, c *pgconn.PgConn, table, columns string) (rows int64, err error) {
	if err := execAll(ctx, c, "BEGIN"); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil && !c.IsClosed() {
			_ = execAll(context.WithoutCancel(ctx), c, "ROLLBACK") // give closes what it does not end
		}
	}()
	var values [][]byte
	send := func() error {
		if len(values) == 0 {
			return nil
		}
		var sql strings.Builder
		fmt.Fprintf(&sql, "INSERT INTO %s (%s) VALUES ", table, columns)
		var types []uint32
		for i := range values {
			switch {
			case i == 0:
				sql.WriteString("(")
			case i%len(r.columns) == 0:
				sql.WriteString("), (")
			default:
				sql.WriteString(", ")
			}
			fmt.Fprintf(&sql, "$%d", i+1)
			types = append(types, r.oids[i%len(r.columns)])
		}
		sql.WriteString(")")
		tag, err := c.ExecParams(ctx, sql.String(), values, types, nil, nil).Close()
		rows += tag.RowsAffected()
		values = values[:0]
		return err //nolint:wrapcheck // Load says what it is
	}
	for {
		batch, err := r.next()
		if err != nil {
			r.err = err
			return 0, err
		}
		if batch == nil {
			break
		}
		for i := range batch.Len() {
			for at, column := range r.columns {
				text, err := textArgument(batch.Value(i, at))
				if err != nil {
					return 0, fmt.Errorf("row %d, column %s: %w", rows+1, column.Name, err)
				}
				values = append(values, text)
			}
			if len(values)+len(r.columns) > insertedValues {
				if err := send(); err != nil {
					return 0, err
				}
			}
		}
		r.rows = rows
		r.report()
	}
	if err := send(); err != nil {
		return 0, err
	}
	return rows, execAll(ctx, c, "COMMIT")
}
