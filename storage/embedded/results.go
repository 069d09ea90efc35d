package embedded

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/storage/resultsrole"
)

// The results database, its owner, and the role of those who read it. Logins of people are members of the reader.
const (
	ResultsDatabase = "results"
	ResultsReader   = "results_reader"
)

// maxResultsConnections is how many connections there are to the results database at most, of max_connections.
const maxResultsConnections = 200

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
		todo = append(todo, "CREATE ROLE "+ResultsDatabase+" LOGIN", "CREATE ROLE "+ResultsReader+" LOGIN")
	}
	if !database {
		todo = append(todo, "CREATE DATABASE "+ResultsDatabase+" OWNER "+ResultsDatabase)
	}
	todo = append(todo, "REVOKE ALL ON DATABASE "+ResultsDatabase+" FROM PUBLIC",
		"GRANT CONNECT ON DATABASE "+ResultsDatabase+" TO "+ResultsReader,
		// However many logins there are, they leave connections to the control store.
		fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d", ResultsDatabase, maxResultsConnections))
	todo = append(todo, limitStatements(ResultsReader, resultsrole.ReaderLimits)...)
	// The owner watches the sessions of readers, and ends those that take too much.
	todo = append(todo, "GRANT pg_signal_backend, pg_read_all_stats TO "+ResultsDatabase, "ALTER ROLE "+ResultsDatabase+
		" INHERIT")
	logins, err := existingLogins(ctx, conn)
	if err != nil {
		return "", "", err
	}
	for _, login := range logins {
		todo = append(todo, limitStatements(login, resultsrole.LoginLimits)...)
	}
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

// limitStatements give a role the limits of a reader.
func limitStatements(role string, l resultsrole.Limits) []string {
	owners, superusers := l.SettingStatements(role)
	return append(owners, superusers...)
}

// revokeSideEffects takes functions with side effects from everybody but the owner, in the results database only.
func (pg *Postgres) revokeSideEffects(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, pg.place.dsn(ResultsDatabase, superuser))
	if err != nil {
		return fmt.Errorf("connecting to the results database: %w", err)
	}
	defer closeConn(conn)
	if err := resultsrole.RevokeSideEffects(ctx, conn, resultsrole.Names{Database: ResultsDatabase, Owner: ResultsDatabase,
		Reader: ResultsReader}); err != nil {
		return fmt.Errorf("taking functions from the readers of the results database: %w", err)
	}
	for _, sql := range []string{"REVOKE ALL ON SCHEMA public FROM PUBLIC", "REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC",
		"GRANT USAGE ON LANGUAGE plpgsql TO " + ResultsDatabase} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("taking the schema public from the readers of the results database: %w", err)
		}
	}
	return nil
}
