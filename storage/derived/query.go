package derived

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// readVerbs are the words that statements of readers begin with.
var readVerbs = []string{"SELECT", "WITH", "VALUES", "TABLE", "EXPLAIN", "SHOW", "("}

// unparsedHint is the cure of what cannot be divided into words.
const unparsedHint = "Close what is open there: a text with ', a name with \", a comment with */."

// checkReadOnly refuses what is not one statement that reads. The database refuses
// the same by its privileges; here it is said in words.
func checkReadOnly(sql string) error {
	tokens, err := sqltext.Tokens(sql, sqltext.DialectOf("postgres"))
	if err != nil {
		return &engine.Error{Code: engine.CodeInvalid, Cause: err, Message: fmt.Sprintf("The SQL cannot be read: %v.", err),
			Hint: unparsedHint}
	}
	statements := sqltext.Statements(tokens)
	if len(statements) != 1 {
		return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("There are %d statements.", len(statements)),
			Hint: "Send one statement at a time."}
	}
	for _, word := range readVerbs {
		if first := statements[0][0]; first.Upper() == word || first.Is(word) {
			return nil
		}
	}
	return &engine.Error{Code: engine.CodeInvalid, Message: "Only statements that read results can be executed.",
		Hint: "They begin with SELECT, WITH, VALUES, TABLE, EXPLAIN or SHOW."}
}

// Query implements query.Querier, in a session of the reader.
func (d *Database) Query(ctx context.Context, sql string, limit int) (a query.Answer, err error) {
	if err := checkReadOnly(sql); err != nil {
		return a, err
	}
	if err := d.checkStatement(ctx, "sql", sql); err != nil {
		return a, err
	}
	began := time.Now()
	a.Columns, a.Rows = []query.Column{}, [][]any{}
	limits := d.Settings.Query
	limits.Rows = min(limits.Rows, int64(max(limit, 1)))
	executing := time.Now()
	// The statement ends when this does, whatever it has made of the limits of its session.
	bounded, done := context.WithTimeoutCause(ctx, limits.Statement+d.Settings.Sessions.Grace, errStatementTime)
	defer done()
	var pid uint32
	err = pgx.BeginTxFunc(bounded, d.console, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		pid = tx.Conn().PgConn().PID()
		d.ended.Delete(pid)
		if err := limitStatements(bounded, tx, limits); err != nil {
			return err
		}
		if _, err := tx.Exec(bounded, "SET LOCAL application_name = '"+query.Session(ctx)+"'",
			pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		return executeQuery(bounded, tx, sql, limits, &a)
	})
	a.ElapsedMs = float64(time.Since(began).Microseconds()) / 1000
	if why, ended := d.ended.LoadAndDelete(pid); ended && err != nil {
		return a, why.(error)
	}
	if timeoutError(err) && time.Since(executing) < limits.Statement {
		return a, query.ErrCancelled
	}
	if err != nil && errors.Is(context.Cause(bounded), errStatementTime) {
		return a, tookTooLong(err)
	}
	if err != nil && !errors.Is(err, errRowLimit) {
		return a, queryError(err, sql)
	}
	return a, nil
}

// Waits notes that a query waits for its turn, so that it is cancelled whichever server is asked to. The context ends
// with query.ErrCancelled then; who waits no more calls done. A query that its caller has no name for is not noted.
func (d *Database) Waits(ctx context.Context) (waiting context.Context, done func(), err error) {
	session := query.Session(ctx)
	if query.ID(ctx) == "" {
		return ctx, func() {}, nil
	}
	// What a server has left that is gone is swept.
	if _, err := d.owner.Exec(
		ctx,
		`WITH old AS (DELETE FROM staging.waiting_queries WHERE since < now() - interval '5 minutes')
		INSERT INTO staging.waiting_queries (session) VALUES ($1) ON CONFLICT (session) DO UPDATE SET since = now()`,
		session,
	); err != nil {
		return ctx, nil, wrapError("noting that a query waits", err)
	}
	waiting, cancel := context.WithCancelCause(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(waitingPoll)
		defer tick.Stop()
		for {
			select {
			case <-waiting.Done():
				return
			case <-tick.C:
			}
			var there bool
			err := d.owner.QueryRow(waiting, "SELECT EXISTS (SELECT FROM staging.waiting_queries WHERE session = $1)",
				session).Scan(&there)
			if err == nil && !there {
				cancel(query.ErrCancelled)
			}
		}
	}()
	return waiting, func() {
		cancel(nil)
		<-stopped
		ctx, end := context.WithTimeout(context.WithoutCancel(ctx), resetTimeout)
		defer end()
		_, _ = d.owner.Exec(ctx, "DELETE FROM staging.waiting_queries WHERE session = $1", session)
	}, nil
}

// waitingPoll is how often a query that waits looks whether it has been cancelled.
const waitingPoll = 500 * time.Millisecond

// errStatementTime ends what goes on although the time of its statement is over.
var errStatementTime = errors.New("the statement has had its time")

// CheckQueries refuses one more query of the caller's, with engine.CodeRateLimited, while all servers together execute
// as many as may be.
func (d *Database) CheckQueries(ctx context.Context) error {
	caller := query.Caller(ctx)
	if caller == "" {
		return nil
	}
	var n int
	err := d.checks.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
		AND usename = current_user AND starts_with(application_name, $1)`, query.SessionsOf(caller)).Scan(&n)
	switch {
	case err != nil:
		return wrapError("counting the queries of a user", err)
	case n >= d.Settings.QueriesPerUser:
		return query.BusyError(fmt.Sprintf("%d of your queries are under way on all servers.", n))
	}
	return nil
}

// A session that is between two statements hears nothing when it is cancelled: so often, and after such pauses, it is
// tried again.
const maxCancels, cancelPause = 50, 20 * time.Millisecond

// Cancel ends the queries of the sessions that are told apart so, whoever has opened them, or one that waits for its
// turn; ErrNotFound when there are none.
func (d *Database) Cancel(ctx context.Context, session string) error {
	found, err := d.cancelSessions(ctx, session)
	for tries, left := 1, found; err == nil && left > 0 && tries < maxCancels; tries++ {
		select {
		case <-time.After(cancelPause):
			left, err = d.cancelSessions(ctx, session)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err == nil && found == 0 {
		var tag pgconn.CommandTag
		tag, err = d.owner.Exec(ctx, "DELETE FROM staging.waiting_queries WHERE session = $1", session)
		found = tag.RowsAffected()
	}
	switch {
	case err != nil:
		return wrapError("cancelling a query", err)
	case found == 0:
		return fmt.Errorf("cancelling a query: %w", store.ErrNotFound)
	}
	return nil
}

// cancelSessions cancels what the sessions execute, and returns how many there are. The reader's own sessions may do it
// where readers can call the function, else the owner where it may.
func (d *Database) cancelSessions(ctx context.Context, session string) (found int64, err error) {
	for _, as := range []*pgxpool.Pool{d.reader, d.owner} {
		err = as.QueryRow(ctx, `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND usename = $1 AND application_name = $2 AND pid <> pg_backend_pid()`,
			d.readerRole, session).Scan(&found)
		var message *pgconn.PgError
		if !errors.As(err, &message) || message.Code != "42501" {
			break
		}
	}
	return found, err
}

// executeQuery executes a statement, one by the protocol, and reads its rows as text.
func executeQuery(ctx context.Context, tx pgx.Tx, sql string, limits Limits, a *query.Answer) error {
	// Whoever has enough rows does not wait for the rest.
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	rows := tx.Conn().PgConn().ExecParams(ctx, sql, nil, nil, nil, nil)
	var oids []uint32
	var bytes int64
	for rows.NextRow() {
		if oids == nil {
			oids = describeAnswer(tx, rows.FieldDescriptions(), a)
		}
		if int64(len(a.Rows)) == limits.Rows || bytes > limits.Bytes {
			a.Truncated = true
			enough()
			_, _ = rows.Close()
			return errRowLimit
		}
		row := make([]any, len(oids))
		for i, text := range rows.Values() {
			if int64(len(text)) > limits.Value {
				enough()
				_, _ = rows.Close()
				return valueTooLarge(a.Columns[i].Name, len(text), limits.Value)
			}
			bytes += int64(len(text)) + 8
			row[i] = value(oids[i], text)
		}
		a.Rows = append(a.Rows, row)
	}
	if oids == nil {
		describeAnswer(tx, rows.FieldDescriptions(), a)
	}
	_, err := rows.Close()
	return err
}

func valueTooLarge(column string, bytes int, limit int64) error {
	return &engine.Error{
		Code: engine.CodeInvalid,
		Message: fmt.Sprintf(
			"The column %q has a value of %d bytes, and an answer holds values of %d.",
			column,
			bytes,
			limit,
		),
		Hint: "Shorten it: left(…, 1000), or count what it is made of.",
	}
}

// errRowLimit ends the transaction of an answer that is as long as it may be; its connection is not used again.
var errRowLimit = errors.New("there are enough rows")

func describeAnswer(tx pgx.Tx, fields []pgconn.FieldDescription, a *query.Answer) (oids []uint32) {
	oids = []uint32{}
	for _, f := range fields {
		name := strconv.FormatUint(uint64(f.DataTypeOID), 10)
		if t, ok := tx.Conn().TypeMap().TypeForOID(f.DataTypeOID); ok {
			name = t.Name
		}
		a.Columns = append(a.Columns, query.Column{Name: f.Name, Type: name})
		oids = append(oids, f.DataTypeOID)
	}
	return oids
}

// value is a value that Postgres wrote as text.
func value(oid uint32, text []byte) any {
	if text == nil {
		return nil
	}
	switch oid {
	case pgtype.BoolOID:
		return text[0] == 't'
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		return json.Number(string(text))
	case pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID:
		if n, err := strconv.ParseFloat(string(text), 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
			return json.Number(string(text))
		}
	case pgtype.JSONOID, pgtype.JSONBOID:
		return json.RawMessage(append([]byte(nil), text...))
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// timeoutError says that a statement came to the end of its time.
func timeoutError(err error) bool {
	var message *pgconn.PgError
	return errors.As(err, &message) && message.Code == "57014"
}
