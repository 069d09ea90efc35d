package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/resultsrole"
)

// readerName is what the login of somebody who reads results may be called; readerPrefix keeps it from being a
// role of Loadstone's own.
var readerName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

const readerPrefix = "query_"

// Reader is a login that was made.
type Reader struct {
	Name, OwnerID string
	// Suspended: it is not let in.
	Suspended bool
}

// ownerMark stands before the id of a login's owner in the comment of its role: it is kept where the login is, whatever
// the control store is restored to.
const ownerMark = "loadstone owner "

// AddReader makes a login of a user that reads the results database and nothing else. One that is there gets another
// password where that is asked for (renew), is let in again, and is the user's from then on; it is
// engine.CodeConflict else: who uses it would be shut out without a word. The connection string is shown once.
func (pg *Postgres) AddReader(ctx context.Context, name, ownerID string, renew bool) (dsn string, err error) {
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
	var there bool
	if err := conn.QueryRow(
		ctx,
		"SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)",
		role,
	).Scan(
		&there,
	); err != nil {
		return "", fmt.Errorf("looking for a login: %w", err)
	}
	if there && !renew {
		return "", &engine.Error{Code: engine.CodeConflict, Message: fmt.Sprintf("There is a login %q already.", name),
			Hint: "--new-password (new_password) gives it another password, and who uses the present one is shut out; or " +
				"choose another name."}
	}
	var todo []string
	if !there {
		todo = append(todo, "CREATE ROLE "+role+" IN ROLE "+ResultsReader)
	}
	todo = append(todo, "COMMENT ON ROLE "+role+" IS '"+strings.ReplaceAll(ownerMark+ownerID, "'", "''")+"'",
		"ALTER ROLE "+role+" LOGIN PASSWORD '"+password+"'")
	todo = append(todo, limitStatements(role, resultsrole.LoginLimits)...)
	if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, sql := range todo {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return errors.New("the statement was refused") // the statement holds the password
			}
		}
		return nil
	}); err != nil {
		return "", fmt.Errorf("making a login: %w", err)
	}
	return pg.place.readerDSN(role, password), nil
}

// Readers lists the logins that were made, by name.
func (pg *Postgres) Readers(ctx context.Context) ([]Reader, error) {
	conn, err := pgx.Connect(ctx, pg.place.dsn("postgres", superuser))
	if err != nil {
		return nil, fmt.Errorf("connecting to list logins: %w", err)
	}
	defer closeConn(conn)
	rows, err := conn.Query(ctx, "SELECT substr(rolname, length($1::text) + 1), "+ownerOf+`, NOT rolcanlogin FROM pg_roles
		WHERE starts_with(rolname, $1::text) ORDER BY 1`, readerPrefix, ownerMark)
	if err != nil {
		return nil, fmt.Errorf("listing logins: %w", err)
	}
	readers, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Reader])
	if err != nil {
		return nil, fmt.Errorf("listing logins: %w", err)
	}
	return readers, nil
}

// ownerOf is the owner of a row of pg_roles, by its comment; $2 is ownerMark.
const ownerOf = `CASE WHEN starts_with(shobj_description(oid, 'pg_authid'), $2::text)
	THEN substr(shobj_description(oid, 'pg_authid'), length($2::text) + 1) ELSE '' END`

// SuspendReader lets a login in no longer, and ends its sessions, until AddReader renews it; changed tells that it was
// let in until then. It stays as it is when it is another owner's meanwhile.
func (pg *Postgres) SuspendReader(ctx context.Context, name, ownerID string) (changed bool, err error) {
	pg.making.Lock()
	defer pg.making.Unlock()
	conn, err := pgx.Connect(ctx, pg.place.dsn("postgres", superuser))
	if err != nil {
		return false, fmt.Errorf("connecting to suspend a login: %w", err)
	}
	defer closeConn(conn)
	var id uint32
	var owner string
	err = conn.QueryRow(ctx, "SELECT oid, rolcanlogin, "+ownerOf+" FROM pg_roles WHERE rolname = $1", readerPrefix+name,
		ownerMark).Scan(&id, &changed, &owner)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && owner != ownerID {
		return false, nil
	}
	if err == nil && changed {
		_, err = conn.Exec(ctx, "ALTER ROLE "+pgx.Identifier{readerPrefix + name}.Sanitize()+" NOLOGIN")
	}
	if err != nil {
		return false, fmt.Errorf("suspending a login: %w", err)
	}
	return changed, endSessions(ctx, conn, id)
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
	return endSessions(ctx, conn, id)
}

// endSessions ends those of a role. One that was being let in meanwhile is ended when it is looked at again.
func endSessions(ctx context.Context, conn *pgx.Conn, role uint32) error {
	if _, err := conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usesysid = $1",
		role); err != nil {
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
