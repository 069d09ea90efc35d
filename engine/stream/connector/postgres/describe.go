package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Dial connects with the credentials that are valid now. An error that is ErrRefused stays.
type Dial func(ctx context.Context) (*pgconn.PgConn, error)

// ErrRefused marks an error of Dial that another attempt does not cure.
var ErrRefused = errors.New("the connection can not be used")

// minServerVersion is the first version that tells what became of a transaction under the name that is used here.
const minServerVersion = 130000

// describeTimeout bounds reading what a table is like.
const describeTimeout = 10 * time.Second

// Describe reads what a table is like; an empty schema is whichever the search path finds it in. A
// *MismatchError says that rows can not be written there, however often it is tried.
func Describe(ctx context.Context, dial Dial, schema, name string) (Table, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	conn, err := dial(ctx)
	if err != nil {
		return Table{}, asTableError(err)
	}
	defer closeConn(conn)
	t, err := describe(ctx, conn, schema, name)
	return t, asTableError(err)
}

// asTableError makes an error that stays one of the table.
func asTableError(err error) error {
	var known *MismatchError
	if err == nil || errors.As(err, &known) || !isPermanent(err) {
		return err
	}
	return newMismatch("put that right in the connection, or in the database", "%s", safeMessage(err))
}

const tableQuery = `SELECT n.nspname, c.relname, c.relkind, c.relpersistence, current_setting('server_version_num'),
	pg_catalog.has_schema_privilege(n.oid, 'USAGE')::text,
	(pg_catalog.has_table_privilege(c.oid, 'INSERT') OR pg_catalog.has_any_column_privilege(c.oid, 'INSERT'))::text,
	pg_catalog.row_security_active(c.oid)::text, c.oid, current_user
	FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relname = $2 AND CASE WHEN $1 = '' THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $1 END
	AND c.relkind IN ('r', 'p', 'v', 'm', 'f')`

const columnsQuery = `SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), t.typname, t.typtype, a.atttypmod,
	a.attnotnull AND NOT a.atthasdef AND a.attidentity = '', a.attgenerated <> '',
	pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'INSERT')
	FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
	WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`

// askOne returns the one value that a query has, as text.
func askOne(ctx context.Context, conn *pgconn.PgConn, sql string, args ...string) (string, error) {
	rows, err := ask(ctx, conn, sql, 1, args...)
	if err != nil {
		return "", err
	}
	if len(rows) != 1 {
		return "", errUnexpectedReply
	}
	return rows[0][0], nil
}

// ask returns the rows of a query, which has so many columns, as text.
func ask(ctx context.Context, conn *pgconn.PgConn, sql string, columns int, args ...string) ([][]string, error) {
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	result := conn.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, result.Err
	}
	var rows [][]string
	for _, r := range result.Rows {
		if len(r) != columns {
			return nil, errUnexpectedReply
		}
		row := make([]string, len(r))
		for i, v := range r {
			row[i] = string(v)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func newMismatch(hint, format string, args ...any) error {
	return &MismatchError{Message: fmt.Sprintf(format, args...), Hint: hint}
}

// describe is Describe over a connection.
func describe(ctx context.Context, conn *pgconn.PgConn, schema, name string) (t Table, err error) {
	t.Schema, t.Name = schema, name
	if version, err := askOne(ctx, conn, "SELECT current_setting('server_version_num')"); err == nil {
		if n, err := strconv.Atoi(version); err == nil && n < minServerVersion {
			return t, newMismatch("write to a newer server",
				"the server is of the version %d; rows are written once from Postgres 13 on", n/10000)
		}
	}
	rows, err := ask(ctx, conn, tableQuery, 10, schema, name)
	if err != nil {
		return t, fmt.Errorf("looking for the table: %w", err)
	}
	if len(rows) == 0 {
		return t, &MismatchError{Missing: true, Message: fmt.Sprintf("there is no table %s", t.Shown())}
	}
	r := rows[0]
	t.Schema, t.Name = r[0], r[1]
	if t.Version, err = strconv.Atoi(r[4]); err != nil {
		return t, fmt.Errorf("reading the version of the server: %w", err)
	}
	switch user := r[9]; {
	case r[5] != "true":
		return t, newMismatch("GRANT USAGE ON SCHEMA "+Quote(t.Schema)+" TO "+Quote(user),
			"the user %s may not use the schema %s", user, t.Schema)
	case r[2] != "r" && r[2] != "p":
		return t, newMismatch("write to a table", "%s is no table", t.Shown())
	case r[3] == "u":
		return t, newMismatch("ALTER TABLE "+t.Quoted()+" SET LOGGED",
			"%s is UNLOGGED: a crash of its server empties it", t.Shown())
	case r[6] != "true":
		return t, newMismatch("GRANT INSERT ON "+t.Quoted()+" TO "+Quote(user),
			"the user %s may not insert into %s", user, t.Shown())
	case r[7] == "true":
		return t, newMismatch("write as the owner of the table, or as a role with BYPASSRLS",
			"row-level security holds on %s for the user %s, and COPY does not pass it",
			t.Shown(), user)
	}
	rows, err = ask(ctx, conn, columnsQuery, 8, r[8])
	if err != nil {
		return t, fmt.Errorf("reading the columns: %w", err)
	}
	for _, r := range rows {
		c := Column{Name: r[0], Type: r[1], Base: r[2], Required: r[5] == "t", Generated: r[6] == "t",
			Denied: r[7] != "t"}
		if r[3] != "b" {
			c.Base = "" // of a domain or an enum not every value is known to fit
		}
		mod, err := strconv.Atoi(r[4])
		if err != nil {
			return t, fmt.Errorf("reading the columns: %w", err)
		}
		if c.Limited = mod >= 0; c.Limited && c.Base == "numeric" {
			c.Precision, c.Scale = (mod-4)>>16&0xffff, (mod-4)&0x7ff
			if c.Scale >= 1024 {
				c.Scale -= 2048 // it may be negative
			}
		}
		t.Columns = append(t.Columns, c)
	}
	return t, nil
}

// closeConn closes a connection without waiting for long.
func closeConn(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
