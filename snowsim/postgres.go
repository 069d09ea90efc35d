package snowsim

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/translate"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// onPostgres runs a plan on the session's connection: the pinned one within a
// transaction, else one of the pool.
func (j *job) onPostgres(ctx context.Context, p *translate.Plan, binds protocol.Bindings) (*protocol.Result, error) {
	sess := j.session
	view := sess.view()
	implicit := strings.EqualFold(view.Parameters["AUTOCOMMIT"], "false") && p.Type >= protocol.Insert &&
		p.Type <= protocol.Delete
	if !view.Transaction && !implicit {
		conn, err := j.server.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer conn.Release()
		if p.Before == nil && binds.Rows <= 1 {
			return j.steps(ctx, conn, p, binds)
		}
		return within(ctx, conn, "BEGIN", "COMMIT", "ROLLBACK",
			func() (*protocol.Result, error) { return j.steps(ctx, conn, p, binds) })
	}
	if sess.conn == nil {
		conn, err := j.server.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
			conn.Release()
			return nil, err
		}
		sess.conn = conn
		sess.begin("")
	}
	// A statement that fails leaves the transaction open, unlike in Postgres.
	out, err := within(ctx, sess.conn, "SAVEPOINT statement", "RELEASE statement", "ROLLBACK TO statement",
		func() (*protocol.Result, error) { return j.steps(ctx, sess.conn, p, binds) })
	if sess.conn.Conn().IsClosed() {
		sess.release(false)
	}
	return out, err
}

// within runs do between begin and end, and undoes it when it fails.
func within(ctx context.Context, conn *pgxpool.Conn, begin, end, undo string,
	do func() (*protocol.Result, error)) (*protocol.Result,
	error) {
	if _, err := conn.Exec(ctx, begin); err != nil {
		return nil, err
	}
	out, err := do()
	if err == nil {
		_, err = conn.Exec(ctx, end)
	}
	if err != nil {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if _, failed := conn.Exec(after, undo); failed != nil {
			_ = conn.Conn().Close(after) // it is of no use any more
		}
		return nil, err
	}
	return out, nil
}

// lockTimeout is how long a statement waits for a lock: HYBRID_TABLE_LOCK_TIMEOUT for
// hybrid tables, else LOCK_TIMEOUT, in seconds; ok is false when neither was set.
func lockTimeout(view *translate.Session, p *translate.Plan) (limit time.Duration, ok bool) {
	name := "LOCK_TIMEOUT"
	if p.Work.Table == warehouse.Hybrid {
		if _, set := view.Parameters["HYBRID_TABLE_LOCK_TIMEOUT"]; set {
			name = "HYBRID_TABLE_LOCK_TIMEOUT"
		}
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(view.Parameters[name]), 64)
	if err != nil || seconds < 0 {
		return 0, false
	}
	// 0 does not wait at all, which Postgres has no word for.
	return max(time.Duration(seconds*float64(time.Second)), time.Millisecond), true
}

// setLockTimeout sets Postgres's; 0 is none.
func setLockTimeout(ctx context.Context, conn *pgxpool.Conn, limit time.Duration) error {
	_, err := conn.Exec(ctx, "SELECT set_config('lock_timeout', $1, false)", strconv.FormatInt(limit.Milliseconds(), 10))
	return err
}

func (j *job) steps(
	ctx context.Context,
	conn *pgxpool.Conn,
	p *translate.Plan,
	binds protocol.Bindings,
) (*protocol.Result,
	error) {
	if limit, ok := lockTimeout(j.session.view(), p); ok {
		if err := setLockTimeout(ctx, conn, limit); err != nil {
			return nil, err
		}
		defer func() {
			// In a transaction that has failed this fails too, and rolling back undoes the setting.
			after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_ = setLockTimeout(after, conn, 0)
		}()
	}
	if p.Before != nil {
		if err := p.Before(ctx, conn.Conn()); err != nil {
			return nil, err
		}
	}
	out := j.status(p)
	if p.SQL != "" {
		var err error
		if out, err = j.sql(ctx, conn.Conn(), p, binds); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// prepared are the statements of one Postgres connection.
type prepared struct {
	generation uint64
	named      map[string]*pgconn.StatementDescription
}

// maxPrepared bounds the prepared statements of a connection; others are parsed each time.
const maxPrepared = 256

// prepare returns a prepared statement, or nil for one that is to be parsed each time.
func (j *job) prepare(ctx context.Context, conn *pgx.Conn, sql string, oids []uint32) (*pgconn.StatementDescription,
	error) {
	data := conn.PgConn().CustomData()
	own, _ := data["snowsim"].(*prepared)
	if generation := j.server.generation.Load(); own == nil || own.generation != generation {
		if own != nil {
			if err := conn.DeallocateAll(ctx); err != nil { // so that pgx forgets those of its own cache too
				return nil, err
			}
		}
		own = &prepared{generation: generation, named: map[string]*pgconn.StatementDescription{}}
		data["snowsim"] = own
	}
	key := fmt.Sprint(sql, oids)
	if d := own.named[key]; d != nil {
		return d, nil
	}
	if len(own.named) >= maxPrepared {
		return nil, nil
	}
	d, err := conn.PgConn().Prepare(ctx, "s"+strconv.Itoa(len(own.named)), sql, oids)
	if err != nil {
		return nil, err
	}
	own.named[key] = d
	return d, nil
}

// sql runs a plan's SQL, once or for each element of array binds.
func (j *job) sql(ctx context.Context, conn *pgx.Conn, p *translate.Plan, binds protocol.Bindings) (*protocol.Result,
	error) {
	oids := make([]uint32, len(p.Params))
	for i, param := range p.Params {
		if param.Bind < 0 || param.Bind >= len(binds.First) {
			return nil, protocol.CompilationError("002049", "42601", "Bind variable ? not set.")
		}
		oids[i] = param.OID
	}
	pg := conn.PgConn()
	if binds.Rows > 1 || binds.Rows == 1 && binds.Array {
		return j.each(ctx, conn, p, oids, binds)
	}
	values := binds.Values(p.Params, 0)
	if len(values) > 0 {
		d, err := j.prepare(ctx, conn, p.SQL, oids)
		if err != nil {
			return nil, err
		}
		if d != nil {
			return j.collect(p, pg.ExecPrepared(ctx, d.Name, values, nil, nil))
		}
	}
	return j.collect(p, pg.ExecParams(ctx, p.SQL, values, oids, nil, nil))
}

// each runs a statement for every element of array binds. The caller has begun a transaction.
func (j *job) each(ctx context.Context, conn *pgx.Conn, p *translate.Plan, oids []uint32,
	binds protocol.Bindings) (*protocol.Result, error) {
	const batchRows = 2000 // bounds what is in flight
	pg := conn.PgConn()
	d, err := pg.Prepare(ctx, "", p.SQL, oids)
	if err != nil {
		return nil, err
	}
	var affected int64
	for from := 0; from < binds.Rows; from += batchRows {
		batch := &pgconn.Batch{}
		for i := from; i < min(from+batchRows, binds.Rows); i++ {
			batch.ExecPrepared(d.Name, binds.Values(p.Params, i), nil, nil)
		}
		results := pg.ExecBatch(ctx, batch)
		for results.NextResult() {
			tag, err := results.ResultReader().Close()
			if err != nil {
				_ = results.Close() // the error is known
				return nil, err
			}
			affected += tag.RowsAffected()
		}
		if err := results.Close(); err != nil {
			return nil, err
		}
	}
	return changed(j, p, affected), nil
}

// collect reads the rows of a result.
func (j *job) collect(p *translate.Plan, rows *pgconn.ResultReader) (*protocol.Result, error) {
	fields := rows.FieldDescriptions()
	var out *protocol.Result
	if len(fields) > 0 {
		columns := p.Columns
		if columns == nil {
			columns = p.Describe(fields)
		}
		if len(columns) != len(fields) {
			_, _ = rows.Close()
			return nil, fmt.Errorf("the plan has %d columns, the result %d", len(columns), len(fields))
		}
		out = protocol.NewResult(j.limits(), columns)
		out.Fields = fields
		most, _ := strconv.Atoi(j.session.view().Parameters["ROWS_PER_RESULTSET"])
		for n := 1; rows.NextRow(); n++ {
			if most > 0 && n > most {
				continue // what is left is not sent
			}
			if err := out.PostgresRow(rows.Values()); err != nil {
				_, _ = rows.Close()
				return nil, err
			}
		}
	}
	tag, err := rows.Close()
	if err != nil {
		return nil, err
	}
	if out == nil {
		if p.Type >= protocol.Insert && p.Type <= protocol.Delete {
			return changed(j, p, tag.RowsAffected()), nil
		}
		out = j.status(p)
	}
	return out, nil
}

// changed is the result of DML: Snowflake returns the number of rows as a row.
func changed(j *job, p *translate.Plan, affected int64) *protocol.Result {
	names := map[protocol.StatementType][]string{
		protocol.Update: {"number of rows updated", "number of multi-joined rows updated"},
		protocol.Delete: {"number of rows deleted"},
	}[p.Type]
	if names == nil {
		names = []string{"number of rows inserted"}
	}
	columns := make([]protocol.Column, len(names))
	row := make([]any, len(names))
	for i, name := range names {
		columns[i] = protocol.Column{Name: name, Type: "fixed", Precision: 19}
		row[i] = int64(0)
	}
	row[0] = affected
	out := protocol.NewResult(j.limits(), columns)
	out.Row(row)
	out.Affected = affected
	return out
}
