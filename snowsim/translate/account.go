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
	Host     Host
	Tables   *Tables
	Grants   *grants
	Contract Contract

	timestampTZ uint32   // the OID of snowsim.timestamp_tz
	long        sync.Map // identifiers by the short names that they have in Postgres
}

// NewAccount returns an account of which nothing has been read.
func NewAccount(host Host, denied []Denied, contract Contract) *Account {
	return &Account{Host: host, Tables: newCatalog(host.Postgres()), Grants: newGrants(denied), Contract: contract}
}

// OpenAccount installs what the stand-in needs into the host's database, and reads what
// an earlier life left there.
func OpenAccount(ctx context.Context, host Host, denied []Denied, contract Contract) (*Account, error) {
	a := NewAccount(host, denied, contract)
	database, schema := host.Database()
	err := pgx.BeginFunc(ctx, host.Postgres(), func(tx pgx.Tx) error {
		// Two stand-ins on one database install one after the other.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(7736269)"); err != nil {
			return err
		}
		var ready bool
		if err := tx.QueryRow(ctx, admitted).Scan(&ready); err != nil {
			return err
		}
		if !ready {
			if err := Admit(ctx, tx.Conn()); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, prelude); err != nil {
			return err
		}
		for _, n := range []string{"PUBLIC", schema} {
			if database != "" && n != "" {
				if err := ExecAll(ctx, tx.Conn(), CreateSchema(database, n, host.Now(), "SYSADMIN", "")...); err != nil {
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
	return a, a.Grants.load(ctx, host.Postgres())
}

// Remember keeps an identifier that Postgres cuts short.
func (a *Account) Remember(identifier string) {
	if len(identifier) > MaxPostgres {
		a.long.LoadOrStore(Short(identifier), identifier)
	}
}

// Display returns the identifier for its name in Postgres.
func (a *Account) Display(postgres string) string {
	if len(postgres) < MaxPostgres-20 {
		return postgres
	}
	if long, ok := a.long.Load(postgres); ok {
		return long.(string)
	}
	return postgres
}

// loadNames reads the identifiers that Postgres cut short in an earlier life.
func (a *Account) loadNames(ctx context.Context) error {
	rows, err := a.Host.Postgres().Query(ctx,
		"SELECT table_name FROM snowsim.tables UNION SELECT column_name FROM snowsim.columns")
	if err != nil {
		return fmt.Errorf("reading the stand-in's catalog: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("reading the stand-in's catalog: %w", err)
	}
	for _, n := range names {
		a.Remember(n)
	}
	return nil
}

// RoleExists reports whether a role may be taken by a session.
func (a *Account) RoleExists(role string) bool {
	return a.Grants.Made(role) || slices.Contains(a.Host.Roles(), role)
}

// MayUse reports whether a session's roles may use a warehouse.
func (a *Account) MayUse(s *Session, warehouse string) bool {
	w, _ := a.Host.Warehouses().Get(warehouse)
	o := WarehouseObject(warehouse)
	o.Owner = w.Owner
	return a.May(s, "USAGE", o)
}

// May reports whether a session has a privilege on an object. Only the primary role makes
// objects.
func (a *Account) May(s *Session, privilege string, o Object) bool {
	roles := []string{s.Role}
	if !strings.HasPrefix(privilege, "CREATE ") {
		roles = append(roles, a.Grants.Secondary(s)...)
	}
	return a.Grants.has(roles, privilege, o)
}

// ChangeTable writes a changed catalog entry.
func (a *Account) ChangeTable(ctx context.Context, conn *pgx.Conn, changed *Table) error {
	if err := WriteTable(ctx, conn, changed); err != nil {
		return Error(err)
	}
	a.Tables.Put(changed)
	return nil
}

// Owned are the names and owners of all tables.
func (a *Account) Owned(ctx context.Context) ([]Table, error) {
	rows, err := a.Host.Postgres().Query(ctx,
		"SELECT owner, kind, database_name, schema_name, table_name FROM snowsim.tables")
	if err != nil {
		return nil, fmt.Errorf("reading who owns the tables: %w", err)
	}
	tables, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t Table, err error) {
		return t, row.Scan(&t.Owner, &t.Kind, &t.Name.Database, &t.Name.Schema, &t.Name.Object)
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

// Admit installs, in the database of a connection that belongs to a superuser, what only
// superusers may make. New does so itself when its own role is one; a role
// without that right needs Admit once, before New.
func Admit(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, casts); err != nil {
		return fmt.Errorf("installing the stand-in's casts: %w", err)
	}
	return nil
}

// SearchPath is the search_path that the connections of statements have.
const SearchPath = "public, snowsim_operators"

// admitted reports whether what Admit makes is there.
const admitted = `SELECT count(*) = 2 FROM pg_cast WHERE (castsource, casttarget) IN (('boolean'::regtype, 'numeric'::regtype), ('numeric'::regtype, 'boolean'::regtype))`

// schemaMeta is what is kept in a schema's Postgres comment.
type schemaMeta struct {
	Database  string    `json:"database"`
	Schema    string    `json:"schema"`
	CreatedOn time.Time `json:"created_on"`
	Owner     string    `json:"owner"`
	Comment   string    `json:"comment"`
}

// CreateSchema returns the statements that make a schema unless it exists.
func CreateSchema(database, schema string, now time.Time, owner, comment string) []string {
	entry, err := json.Marshal(schemaMeta{database, schema, now.UTC(), owner, comment})
	if err != nil { // strings and a time are always marshalled
		panic(err)
	}
	quotedName := Quote(SchemaName(database, schema))
	return []string{"CREATE SCHEMA IF NOT EXISTS " + quotedName,
		"COMMENT ON SCHEMA " + quotedName + " IS " + Literal(string(entry))}
}
