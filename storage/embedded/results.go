package embedded

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The results database, its owner, and the role of those who read it. Logins of people are members of the reader.
const (
	ResultsDatabase = "results"
	ResultsReader   = "results_reader"
)

// maxResultsConnections is how many connections there are to the results database at most, of max_connections.
const maxResultsConnections = 200

// allowedVolatile are the functions of Postgres that change with each call and do nothing besides: readers may call
// them. All others of that sort (they wait, write, lock, stop other sessions, or run text as SQL) they may not. The
// last ones are what psql calls to describe tables and collations.
var allowedVolatile = []string{"random", "random_normal", "clock_timestamp", "timeofday", "gen_random_uuid",
	"uuidv4", "uuidv7", "pg_is_in_recovery", "current_query", "pg_table_size", "pg_total_relation_size",
	"pg_relation_size", "pg_indexes_size", "pg_database_size", "pg_partition_ancestors", "pg_partition_tree",
	"pg_collation_actual_version"}

// Results makes the results database and its roles, where they are missing, and returns how its owner and its reader
// connect.
func (pg *Postgres) Results(ctx context.Context) (owner, reader string, err error) {
	pg.making.Lock()
	defer pg.making.Unlock()
	conn, err := pgx.Connect(ctx, pg.place.dsn("postgres", superuser))
	if err != nil {
		return "", "", fmt.Errorf("connecting to make the results database: %w", err)
	}
	defer closeConn(conn)
	var database, roles bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1),
		(SELECT count(*) = 2 FROM pg_roles WHERE rolname IN ($1, $2))`, ResultsDatabase, ResultsReader).Scan(&database, &roles)
	if err != nil {
		return "", "", fmt.Errorf("looking for the results database: %w", err)
	}
	var todo []string
	if !roles {
		todo = append(todo, "CREATE ROLE "+ResultsDatabase+" LOGIN NOINHERIT", "CREATE ROLE "+ResultsReader+" LOGIN")
	}
	if !database {
		todo = append(todo, "CREATE DATABASE "+ResultsDatabase+" OWNER "+ResultsDatabase)
	}
	todo = append(todo, "REVOKE ALL ON DATABASE "+ResultsDatabase+" FROM PUBLIC",
		"GRANT CONNECT ON DATABASE "+ResultsDatabase+" TO "+ResultsReader,
		// However many logins there are, they leave connections to the control store.
		fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d", ResultsDatabase, maxResultsConnections))
	todo = append(todo, sessionLimits(ResultsReader)...)
	if pg.place.password != "" {
		todo = append(todo, "ALTER ROLE "+ResultsDatabase+" PASSWORD '"+pg.place.password+"'",
			"ALTER ROLE "+ResultsReader+" PASSWORD '"+pg.place.password+"'")
	}
	for _, sql := range todo {
		if _, err := conn.Exec(ctx, sql); err != nil {
			// The statement may hold the password; the error's text does not.
			return "", "", fmt.Errorf("making the results database: %w", err)
		}
	}
	if err := pg.revokeSideEffects(ctx); err != nil {
		return "", "", err
	}
	return pg.place.dsn(ResultsDatabase, ResultsDatabase), pg.place.dsn(ResultsDatabase, ResultsReader), nil
}

// sessionLimits are what a reader's sessions begin with; a superuser alone may set some of them.
func sessionLimits(role string) []string {
	alter := "ALTER ROLE " + role + " SET "
	return []string{alter + "default_transaction_read_only = on", alter + "statement_timeout = '30s'",
		alter + "idle_in_transaction_session_timeout = '60s'", alter + "search_path = tables, rollup",
		alter + "work_mem = '32MB'", alter + "temp_file_limit = '1GB'", "ALTER ROLE " + role + " CONNECTION LIMIT 32"}
}

// revokeSideEffects takes functions with side effects from everybody but the owner, in the results database only.
func (pg *Postgres) revokeSideEffects(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, pg.place.dsn(ResultsDatabase, superuser))
	if err != nil {
		return fmt.Errorf("connecting to the results database: %w", err)
	}
	defer closeConn(conn)
	_, err = conn.Exec(ctx, `DO $$
		DECLARE f regprocedure;
		BEGIN
			FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.provolatile = 'v'
				AND p.prokind = 'f' AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
				AND NOT p.proname = ANY ('`+array(allowedVolatile)+`'::text[]) AND has_function_privilege('`+ResultsReader+`', p.oid, 'EXECUTE')
			LOOP
				EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);
				EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO `+ResultsDatabase+`', f);
			END LOOP;
			-- An earlier version may have taken more.
			FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace
				AND p.proname = ANY ('`+array(allowedVolatile)+`'::text[]) AND NOT has_function_privilege('`+ResultsReader+`', p.oid, 'EXECUTE')
			LOOP
				EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', f);
			END LOOP;
			REVOKE ALL ON SCHEMA public FROM PUBLIC;
			REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC;
			GRANT USAGE ON LANGUAGE plpgsql TO `+ResultsDatabase+`;
		END $$`)
	if err != nil {
		return fmt.Errorf("taking functions from the readers of the results database: %w", err)
	}
	return nil
}

func array(names []string) string {
	text := "{"
	for i, name := range names {
		if i > 0 {
			text += ","
		}
		text += name
	}
	return text + "}"
}
