package resultsrole

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Names say which database is to have which reader.
type Names struct {
	Database, Owner, Reader string
	// Password is the reader's, of one that is made.
	Password string
}

// Missing is a statement that the present role may not execute.
type Missing struct {
	SQL string
	// Why is what Postgres said.
	Why string
}

// statement is one of those that make a role.
type statement struct{ sql, shown string }

// Apply makes the reader, and takes from it and from PUBLIC what a reader has too much. It may be repeated, and by any
// role: what the present one may not do is returned, to be executed by one that may. conn is one to the results
// database.
func Apply(ctx context.Context, conn *pgx.Conn, n Names) ([]Missing, error) {
	todo, err := statements(ctx, conn, n)
	if err != nil {
		return nil, err
	}
	var missing []Missing
	for _, s := range todo {
		_, err := conn.Exec(ctx, s.sql, pgx.QueryExecModeSimpleProtocol)
		var refused *pgconn.PgError
		switch {
		case err == nil:
		// Not allowed, or about a role that could not be made.
		case errors.As(err, &refused) && (refused.Code == "42501" || refused.Code == "42704"):
			missing = append(missing, Missing{s.shown, refused.Message})
		case errors.As(err, &refused):
			return missing, fmt.Errorf("%s: %w", s.shown, err)
		default:
			return missing, err
		}
	}
	return missing, nil
}

// statements are those that the role needs. What is in order already has none, so that nobody is asked for rights in
// vain.
func statements(ctx context.Context, conn *pgx.Conn, n Names) (todo []statement, err error) {
	add := func(list ...string) {
		for _, sql := range list {
			todo = append(todo, statement{sql, sql})
		}
	}
	database, owner, reader := pgx.Identifier{n.Database}.Sanitize(), pgx.Identifier{n.Owner}.Sanitize(),
		pgx.Identifier{n.Reader}.Sanitize()
	var there bool
	var attributes, memberships, settings, schemas []string
	var public, create, temp, connect, supervised bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1),
		ARRAY(SELECT v.name FROM pg_roles r, LATERAL (VALUES (rolsuper, 'NOSUPERUSER'), (rolcreaterole, 'NOCREATEROLE'),
			(rolcreatedb, 'NOCREATEDB'), (rolreplication, 'NOREPLICATION'), (rolbypassrls, 'NOBYPASSRLS'),
			(NOT rolcanlogin, 'LOGIN')) AS v (holds, name) WHERE rolname = $1 AND v.holds),
		ARRAY(SELECT p.rolname::text FROM pg_auth_members m JOIN pg_roles p ON p.oid = m.roleid
			JOIN pg_roles r ON r.oid = m.member WHERE r.rolname = $1),
		ARRAY(SELECT unnest(s.setconfig) FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole
			WHERE r.rolname = $1 AND s.setdatabase = 0
			UNION ALL SELECT 'CONNECTION LIMIT ' || rolconnlimit FROM pg_roles WHERE rolname = $1),
		ARRAY(SELECT DISTINCT nspname::text FROM pg_namespace, aclexplode(coalesce(nspacl, acldefault('n', nspowner))) a
			WHERE a.grantee = 0 AND a.privilege_type = 'CREATE' ORDER BY 1),
		EXISTS (SELECT FROM pg_database, aclexplode(coalesce(datacl, acldefault('d', datdba))) a
			WHERE datname = current_database() AND a.grantee = 0 AND a.privilege_type IN ('CREATE', 'TEMPORARY')),
		EXISTS (SELECT FROM pg_database, aclexplode(datacl) a JOIN pg_roles r ON r.oid = a.grantee
			WHERE datname = current_database() AND r.rolname = $1 AND a.privilege_type = 'CREATE'),
		EXISTS (SELECT FROM pg_database, aclexplode(datacl) a JOIN pg_roles r ON r.oid = a.grantee
			WHERE datname = current_database() AND r.rolname = $1 AND a.privilege_type = 'TEMPORARY'),
		EXISTS (SELECT FROM pg_database, aclexplode(datacl) a JOIN pg_roles r ON r.oid = a.grantee
			WHERE datname = current_database() AND r.rolname = $1 AND a.privilege_type = 'CONNECT'),
		EXISTS (SELECT FROM pg_roles o WHERE o.rolname = $2 AND (o.rolsuper
			OR pg_has_role(o.oid, 'pg_signal_backend', 'USAGE') AND pg_has_role(o.oid, 'pg_read_all_stats', 'USAGE')))`, pgx.QueryExecModeExec, n.Reader, n.Owner).
		Scan(&there, &attributes, &memberships, &settings, &schemas, &public, &create, &temp, &connect, &supervised)
	if err != nil {
		return nil, err
	}
	if !there {
		made := "CREATE ROLE " + reader + " LOGIN"
		todo = append(todo, statement{made + " PASSWORD " + quote(n.Password), made + " PASSWORD '…'"})
		if n.Password == "" {
			todo[0].sql = made
		}
	}
	if len(attributes) > 0 {
		add("ALTER ROLE " + reader + " " + strings.Join(attributes, " "))
	}
	for _, role := range memberships {
		add("REVOKE " + pgx.Identifier{role}.Sanitize() + " FROM " + reader)
	}
	if public {
		// The owner of the schemas may have them by PUBLIC only.
		add("GRANT CONNECT, CREATE, TEMPORARY ON DATABASE "+database+" TO "+owner,
			"REVOKE CREATE, TEMPORARY ON DATABASE "+database+" FROM PUBLIC")
	}
	if create {
		add("REVOKE CREATE ON DATABASE " + database + " FROM " + reader)
	}
	if temp {
		add("REVOKE TEMPORARY ON DATABASE " + database + " FROM " + reader)
	}
	if !connect {
		add("GRANT CONNECT ON DATABASE " + database + " TO " + reader)
	}
	for _, schema := range schemas {
		add("REVOKE CREATE ON SCHEMA " + pgx.Identifier{schema}.Sanitize() + " FROM PUBLIC")
	}
	own, superusers := ReaderLimits.SettingStatements(n.Reader)
	for _, sql := range append(own, superusers...) {
		if !alreadySet(settings, sql) {
			add(sql)
		}
	}
	members, err := memberStatements(ctx, conn, n)
	if err != nil {
		return nil, err
	}
	add(members...)
	if !supervised {
		add("GRANT pg_signal_backend, pg_read_all_stats TO " + owner)
	}
	more, err := revocations(ctx, conn, n)
	return append(todo, more...), err
}

// memberStatements give the logins that are members of the reader their limits: settings of a role are not those of its
// members.
func memberStatements(ctx context.Context, conn *pgx.Conn, n Names) (todo []string, err error) {
	rows, err := conn.Query(ctx, `SELECT u.rolname::text, ARRAY(SELECT unnest(s.setconfig) FROM pg_db_role_setting s
			WHERE s.setrole = u.oid AND s.setdatabase = 0 UNION ALL SELECT 'CONNECTION LIMIT ' || u.rolconnlimit)
		FROM pg_roles r, pg_roles u
		WHERE r.rolname = $1 AND u.rolcanlogin AND u.rolname <> session_user AND `+IsLogin("$2")+`
			AND EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = r.oid AND m.member = u.oid) ORDER BY 1`,
		pgx.QueryExecModeExec, n.Reader, n.Owner)
	if err != nil {
		return nil, err
	}
	var name string
	var settings []string
	_, err = pgx.ForEachRow(rows, []any{&name, &settings}, func() error {
		own, superusers := LoginLimits.SettingStatements(name)
		for _, sql := range append(own, superusers...) {
			if !alreadySet(settings, sql) {
				todo = append(todo, sql)
			}
		}
		return nil
	})
	return todo, err
}

// alreadySet tells whether a role has what a statement gives it: ALTER ROLE … SET name = value, or its last words.
func alreadySet(settings []string, sql string) bool {
	_, set, _ := strings.Cut(sql, " SET ")
	name, value, _ := strings.Cut(set, " = ")
	return slices.ContainsFunc(settings, func(s string) bool {
		return s == name+"="+strings.Trim(value, "'") || strings.HasSuffix(sql, " "+s)
	})
}

// revocations take rights on what is in the database.
func revocations(ctx context.Context, conn *pgx.Conn, n Names) (todo []statement, err error) {
	// PUBLIC's rights are the reader's, too.
	var own []string
	err = conn.QueryRow(ctx, `SELECT ARRAY(
		SELECT format('REVOKE CREATE ON SCHEMA %I FROM %I', nspname, $1::text) FROM pg_namespace, aclexplode(nspacl) a
			JOIN pg_roles r ON r.oid = a.grantee WHERE r.rolname = $1 AND a.privilege_type = 'CREATE'
		UNION ALL SELECT format('REVOKE ALL ON SCHEMA staging FROM %I', $1::text) FROM pg_namespace, aclexplode(nspacl) a
			JOIN pg_roles r ON r.oid = a.grantee WHERE r.rolname = $1 AND nspname = 'staging'
		UNION ALL SELECT DISTINCT format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON %I.%I FROM %s',
				n.nspname, c.relname, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident($1::text) END)
			FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
			WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
				AND (a.grantee = 0 OR a.grantee = (SELECT oid FROM pg_roles WHERE rolname = $1))
				AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'))`,
		pgx.QueryExecModeExec, n.Reader).Scan(&own)
	if err != nil {
		return nil, err
	}
	for _, sql := range own {
		todo = append(todo, statement{sql, sql})
	}
	var open bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM (SELECT p.proacl, p.proowner `+sideEffects+`) AS p,
			aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
		WHERE a.privilege_type = 'EXECUTE' AND (a.grantee = 0 OR a.grantee = (SELECT oid FROM pg_roles WHERE rolname = $2)))`,
		pgx.QueryExecModeExec, AllowedVolatile, n.Reader).Scan(&open); err != nil {
		return nil, err
	}
	if open {
		sql := revokeSideEffects(n)
		todo = append(todo, statement{sql, sql})
	}
	return todo, nil
}

// revokeSideEffects takes functions with side effects from everybody but the owner and superusers, in this database
// only. A superuser alone may do that with those of Postgres.
func revokeSideEffects(n Names) string {
	owner, reader := quote(n.Owner), quote(n.Reader)
	allowed := "'{" + strings.Join(AllowedVolatile, ",") + "}'::text[]"
	return `DO $loadstone$
DECLARE f record;
BEGIN
	FOR f IN SELECT p.oid::regprocedure AS name, p.proname = ANY (` + allowed + `) AS allowed FROM pg_proc p
		WHERE p.provolatile = 'v' AND p.prokind <> 'p'
			AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
			AND NOT 'internal'::regtype = ANY (p.proargtypes::oid[])
	LOOP
		IF f.allowed THEN
			-- An earlier version may have taken it.
			IF NOT has_function_privilege(` + reader + `, f.name, 'EXECUTE') THEN
				EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', f.name);
			END IF;
		ELSIF has_function_privilege(` + reader + `, f.name, 'EXECUTE') THEN
			EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC, %I', f.name, ` + reader + `);
			EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f.name, ` + owner + `);
		END IF;
	END LOOP;
END $loadstone$`
}

// RevokeSideEffects is revokeSideEffects of a superuser.
func RevokeSideEffects(ctx context.Context, conn *pgx.Conn, n Names) error {
	_, err := conn.Exec(ctx, revokeSideEffects(n), pgx.QueryExecModeSimpleProtocol)
	return err
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
