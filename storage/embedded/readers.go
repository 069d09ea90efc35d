package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/resultsrole"
)

// readerName is what the login of somebody who reads results may be called; readerPrefix keeps it from being a
// role of Loadstone's own.
var readerName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

const readerPrefix = "query_"

// AddReader makes a login that reads the results database and nothing else. One that is there gets another password
// where that is asked for (renew), and is engine.CodeConflict else: who uses it would be shut out without a word. The
// connection string is shown once.
func (pg *Postgres) AddReader(ctx context.Context, name string, renew bool) (dsn string, err error) {
	if !readerName.MatchString(name) {
		return "", engine.InvalidField("name", fmt.Sprintf("%q cannot be the name of a login", name),
			"a small letter, then small letters, digits and underscores, 40 at most")
	}
	if _, _, err := pg.Results(ctx); err != nil {
		return "", err
	}
	pg.making.Lock()
	defer pg.making.Unlock()
	conn, err := pgx.Connect(ctx, pg.place.dsn("postgres", superuser))
	if err != nil {
		return "", fmt.Errorf("connecting to make a login: %w", err)
	}
	defer closeConn(conn)
	role, password := readerPrefix+name, rand.Text()
	todo := append(
		[]string{"ALTER ROLE " + role + " PASSWORD '" + password + "'"},
		limitStatements(role, resultsrole.LoginLimits)...)
	_, err = conn.Exec(ctx, "CREATE ROLE "+role+" LOGIN IN ROLE "+ResultsReader)
	var refused *pgconn.PgError
	if there := errors.As(err, &refused) && refused.Code == "42710"; err != nil && !there {
		return "", fmt.Errorf("making a login: %w", err)
	} else if there && !renew {
		return "", &engine.Error{Code: engine.CodeConflict, Message: fmt.Sprintf("There is a login %q already.", name),
			Hint: "--new-password (new_password) gives it another password, and who uses the present one is shut out; or " +
				"choose another name."}
	}
	for _, sql := range todo {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", errors.New("making a login: Postgres refused it") // the statement holds the password
		}
	}
	return pg.place.readerDSN(role, password), nil
}

// RemoveReader removes such a login, and ends its sessions.
func (pg *Postgres) RemoveReader(ctx context.Context, name string) error {
	pg.making.Lock()
	defer pg.making.Unlock()
	conn, err := pgx.Connect(ctx, pg.place.dsn("postgres", superuser))
	if err != nil {
		return fmt.Errorf("connecting to remove a login: %w", err)
	}
	defer closeConn(conn)
	if !readerName.MatchString(name) {
		return &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("There is no login %q.", name)}
	}
	var id uint32
	err = conn.QueryRow(ctx, "SELECT oid FROM pg_roles WHERE rolname = $1", readerPrefix+name).Scan(&id)
	if err == nil {
		_, err = conn.Exec(ctx, "DROP ROLE "+readerPrefix+name)
	}
	var refused *pgconn.PgError
	if errors.Is(err, pgx.ErrNoRows) || errors.As(err, &refused) && refused.Code == "42704" {
		return &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("There is no login %q.", name)}
	}
	if err != nil {
		return fmt.Errorf("removing a login: %w", err)
	}
	// A role that is gone has no name any more, and its sessions would go on.
	if _, err = conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usesysid = $1",
		id); err != nil {
		return fmt.Errorf("ending the sessions of a login: %w", err)
	}
	return nil
}

// existingLogins are the logins that were made.
func existingLogins(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	rows, err := conn.Query(ctx, "SELECT rolname::text FROM pg_roles WHERE starts_with(rolname, $1)", readerPrefix)
	if err != nil {
		return nil, fmt.Errorf("listing logins: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("listing logins: %w", err)
	}
	return names, nil
}
