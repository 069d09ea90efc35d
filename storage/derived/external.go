package derived

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	postgresdsn "github.com/loadstone-db/loadstone/engine/target/postgres/dsn"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
	"github.com/loadstone-db/loadstone/storage/resultsrole"
)

// The flags that name the results database.
const (
	ownerFlag  = "--results-database-url"
	readerFlag = "--results-reader-url"
	adminFlag  = "--results-admin-url"
)

// checkOwner refuses a database that cannot hold results: it is the control store's, or not the owner's to change.
func (d *Database) checkOwner(ctx context.Context) error {
	var role, name string
	var version int
	var create, standby, control bool
	var foreign []string
	err := d.owner.QueryRow(ctx, `SELECT current_user::text, current_database()::text,
			current_setting('server_version_num')::int / 10000,
			has_database_privilege(current_database(), 'CREATE'), pg_is_in_recovery(),
			EXISTS (SELECT FROM pg_class WHERE relname = 'run_status' AND relkind = 'r' AND relnamespace = (
				SELECT relnamespace FROM pg_class WHERE relname = 'schema_version' AND relkind = 'r' LIMIT 1)),
			ARRAY(SELECT nspname::text FROM pg_namespace WHERE nspname IN ('rollup', 'tables', 'staging')
				AND NOT pg_has_role(nspowner, 'USAGE') ORDER BY 1)`).
		Scan(&role, &name, &version, &create, &standby, &control, &foreign)
	switch {
	case err != nil:
		return connectError(ownerFlag, err)
	case control:
		return engine.InvalidField(ownerFlag, fmt.Sprintf("names the database %q, which is a control store", name),
			"results are kept apart from it, so that nobody who reads them reaches it: CREATE DATABASE results OWNER "+role)
	case version < dberr.Oldest:
		return engine.InvalidField(ownerFlag, fmt.Sprintf("names a Postgres %d", version),
			fmt.Sprintf("the results database needs %d or later", dberr.Oldest))
	case standby:
		return engine.InvalidField(ownerFlag, "names a standby, which cannot be written to", "name the primary")
	case len(foreign) > 0:
		return engine.InvalidField(ownerFlag,
			fmt.Sprintf("names a database whose schema %s is somebody else's", strings.Join(foreign, ", ")),
			"connect as its owner, or name an empty database")
	case !create:
		var missing int
		if err := d.owner.QueryRow(ctx, `SELECT 3 - count(*)::int FROM pg_namespace
				WHERE nspname IN ('rollup', 'tables', 'staging')`).Scan(&missing); err != nil {
			return connectError(ownerFlag, err)
		}
		if missing > 0 {
			return engine.InvalidField(ownerFlag, fmt.Sprintf("names a role that may not make schemas in %q", name),
				fmt.Sprintf("GRANT CREATE ON DATABASE %s TO %s", pgx.Identifier{name}.Sanitize(), pgx.Identifier{role}.Sanitize()))
		}
	}
	return nil
}

// checkReader connects as the reader. What the role may do too much is found when SQL of users is to be executed: all
// else goes on without that.
func (d *Database) checkReader(ctx context.Context) error {
	if err := d.reader.Ping(ctx); err != nil {
		return connectError(readerFlag, err)
	}
	return nil
}

// ApplyRole makes the reader of a results database as it should be, as the role of admin, or as the owner where that is
// empty, and returns what that role may not do.
func ApplyRole(ctx context.Context, owner, reader, admin string) ([]resultsrole.Missing, error) {
	own, err := parseURL(ownerFlag, owner)
	if err != nil {
		return nil, err
	}
	read, err := parseURL(readerFlag, reader)
	if err != nil {
		return nil, err
	}
	flag, as := ownerFlag, own
	if admin != "" {
		flag = adminFlag
		if as, err = parseURL(flag, admin); err != nil {
			return nil, err
		}
		if as.ConnConfig.Database != own.ConnConfig.Database {
			return nil, engine.InvalidField(flag, "names another database than "+ownerFlag, "name the same one")
		}
	}
	if read.ConnConfig.User == own.ConnConfig.User {
		return nil, engine.InvalidField(readerFlag, "names the owner", "name a role of its own, which may only read")
	}
	conn, err := pgx.ConnectConfig(ctx, as.ConnConfig)
	if err != nil {
		return nil, connectError(flag, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	missing, err := resultsrole.Apply(ctx, conn, resultsrole.Names{Database: own.ConnConfig.Database,
		Owner: own.ConnConfig.User, Reader: read.ConnConfig.User, Password: read.ConnConfig.Password})
	return missing, wrapError("making the reader of the results database", err)
}

// checkSame refuses a reader of another database. The schema has a number of its own, which is made here.
func (d *Database) checkSame(ctx context.Context) error {
	const look = "SELECT coalesce(obj_description(to_regnamespace('rollup'), 'pg_namespace'), '')"
	var own, seen string
	if err := d.owner.QueryRow(ctx, look).Scan(&own); err != nil {
		return connectError(ownerFlag, err)
	}
	if err := d.reader.QueryRow(ctx, look).Scan(&seen); err != nil {
		return connectError(readerFlag, err)
	}
	if own != seen {
		return engine.InvalidField(readerFlag, "names another database than "+ownerFlag, "name the same one, as its reader")
	}
	return nil
}

// connectError is an error of the first connections of a role: what somebody has to change is said in words.
func connectError(flag string, err error) error {
	var message *pgconn.PgError
	if what, hint := dberr.TLS(err); what != "" {
		return invalidURL(flag, err, "leads to a server that "+what, hint)
	}
	if errors.As(err, &message) {
		switch message.Code {
		case "28P01", "28000":
			return &engine.Error{Code: engine.CodeInvalid, Cause: err, Message: "The results database refuses the login of " +
				flag + ".", Hint: "Check user and password there, and pg_hba.conf: " + message.Message + "."}
		case codeTooOld:
			return &engine.Error{Code: engine.CodeUnavailable, Cause: err, Message: message.Message}
		case "3D000":
			return invalidURL(flag, err, "names a database that does not exist", "CREATE DATABASE results OWNER …")
		case "42501":
			return invalidURL(flag, err, "names a role that may not do that: "+message.Message,
				"the owner owns the database or has CREATE on it, the reader has CONNECT")
		}
	}
	return wrapError("opening the results database", err)
}

func invalidURL(flag string, err error, message, hint string) error {
	e := engine.InvalidField(flag, message, hint)
	e.Cause = err
	return e
}

// unavailableError is the error of a results database that cannot be reached, or cannot do now what it is asked.
func unavailableError(err error) error {
	e := &engine.Error{Code: engine.CodeUnavailable, Message: "The results database cannot be reached.",
		Hint:  "Try again in a few seconds; runs go on, and are taken in when it is back.",
		Cause: errors.Join(store.ErrUnavailable, err)}
	var message *pgconn.PgError
	if errors.As(err, &message) && message.Code == codeDiskFull {
		e.Message = "The disk of the results database is full: " + message.Message + "."
		e.Hint = "Make room there, or delete runs. What waits is done then; what was begun has left nothing."
	}
	return e
}

const (
	codeDiskFull = "53100"
	// codeTooOld is raised by the schema for a results database that it does not upgrade.
	codeTooOld = "LS006"
	// codeLimit is what a statement hears that needs more temporary files than its session may have.
	codeLimit = "53400"
	// codeMemory is what one hears that needs more memory than its session may have.
	codeMemory = "53200"
)

// parseURL reads the URL of one of the roles. What cannot be read may hold a password: it is not repeated.
func parseURL(flag, dsn string) (*pgxpool.Config, error) {
	if err := postgresdsn.Check(flag, dsn); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		why := "is not the URL of a database"
		if text := dberr.Innermost(err); strings.Contains(text, "no such file") || strings.Contains(text, "certificate") {
			why = "names a certificate that cannot be read"
		}
		return nil, engine.InvalidField(flag, why, "postgres://user:password@host:5432/database?sslmode=verify-full")
	}
	return config, nil
}
