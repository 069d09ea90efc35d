// Package schema applies this binary's schema to a database, and compares a database
// with it, piece by piece: a version row alone would believe whoever wrote it.
package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	postgresdsn "github.com/loadstone-db/loadstone/engine/target/postgres/dsn"
	"github.com/loadstone-db/loadstone/sql"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// schemaLock is the key of the advisory lock under which the schema changes.
const schemaLock = 0x6c6f6164 // "load"

// applyCommand is what the user runs.
const applyCommand = "loadstone schema apply --database-url …"

// Apply brings a database to this binary's schema, in one transaction and
// under a lock, so that several may try at once. Applying it again changes
// nothing. A schema that is newer than this binary, or too old to be upgraded, is left alone, with an error.
func Apply(ctx context.Context, dsn string) error {
	conn, err := connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", schemaLock); err != nil {
			return err
		}
		state, err := readSchema(ctx, tx)
		if err != nil {
			return err
		}
		if state.current() {
			return nil
		}
		if state.present && (state.version > sql.Version || sql.TooOld(state.version, state.hash) != "") {
			return state.problem()
		}
		return applyFiles(ctx, tx)
	})
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "42501" {
		return &engine.Error{Code: engine.CodeForbidden, Cause: err,
			Message: "This database user may not make tables: " + refused.Message + ".",
			Hint: "Apply the schema as the owner of the database, or give the script of `loadstone schema print` to its " +
				"administrator."}
	}
	return dberr.Failed("applying the schema", err)
}

// applyFiles runs the DDL and notes which schema it was.
func applyFiles(ctx context.Context, tx pgx.Tx) error {
	for _, f := range sql.Schema() {
		if _, err := tx.Exec(ctx, f.Text, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	_, err := tx.Exec(ctx, sql.Record(), pgx.QueryExecModeSimpleProtocol)
	return err
}

func connect(ctx context.Context, dsn string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(dsn)
	if err := errors.Join(CheckDSN(dsn), err); err != nil {
		return nil, InvalidDSN(err)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, unreachable(err)
	}
	var version int
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int / 10000").Scan(&version); err != nil {
		hangUp(conn)
		return nil, unreachable(err)
	}
	if version < dberr.Oldest {
		hangUp(conn)
		return nil, engine.InvalidField("--database-url", fmt.Sprintf("names a Postgres %d", version),
			fmt.Sprintf("the control store needs %d or later", dberr.Oldest))
	}
	return conn, nil
}

func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	// Nothing depends on a polite goodbye.
	_ = conn.Close(ctx)
}

// CheckDSN refuses a database URL that different readers would cut at different places.
func CheckDSN(dsn string) error { return postgresdsn.Check("--database-url", dsn) }

// InvalidDSN says that a database URL cannot be read, without what it holds.
func InvalidDSN(err error) error {
	var ambiguous *engine.Error
	if errors.As(err, &ambiguous) {
		return ambiguous
	}
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) && parse.Unwrap() != nil {
		// What went wrong with a file does not repeat the rest of the URL.
		if text := parse.Unwrap().Error(); strings.HasPrefix(text, "unable to ") || strings.Contains(text, "sslkey") {
			return &engine.Error{Code: engine.CodeInvalid, Cause: err,
				Message: "The database URL names a TLS file that cannot be used: " + text + ".",
				Hint:    "sslrootcert, sslcert and sslkey are files in PEM form on this machine."}
		}
	}
	// The parser's message may quote the DSN, so it stays in the cause.
	return &engine.Error{Code: engine.CodeInvalid, Cause: err, //nolint:gosec // names and columns, no secret
		Message: "The database URL cannot be read.",
		Hint:    "It looks like postgres://user:password@host:5432/database?sslmode=require."}
}

// unreachable says why the control store's database does not let us in.
func unreachable(err error) error {
	e := &engine.Error{Code: engine.CodeUnavailable, Cause: dberr.Map(err),
		Message: "The control store cannot be reached.",
		Hint:    "Check --database-url, and that the database server is running."}
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		e.Message = "The control store's database refused the connection: " + refused.Message + "."
		if refused.Code == "28P01" || refused.Code == "28000" {
			e.Hint = "Check user and password in --database-url, and pg_hba.conf there."
		}
	} else if what, hint := dberr.TLS(err); what != "" {
		e.Message, e.Hint = "The control store cannot be reached: its server "+what+".", "In --database-url: "+hint+"."
	} else if reason := dberr.Innermost(err); reason != "" {
		e.Message = "The control store cannot be reached: " + reason + "."
	}
	return e
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// schemaState is what a database says of its schema.
type schemaState struct {
	present bool
	version int
	hash    string
}

func (s schemaState) current() bool {
	return s.present && s.version == sql.Version && s.hash == sql.Hash()
}

// problem is nil for the current schema.
func (s schemaState) problem() error {
	switch {
	case s.current():
		return nil
	case !s.present:
		return &engine.Error{Code: engine.CodeUnavailable,
			Message: "The database has no Loadstone schema.", Hint: "Run: " + applyCommand}
	case s.version > sql.Version:
		return &engine.Error{Code: engine.CodeUnavailable,
			Message: fmt.Sprintf("The database's schema (version %d) is newer than this binary (version %d).", s.version,
				sql.Version),
			Hint: "Use a Loadstone that is at least as new as the one that applied it."}
	case sql.TooOld(s.version, s.hash) != "":
		return &engine.Error{Code: engine.CodeUnavailable, Message: sql.TooOld(s.version, s.hash)}
	default:
		return &engine.Error{Code: engine.CodeUnavailable,
			Message: fmt.Sprintf("The database's schema (version %d, %s) is older than this binary (version %d, %s).", s.version,
				s.hash, sql.Version, sql.Hash()),
			Hint: "Run: " + applyCommand}
	}
}

func readSchema(ctx context.Context, q querier) (schemaState, error) {
	s := schemaState{present: true}
	// A missing table would end the transaction, so its name is looked up first.
	var table *string
	if err := q.QueryRow(ctx, "SELECT to_regclass('schema_version')::text").Scan(&table); err != nil {
		return s, err
	}
	if table == nil {
		return schemaState{}, nil
	}
	err := q.QueryRow(ctx, "SELECT version, hash FROM schema_version").Scan(&s.version, &s.hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return schemaState{}, nil
	}
	return s, err
}

// Check reports whether a database says that it has this binary's schema.
func Check(ctx context.Context, q querier) error {
	s := schemaState{present: true}
	err := q.QueryRow(ctx, "SELECT version, hash FROM schema_version").Scan(&s.version, &s.hash)
	var refused *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows), errors.As(err, &refused) && refused.Code == "42P01":
		s = schemaState{}
	case errors.As(err, &refused) && strings.HasPrefix(refused.Code, "42"):
		return &engine.Error{Code: engine.CodeUnavailable, Cause: err,
			Message: "The schema cannot be read: " + refused.Message + ".", Hint: "Run: " + applyCommand}
	case err != nil:
		return unreachable(err)
	}
	return s.problem()
}
