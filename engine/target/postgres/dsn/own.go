package dsn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
)

// All names below are spelled out: a search_path of the connection string must not give them another meaning.
const (
	// askWhere says where a connection has landed. Every role may ask it, unless somebody has taken the right away.
	askWhere = `SELECT c.system_identifier, d.oid, d.datname
		FROM pg_catalog.pg_control_system() AS c, pg_catalog.pg_database AS d
		WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()`
	// askDatabases is the second mark: the databases of the whole Postgres, that of the connection first.
	askDatabases = `SELECT NULL, d.oid, d.datname FROM pg_catalog.pg_database AS d
		ORDER BY d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database() DESC`
	// askMight says as whom the connection was let in, and whether that role can become one that reaches other databases
	// from this one: a superuser, who reads or writes files or starts programs, an owner (whose OIDs go in), and before
	// Postgres 16 who makes roles.
	askMight = `SELECT session_user, EXISTS (SELECT FROM pg_catalog.pg_roles AS r
		WHERE pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER') AND (r.rolsuper
			OR r.rolname OPERATOR(pg_catalog.=) ANY (ARRAY['pg_read_server_files', 'pg_write_server_files',
				'pg_execute_server_program']::pg_catalog.name[])
			OR r.oid OPERATOR(pg_catalog.=) ANY ('{%s}'::pg_catalog.oid[])
			OR r.rolcreaterole AND pg_catalog.current_setting('server_version_num')::pg_catalog.int4
				OPERATOR(pg_catalog.<) 160000))`
	// askOwners are the roles that own the database of the connection or something in it, and who asks. Roles of
	// Postgres' own stand for another one in each database (pg_database_owner).
	askOwners = `SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE r.rolname !~ '^pg_' AND (
		r.rolname IN (session_user, current_user)
		OR r.oid IN (SELECT d.datdba FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())
		OR r.oid IN (SELECT n.nspowner FROM pg_catalog.pg_namespace AS n
			WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema')
		OR r.oid IN (SELECT c.relowner FROM pg_catalog.pg_class AS c
			JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'))`
)

const ownHint = "Use a database of your own. The built-in connection playground is the only one that leads to this " +
	"server's own Postgres."

// Identify says what the database of a connection is. The caller says for what it is used.
func Identify(ctx context.Context, c *pgconn.PgConn) (own engine.OwnDatabase, err error) {
	where, err := locate(ctx, c, false)
	if err != nil {
		return own, err
	}
	if len(where) == 0 {
		return own, errors.New("the server does not tell what its database is")
	}
	own.SystemID, own.OID, own.Name = where[0].system, where[0].oid, where[0].name
	rows, err := ask(ctx, c, askOwners, 1)
	if err != nil {
		return own, err
	}
	for _, row := range rows {
		if oid, err := strconv.ParseUint(string(row[0]), 10, 32); err == nil {
			own.Owners = append(own.Owners, uint32(oid))
		}
	}
	slices.Sort(own.Owners)
	return own, nil
}

// place is a database, and the Postgres that it is in; system is empty where that may not be asked.
type place struct {
	system string
	oid    uint32
	name   string
}

// locate says where a connection has landed. Where the system identifier may not be asked, or all is set, all databases
// of the Postgres follow that of the connection. What is no Postgres, and knows neither question, is nowhere.
func locate(ctx context.Context, c *pgconn.PgConn, all bool) (at []place, err error) {
	rows, err := ask(ctx, c, askWhere, 3)
	if isDenied(err) || err == nil && all {
		known := rows
		rows, err = ask(ctx, c, askDatabases, 3)
		rows = append(known, rows...)
	}
	if isForeign(err) || errors.Is(err, errShape) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		oid, err := strconv.ParseUint(string(row[1]), 10, 32)
		if err != nil {
			return nil, nil //nolint:nilerr // no Postgres has such a database
		}
		at = append(at, place{string(row[0]), uint32(oid), string(row[2])})
	}
	return at, nil
}

// errShape is of an answer with other columns than were asked for.
var errShape = errors.New("the server answered with other columns than were asked for, as no Postgres does")

// ask executes one statement as text, so that also a pooler that shares sessions answers; every row has so many
// columns.
func ask(ctx context.Context, c *pgconn.PgConn, sql string, columns int) (rows [][][]byte, err error) {
	results, err := c.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err //nolint:wrapcheck // the callers say what it is
	}
	for _, r := range results {
		rows = append(rows, r.Rows...)
	}
	if slices.ContainsFunc(rows, func(row [][]byte) bool { return len(row) != columns }) {
		return nil, errShape
	}
	return rows, nil
}

func isDenied(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && said.Code == "42501"
}

// isForeign reports an error of a system that does not know what every Postgres since 9.6 knows.
func isForeign(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && said.Code != "42501" && (strings.HasPrefix(said.Code, "42") ||
		strings.HasPrefix(said.Code, "0A"))
}

// noOwn is for who has no database of its own.
func noOwn() []engine.OwnDatabase { return nil }

// WithOwn is the reader with databases besides that no connection may land in, such as a server tells a node.
func (r Reader) WithOwn(more []engine.OwnDatabase) Reader {
	known := r.Own
	if known == nil {
		known = noOwn
	}
	r.Own = func() []engine.OwnDatabase {
		all := slices.Clone(known())
		for _, own := range more {
			if !slices.ContainsFunc(all, func(have engine.OwnDatabase) bool {
				return have.SystemID == own.SystemID && have.OID == own.OID && have.Name == own.Name
			}) {
				all = append(all, own)
			}
		}
		return all
	}
	return r
}

// refuseOwn has each connection asked where it has landed before it is used, and ended where that is a database of the
// server's own. It costs a round trip; where the Postgres is that of such a database, two.
func (r Reader) refuseOwn(c *pgx.ConnConfig) {
	next := c.AfterConnect
	c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if err := checkOwn(ctx, conn, r.Own()); err != nil {
			return err
		}
		if next != nil {
			return next(ctx, conn)
		}
		return nil
	}
}

func checkOwn(ctx context.Context, c *pgconn.PgConn, all []engine.OwnDatabase) error {
	if len(all) == 0 {
		return nil
	}
	at, err := locate(ctx, c, slices.ContainsFunc(all, func(own engine.OwnDatabase) bool { return own.SystemID == "" }))
	if err == nil && !slices.ContainsFunc(all, func(own engine.OwnDatabase) bool { return shares(at, own) }) {
		return nil
	}
	for _, own := range all {
		if err == nil && shares(at, own) {
			err = judgeLanding(ctx, c, at[0], own)
		}
	}
	var said *pgconn.PgError
	if errors.As(err, &said) && !isAway(said) {
		return &engine.Error{
			Code:  engine.CodeTarget,
			Cause: err,
			Message: "It cannot be told whether this connection leads to one of Loadstone's own databases: " +
				strings.TrimSuffix(
					said.Message,
					".",
				) + ".",
			Hint: "GRANT EXECUTE ON FUNCTION pg_catalog.pg_control_system() TO the user of the connection, and leave limits " +
				"such as statement_timeout out of its options.",
		}
	}
	return err
}

// isAway reports an error of a server, or of a pooler before it, that answers nothing now: its own words say why.
func isAway(said *pgconn.PgError) bool {
	return said.Severity == "FATAL" || said.Severity == "PANIC" || strings.HasPrefix(said.Code, "08") ||
		strings.HasPrefix(said.Code, "53") || strings.HasPrefix(said.Code, "57P")
}

// shares reports whether a connection has landed in the Postgres of an own database, or may have: where one of the two
// does not tell, a Postgres with a database of the same name and number is taken for the same.
func shares(at []place, own engine.OwnDatabase) bool {
	if len(at) == 0 {
		return false
	}
	if at[0].system != "" && own.SystemID != "" {
		return at[0].system == own.SystemID
	}
	return slices.ContainsFunc(at, func(p place) bool { return p.oid == own.OID && p.name == own.Name })
}

// judgeLanding is an error where a connection to the Postgres of an own database may not be used.
func judgeLanding(ctx context.Context, c *pgconn.PgConn, at place, own engine.OwnDatabase) error {
	if !own.Sealed && (at.oid == own.OID || at.name == own.Name) {
		return &engine.Error{Code: engine.CodeTarget, Cause: egress.ErrRefused,
			Message: fmt.Sprintf("This connection leads to the database %q, Loadstone's own %s, which is not a target.", at.name,
				own.What),
			Hint: "Use a database of your own, best on another server: load there would slow Loadstone down."}
	}
	owners := make([]string, len(own.Owners))
	for i, oid := range own.Owners {
		owners[i] = strconv.FormatUint(uint64(oid), 10)
	}
	rows, err := ask(ctx, c, fmt.Sprintf(askMight, strings.Join(owners, ",")), 2)
	if err != nil {
		return err
	}
	if len(rows) != 1 {
		return errors.New("the server does not tell what the user of the connection may")
	}
	user, mighty := string(rows[0][0]), string(rows[0][1]) != "f"
	switch {
	case own.Sealed && (user != at.name || !slices.Contains(own.Guests, at.name)):
		return &engine.Error{Code: engine.CodeTarget, Cause: egress.ErrRefused,
			Message: "This connection leads to Loadstone's own Postgres, which is not a target.", Hint: ownHint}
	case mighty && !own.Sealed:
		return &engine.Error{
			Code:  engine.CodeTarget,
			Cause: egress.ErrRefused,
			Message: fmt.Sprintf(
				"The user %q of this connection is as good as the owner of Loadstone's own %s, which is in the "+
					"same Postgres.",
				user,
				own.What,
			),
			Hint: "Connect as a user that owns the database under test and nothing else: no superuser, no member of " +
				"pg_read_server_files, pg_write_server_files or pg_execute_server_program, and not Loadstone's own.",
		}
	}
	return nil
}
