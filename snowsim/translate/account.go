package translate

import (
	"context"
	_ "embed" // prelude.sql
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Account is what the statements of an account share: its server, its objects with
// the rights on them, and what its contract allows. It is safe for concurrent use.
type Account struct {
	host     Host
	tables   *tableCache
	grants   *grants
	contract Contract

	timestampTZ uint32   // the OID of snowsim.timestamp_tz
	long        sync.Map // identifiers by the short names that they have in Postgres
}

// newAccount returns an account of which nothing has been read.
func newAccount(host Host, denied []Denied, contract Contract) *Account {
	return &Account{host: host, tables: newCatalog(host.Postgres()), grants: newGrants(denied), contract: contract}
}

// openAccount installs what the stand-in needs into the host's database, and loads what
// an earlier process left there.
func openAccount(ctx context.Context, host Host, denied []Denied, contract Contract) (*Account, error) {
	a := newAccount(host, denied, contract)
	database, schema := host.Database()
	err := pgx.BeginFunc(ctx, host.Postgres(), func(tx pgx.Tx) error {
		// Two stand-ins on one database install one after the other.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(7736269)"); err != nil {
			return err
		}
		var ready bool
		if err := tx.QueryRow(ctx, castsInstalled).Scan(&ready); err != nil {
			return err
		}
		if !ready {
			if err := InstallCasts(ctx, tx.Conn()); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, prelude); err != nil {
			return err
		}
		for _, n := range []string{"PUBLIC", schema} {
			if database != "" && n != "" {
				if err := execAll(ctx, tx.Conn(), createSchema(database, n, host.Now(), "SYSADMIN", "")...); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("installing the stand-in's catalog: %w", err)
	}
	if err := a.loadNames(ctx); err != nil {
		return nil, err
	}
	if err := host.Postgres().QueryRow(ctx, "SELECT 'snowsim.timestamp_tz'::regtype::oid").
		Scan(&a.timestampTZ); err != nil {
		return nil, fmt.Errorf("reading the stand-in's types: %w", err)
	}
	return a, a.grants.load(ctx, host.Postgres())
}

// rememberIdentifier stores an identifier that is too long for Postgres.
func (a *Account) rememberIdentifier(identifier string) {
	if len(identifier) > maxPostgresName {
		a.long.LoadOrStore(shortName(identifier), identifier)
	}
}

// displayName returns the identifier for its name in Postgres.
func (a *Account) displayName(postgres string) string {
	if len(postgres) < maxPostgresName-20 {
		return postgres
	}
	if long, ok := a.long.Load(postgres); ok {
		return long.(string)
	}
	return postgres
}

// loadNames reads the identifiers that an earlier process shortened.
func (a *Account) loadNames(ctx context.Context) error {
	rows, err := a.host.Postgres().Query(ctx,
		"SELECT table_name FROM snowsim.tables UNION SELECT column_name FROM snowsim.columns")
	if err != nil {
		return fmt.Errorf("reading the stand-in's catalog: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("reading the stand-in's catalog: %w", err)
	}
	for _, n := range names {
		a.rememberIdentifier(n)
	}
	return nil
}

// RoleExists reports whether a session can use a role.
func (a *Account) RoleExists(role string) bool {
	return a.grants.isCustomRole(role) || slices.Contains(a.host.Roles(), role)
}

// MayUse reports whether a session's roles may use a warehouse.
func (a *Account) MayUse(s *Session, warehouse string) bool {
	w, _ := a.host.Warehouses().Get(warehouse)
	o := warehouseObject(warehouse)
	o.owner = w.Owner
	return a.hasPrivilege(s, "USAGE", o)
}

// hasPrivilege reports whether a session has a privilege on an object. Only the primary role makes
// objects.
func (a *Account) hasPrivilege(s *Session, privilege string, o securable) bool {
	roles := []string{s.Role}
	if !strings.HasPrefix(privilege, "CREATE ") {
		roles = append(roles, a.grants.secondaryRoles(s)...)
	}
	return a.grants.has(roles, privilege, o)
}

// writeTable writes a changed catalog entry.
func (a *Account) writeTable(ctx context.Context, conn *pgx.Conn, changed *tableEntry) error {
	if err := writeTable(ctx, conn, changed); err != nil {
		return Error(err)
	}
	a.tables.cache(changed)
	return nil
}

// owners are the names and owners of all tables.
func (a *Account) owners(ctx context.Context) ([]tableEntry, error) {
	rows, err := a.host.Postgres().Query(ctx,
		"SELECT owner, kind, database_name, schema_name, table_name FROM snowsim.tables")
	if err != nil {
		return nil, fmt.Errorf("reading who owns the tables: %w", err)
	}
	tables, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t tableEntry, err error) {
		return t, row.Scan(&t.Owner, &t.Kind, &t.name.database, &t.name.schema, &t.name.object)
	})
	if err != nil {
		return nil, fmt.Errorf("reading who owns the tables: %w", err)
	}
	return tables, nil
}

//go:embed prelude.sql
var prelude string

//go:embed casts.sql
var casts string

// InstallCasts installs, in the database of a superuser's connection, the casts that only
// superusers may create. New does so itself when its own role is one; a role
// without that right needs Admit once, before New.
func InstallCasts(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, casts); err != nil {
		return fmt.Errorf("installing the stand-in's casts: %w", err)
	}
	return nil
}

// SearchPath is the search_path that the connections of statements have.
const SearchPath = "public, snowsim_operators"

// castsInstalled reports whether the casts of InstallCasts exist.
const castsInstalled = `SELECT count(*) = 2 FROM pg_cast WHERE (castsource, casttarget) IN (('boolean'::regtype, 'numeric'::regtype), ('numeric'::regtype, 'boolean'::regtype))`

// schemaMeta is a schema's metadata, stored as JSON in its Postgres comment.
type schemaMeta struct {
	Database  string    `json:"database"`
	Schema    string    `json:"schema"`
	CreatedOn time.Time `json:"created_on"`
	Owner     string    `json:"owner"`
	Comment   string    `json:"comment"`
}

// createSchema returns the statements that make a schema unless it exists.
func createSchema(database, schema string, now time.Time, owner, comment string) []string {
	entry, err := json.Marshal(schemaMeta{database, schema, now.UTC(), owner, comment})
	if err != nil { // strings and a time are always marshalled
		panic(err)
	}
	quotedName := quote(schemaName(database, schema))
	return []string{"CREATE SCHEMA IF NOT EXISTS " + quotedName,
		"COMMENT ON SCHEMA " + quotedName + " IS " + literal(string(entry))}
}
