package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

// InspectRole is the parameter of a connection string that names a role with least
// rights: what looks at the target takes it on.
const InspectRole = "inspect_role"

// lockWait is how long a reading query waits for a lock.
const lockWait = 5 * time.Second

// Read implements target.Reader. The query has a transaction of its own, which
// cannot write, waits briefly for locks, and ends by itself. Nothing is set for the
// session, which may be a pooler's.
func (d *database) Read(ctx context.Context, sql string, limit time.Duration, args ...any) (*target.ResultSet, error) {
	var rs *target.ResultSet
	err := d.reading(ctx, sql, limit, func(c *pgconn.PgConn) (err error) {
		rs, err = query(ctx, c, sql, args)
		return err
	})
	if err != nil {
		return nil, err
	}
	return rs, nil
}

// ReadRows implements target.RowReader.
func (d *database) ReadRows(ctx context.Context, sql string, limit time.Duration, row func(values []any) error) error {
	return d.reading(ctx, sql, limit, func(c *pgconn.PgConn) error { return eachRow(ctx, c, sql, row) })
}

// reading executes do in a transaction that only reads.
func (d *database) reading(
	ctx context.Context,
	sql string,
	limit time.Duration,
	do func(c *pgconn.PgConn) error,
) error {
	c, sure, err := d.lend(ctx, reuseWindow)
	if err != nil {
		return err
	}
	defer func() {
		if c != nil {
			d.give(c)
		}
	}()
	ms := func(t time.Duration) string { return strconv.FormatInt(max(1, t.Milliseconds()), 10) }
	// What is read is compared with later, so that no digit may be missing, whatever the connection sets.
	begin := "BEGIN READ ONLY; SET LOCAL default_transaction_read_only = on; SET LOCAL extra_float_digits = 3; " +
		"SET LOCAL statement_timeout = " + ms(limit) + "; SET LOCAL lock_timeout = " + ms(min(lockWait, limit*3/4))
	if d.reader != "" {
		// Whose rights are asked for is the load's user, and not who asks.
		begin += "; SELECT pg_catalog.set_config('loadstone.load_user', current_user, true); SET LOCAL ROLE " +
			pgx.Identifier{d.reader}.Sanitize()
	}
	err = execAll(ctx, c, begin)
	if err != nil && !sure && c.IsClosed() && ctx.Err() == nil {
		// The server has ended the session since it was used: nothing was executed.
		d.give(c)
		if c, err = d.borrow(ctx); err != nil {
			return err
		}
		err = execAll(ctx, c, begin)
	}
	if err != nil {
		return d.cannotRead(ctx, c, err)
	}
	err = do(c)
	if !c.IsClosed() {
		if end := execAll(ctx, c, "ROLLBACK"); end != nil && err == nil {
			return fmt.Errorf("ending a read: %w", end)
		}
	}
	if known := cmp.Or(outOfLocks(err), d.foreign(ctx, c, err)); known != nil {
		return known
	}
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "55P03" && sql != holdersQuery {
		if worded := d.locked(sql); worded != nil {
			return worded
		}
	}
	return err
}

// cannotRead leaves a transaction that could not be begun.
func (d *database) cannotRead(ctx context.Context, c *pgconn.PgConn, err error) error {
	if c.TxStatus() != 'I' && !c.IsClosed() {
		_ = execAll(ctx, c, "ROLLBACK") // give closes it otherwise
	}
	if known := cmp.Or(explained(err), d.foreign(ctx, c, err)); known != nil {
		return known
	}
	if d.reader != "" && ctx.Err() == nil {
		return &engine.Error{Code: engine.CodeTarget, Cause: err,
			Message: fmt.Sprintf(
				"The role %q, which %s of the connection names for looking at the target, cannot be taken on: %s.", d.reader,
				InspectRole, sentence(err)),
			Hint: fmt.Sprintf("GRANT %s TO %s, or take %s out of the connection.", pgx.Identifier{d.reader}.Sanitize(),
				pgx.Identifier{d.conn.User}.Sanitize(), InspectRole)}
	}
	return fmt.Errorf("beginning to read: %w", err)
}

// holdersQuery lists the tables that a session has for itself alone, as ALTER TABLE,
// TRUNCATE, VACUUM FULL and LOCK TABLE do, who it is, and what it does.
const holdersQuery = `SELECT n.nspname, c.relname, a.pid, coalesce(a.usename, ''), coalesce(a.application_name, ''), coalesce(a.state, ''),
 extract(epoch FROM now() - coalesce(a.xact_start, a.backend_start))::int8, left(coalesce(a.query, ''), 120), l.mode
FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock' AND c.relkind IN ('r','p','m','f','v') AND l.pid <> pg_backend_pid()
 AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
ORDER BY a.xact_start`

// holdersColumns is how many columns holdersQuery has.
const holdersColumns = 9

// locked explains that a statement waits for a table that another session has for
// itself: it names the table, the lock and its holder. It is nil when there is none.
func (d *database) locked(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	rs, err := d.Query(ctx, holdersQuery)
	if err != nil {
		return nil
	}
	if shaped(rs, holdersColumns) != nil {
		return nil
	}
	for _, row := range rs.Rows {
		text := func(i int) string { s, _ := row[i].(string); return s }
		if !strings.Contains(sql, text(1)) {
			continue
		}
		pid, _ := row[2].(int64)
		seconds, _ := row[6].(int64)
		holder := fmt.Sprintf("session %d", pid)
		if user := text(3); user != "" {
			holder += " of user " + user
		}
		if name := text(4); name != "" {
			holder += fmt.Sprintf(" (%s)", name)
		}
		doing := "now: "
		if strings.HasPrefix(text(5), "idle") {
			doing = text(5) + ", last: "
		}
		return &engine.Error{Code: engine.CodeTarget,
			Message: fmt.Sprintf("The table %s.%s is locked: %s has %s on it, in a transaction of %d s (%s%s).", text(0),
				text(1), holder, text(8), seconds, doing, text(7)),
			Hint: fmt.Sprintf("Wait for that transaction, or end it: SELECT pg_terminate_backend(%d).", pid)}
	}
	return nil
}

// LockLimit implements target.LockLimiter.
func (d *database) LockLimit(limit time.Duration) string {
	return "SET LOCAL lock_timeout = " + strconv.FormatInt(limit.Milliseconds(), 10)
}
