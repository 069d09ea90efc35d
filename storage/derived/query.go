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
	began := time.Now()
	a.Columns, a.Rows = []query.Column{}, [][]any{}
	limits := d.Settings.Query
	limits.Rows = min(limits.Rows, int64(max(limit, 1)))
	err = pgx.BeginTxFunc(ctx, d.reader, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := limitStatements(ctx, tx, limits.Statement); err != nil {
			return err
		}
		if name := query.Session(ctx); name != "" {
			if _, err := tx.Exec(ctx, "SET LOCAL application_name = '"+name+"'", pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		return executeQuery(ctx, tx, sql, limits, &a)
	})
	a.ElapsedMs = float64(time.Since(began).Microseconds()) / 1000
	if timeoutError(err) && time.Since(began) < limits.Statement {
		return a, query.ErrCancelled
	}
	if err != nil && !errors.Is(err, errRowLimit) {
		return a, queryError(err, sql)
	}
	return a, nil
}

// Cancel ends the queries of the sessions that are told apart so, whoever has opened them; ErrNotFound when there are
// none. The reader's own sessions may do it where readers can call the function, else the owner where it may.
func (d *Database) Cancel(ctx context.Context, session string) error {
	var found int64
	var err error
	for _, as := range []*pgxpool.Pool{d.reader, d.owner} {
		err = as.QueryRow(ctx, `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND usename = $1 AND application_name = $2 AND pid <> pg_backend_pid()`,
			d.readerRole, session).Scan(&found)
		var message *pgconn.PgError
		if !errors.As(err, &message) || message.Code != "42501" {
			break
		}
	}
	switch {
	case err != nil:
		return wrapError("cancelling a query", err)
	case found == 0:
		return fmt.Errorf("cancelling a query: %w", store.ErrNotFound)
	}
	return nil
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
