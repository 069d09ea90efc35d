// Package resultsrole is the role that reads a results database: what it must not be able to do, what its sessions
// begin with, and the statements that make it so. What users write is executed as that role, in the embedded results
// database and in those of others alike.
package resultsrole

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// AllowedVolatile are the functions of Postgres that change with each call and do nothing besides: readers may call
// them. All others of that sort (they wait, write, lock, stop other sessions, or run text as SQL) they may not. The
// last ones are what psql calls to describe tables and collations.
var AllowedVolatile = []string{"random", "random_normal", "clock_timestamp", "timeofday", "gen_random_uuid",
	"uuidv4", "uuidv7", "pg_is_in_recovery", "current_query", "pg_table_size", "pg_total_relation_size",
	"pg_relation_size", "pg_indexes_size", "pg_database_size", "pg_partition_ancestors", "pg_partition_tree",
	"pg_collation_actual_version"}

// sideEffects are functions that SQL can call and that are volatile, but for those allowed; $1 are these.
const sideEffects = `FROM pg_catalog.pg_proc p WHERE p.provolatile = 'v' AND p.prokind <> 'p'
	AND p.prorettype NOT IN ('pg_catalog.trigger'::regtype, 'pg_catalog.event_trigger'::regtype)
	AND NOT 'pg_catalog.internal'::regtype = ANY (p.proargtypes::oid[]) AND NOT p.proname = ANY ($1)`

// Querier is a connection, a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// SideEffects are the names of the functions of a database, those of extensions and users too, that may do more than
// read. True are those that may be called as a column of a row, too: r.f is f(r).
func SideEffects(ctx context.Context, q Querier) (map[string]bool, error) {
	rows, err := q.Query(ctx, `SELECT p.proname::text, bool_or(p.pronargs > 0 AND p.pronargs - p.pronargdefaults <= 1
		AND (SELECT t.typtype <> 'b' FROM pg_catalog.pg_type t WHERE t.oid = p.proargtypes[0])) `+sideEffects+
		" GROUP BY 1", pgx.QueryExecModeExec, AllowedVolatile)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	var name string
	var column *bool
	_, err = pgx.ForEachRow(rows, []any{&name, &column}, func() error {
		found[name] = column != nil && *column
		return nil
	})
	return found, err
}

// IsLogin is a condition of SQL: the role u is the reader r, or a login of somebody who reads as r. Who administers is
// none: superusers, who may make roles, the owner, and who has the owner's rights. Since Postgres 16 whoever makes a
// role is a member of it without having its rights. owner is an expression.
func IsLogin(owner string) string {
	return `NOT u.rolsuper AND u.rolname <> ` + owner + ` AND (u.oid = r.oid OR NOT u.rolcreaterole
		AND NOT EXISTS (SELECT FROM pg_catalog.pg_roles o WHERE o.rolname = ` + owner + ` AND pg_has_role(u.oid, o.oid, 'USAGE'))
		AND pg_has_role(u.oid, r.oid, CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER'
			ELSE 'USAGE, SET' END))`
}

// Limits bound the sessions of a role.
type Limits struct {
	// Statement is how long a statement takes at most, WorkMemory what a sort has in memory, Connections how many
	// sessions there are.
	Statement, WorkMemory string
	Connections           int
}

// Of the reader itself, as which Loadstone executes queries and definitions, and of each login of a person.
var (
	ReaderLimits = Limits{Statement: "30s", WorkMemory: "8MB", Connections: 32}
	LoginLimits  = Limits{Statement: "30s", WorkMemory: "8MB", Connections: 8}
)

// Settings are what sessions of readers begin with, by the role and, but for those that a superuser alone may set, by
// the connection too. A session may set most of them anew: who watches sessions from outside sees to the rest.
func (l Limits) Settings() map[string]string {
	return map[string]string{"default_transaction_read_only": "on", "statement_timeout": l.Statement,
		"idle_in_transaction_session_timeout": "60s", "idle_session_timeout": "15min", "lock_timeout": "10s",
		"search_path": "tables, rollup", "work_mem": l.WorkMemory,
		"max_parallel_workers_per_gather": "0", "jit": "off"}
}

// superuserSettings are those that only a superuser may give a role, and that no session can set.
var superuserSettings = map[string]string{"temp_file_limit": "1GB"}

// SettingStatements give a role its limits, wherever it connects. The last ones only a superuser may execute.
func (l Limits) SettingStatements(role string) (owners, superusers []string) {
	role = pgx.Identifier{role}.Sanitize()
	set := func(all map[string]string) (list []string) {
		for name, value := range all {
			if name != "search_path" {
				value = "'" + value + "'"
			}
			list = append(list, "ALTER ROLE "+role+" SET "+name+" = "+value)
		}
		slices.Sort(list)
		return list
	}
	return append(set(l.Settings()), fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT %d", role, l.Connections)),
		set(superuserSettings)
}

// Right is one that a reader has too much.
type Right struct {
	// What is the right in words, behind the name of the role: "is a superuser".
	What string
	// Tolerated: nothing is executed with it that Loadstone takes from users, whose statements are looked at; somebody
	// who connects as the role may use it.
	Tolerated bool
}

// excess are the rights of the present role; $1 is the owner, $2 the functions that are allowed. Of a superuser nothing
// else needs to be said.
var excess = `WITH me AS (SELECT * FROM pg_catalog.pg_roles WHERE rolname = current_user),
	relation AS (SELECT c.oid, c.relowner, format('%I.%I', n.nspname, c.relname) AS name FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
			AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_t%')
	SELECT what, tolerated FROM (
		SELECT 1 AS place, v.what, false AS tolerated FROM me, LATERAL (VALUES (rolsuper, 'is a superuser'),
			(rolcreaterole AND NOT rolsuper, 'may make roles'), (rolcreatedb AND NOT rolsuper, 'may make databases'),
			(rolreplication AND NOT rolsuper, 'may replicate'), (rolbypassrls AND NOT rolsuper, 'passes row security by'),
			(rolname = $1, 'is the owner')) AS v (holds, what) WHERE v.holds
		UNION ALL SELECT 2, 'may act as the owner', false FROM me, pg_catalog.pg_roles o WHERE NOT me.rolsuper
			AND o.rolname = $1 AND o.oid <> me.oid AND pg_has_role(o.oid, 'MEMBER')
		UNION ALL SELECT 3, 'is a member of ' || p.rolname || CASE WHEN starts_with(p.rolname, 'pg_') THEN ''
				ELSE ', which is more than a reader' END, false
			FROM me, pg_catalog.pg_roles p WHERE NOT me.rolsuper AND p.oid <> me.oid AND p.rolname <> $1
			AND (starts_with(p.rolname, 'pg_') AND p.rolname <> 'pg_database_owner'
				OR p.rolsuper OR p.rolcreaterole OR p.rolcreatedb OR p.rolreplication OR p.rolbypassrls)
			AND pg_has_role(p.oid, 'MEMBER')
		UNION ALL SELECT 4, 'may make schemas', false FROM me
			WHERE NOT rolsuper AND has_database_privilege(current_database(), 'CREATE')
		UNION ALL SELECT 5, 'may make things in the schema ' || nspname, false FROM me, pg_catalog.pg_namespace n
			WHERE NOT rolsuper AND nspname NOT LIKE 'pg\_t%' AND has_schema_privilege(n.oid, 'CREATE')
		UNION ALL SELECT 6, 'reads the schema staging', false FROM me, pg_catalog.pg_namespace n
			WHERE NOT rolsuper AND nspname = 'staging' AND has_schema_privilege(n.oid, 'USAGE')
		UNION ALL SELECT 7, 'owns ' || min(r.name) || CASE count(*) WHEN 1 THEN ''
				ELSE format(' and %s more', count(*) - 1) END, false
			FROM me, relation r WHERE NOT rolsuper AND rolname <> $1 AND r.relowner = me.oid HAVING count(*) > 0
		UNION ALL SELECT 8, 'may write to ' || min(r.name) || CASE count(*) WHEN 1 THEN ''
				ELSE format(' and %s more', count(*) - 1) END, false
			FROM me, relation r WHERE NOT rolsuper AND rolname <> $1 AND r.relowner <> me.oid
			AND (has_any_column_privilege(r.oid, 'INSERT, UPDATE, REFERENCES')
				OR has_table_privilege(r.oid, 'DELETE, TRUNCATE, TRIGGER')) HAVING count(*) > 0
		UNION ALL SELECT 9, 'may make temporary tables', true FROM me
			WHERE NOT rolsuper AND has_database_privilege(current_database(), 'TEMPORARY')
		UNION ALL SELECT 10, format('may call %s functions with side effects (%s, …)', count(*), min(f.name)), true FROM me,
			(SELECT p.oid, p.proname AS name ` + excessFunctions + `) f
			WHERE NOT rolsuper AND has_function_privilege(f.oid, 'EXECUTE') HAVING count(*) > 0
	) AS rights ORDER BY place, what`

// excessFunctions are sideEffects as the second parameter names what is allowed.
var excessFunctions = strings.Replace(sideEffects, "$1", "$2", 1)

// Excess are the rights that the present role has too much for a reader of a database of that owner.
func Excess(ctx context.Context, q Querier, owner string) ([]Right, error) {
	rows, err := q.Query(ctx, excess, pgx.QueryExecModeExec, owner, AllowedVolatile)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Right])
}
