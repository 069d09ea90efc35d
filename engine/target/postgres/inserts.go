package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine/plugin"
)

// insertedValues bounds the values of one INSERT of a load.
const insertedValues = 2_000

// isPGlite reports the version string of PGlite, whose socket hands each message to the one session that all
// connections share.
func isPGlite(version string) bool { return strings.Contains(version, "PGlite") }

const pgliteNote = "All connections to PGlite share one session, so every operation brings its statement, and " +
	"several connections at work take each other's: its figures stand for workload.concurrent_connections: 1."

// copies reports whether a server takes COPY FROM STDIN over its connections. PGlite's socket does not, for any client
// (it is the same with psql): the database finds no rows behind the message, ends the session and answers nobody any
// more. That is why it is not tried.
func copies(ctx context.Context, c *pgconn.PgConn) (bool, error) {
	rs, err := query(ctx, c, "SELECT pg_catalog.version()", nil)
	if err != nil || len(rs.Rows) != 1 || shaped(rs, 1) != nil {
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
	into := fmt.Sprintf("INSERT INTO %s (%s) VALUES ", table, columns)
	for {
		batch, err := r.next()
		if err != nil {
			r.err = err
			return 0, err
		}
		if batch == nil {
			return rows, execAll(ctx, c, "COMMIT")
		}
		for from := 0; from < batch.Len(); {
			to := min(batch.Len(), from+max(1, insertedValues/len(r.columns)))
			n, err := r.insertRows(ctx, c, into, batch, from, to)
			if err != nil {
				return 0, err
			}
			rows, from = rows+n, to
		}
		r.rows = rows
		r.report()
	}
}

// insertRows inserts rows of a batch with one statement.
func (r *rowReader) insertRows(
	ctx context.Context,
	c *pgconn.PgConn,
	into string,
	batch plugin.Rows,
	from, to int,
) (int64,
	error) {
	var sql strings.Builder
	sql.WriteString(into)
	var values [][]byte
	var types []uint32
	for row := from; row < to; row++ {
		separator := "("
		if row > from {
			separator = ", ("
		}
		for at, column := range r.columns {
			text, err := textArgument(batch.Value(row, at))
			if err != nil {
				return 0, fmt.Errorf("row %d, column %s: %w", r.rows+int64(row)+1, column.Name, err)
			}
			values, types = append(values, text), append(types, r.oids[at])
			fmt.Fprintf(&sql, "%s$%d", separator, len(values))
			separator = ", "
		}
		sql.WriteString(")")
	}
	tag, err := c.ExecParams(ctx, sql.String(), values, types, nil, nil).Close()
	return tag.RowsAffected(), err //nolint:wrapcheck // Load says what it is
}
