// This part keeps users and their tokens in Postgres.

package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// Users implements api.UserStore. Its calls last as long as their context and the pool allow.
type Users struct {
	Pool   *pgxpool.Pool
	hashes *hashes
}

// adminLock is the key of the advisory lock under which admins come and go.
const adminLock = 0x61646d6e // "admn"

const userColumns = `u.user_id, u.user_name, u.role, u.created_at, u.disabled_at, u.password_hash <> '',
	u.external_id IS NOT NULL, (SELECT max(t.last_used_at) FROM api_tokens t WHERE t.user_id = u.user_id)`

func scan(row pgx.Row, more ...any) (u store.User, err error) {
	var disabled, seen *time.Time
	err = row.Scan(append([]any{&u.UserID, &u.Name, &u.Role, &u.CreatedAt.Time, &disabled, &u.HasPassword, &u.External,
		&seen},
		more...)...)
	u.CreatedAt, u.DisabledAt, u.LastSeenAt = engine.At(u.CreatedAt.Time), userInstant(disabled), userInstant(seen)
	return u, err
}

// EnsureAdmin implements api.UserStore.
func (s Users) EnsureAdmin(ctx context.Context, name string) (u store.User, err error) {
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", adminLock); err != nil {
			return err
		}
		// The name may be that of an admin who is locked: then a number is added.
		if _, err := tx.Exec(ctx, `INSERT INTO users (user_id, user_name, role)
			SELECT $1, candidate, 'admin'
			FROM generate_series(1, (SELECT count(*) + 1 FROM users)) n,
				LATERAL (SELECT $2 || CASE n WHEN 1 THEN '' ELSE '-' || n END AS candidate) c
			WHERE NOT EXISTS (SELECT FROM users WHERE role = 'admin' AND disabled_at IS NULL) AND NOT EXISTS
				(SELECT FROM users WHERE lower(user_name COLLATE "C") = lower(candidate COLLATE "C"))
			ORDER BY n LIMIT 1`, newUserID(), name); err != nil {
			return err
		}
		u, err = scan(tx.QueryRow(ctx, "SELECT "+userColumns+` FROM users u WHERE role = 'admin' AND disabled_at IS NULL
			ORDER BY created_at, user_id LIMIT 1`))
		return err
	})
	return u, dberr.Saving("user", name, err)
}

// CreateUser implements api.UserStore.
func (s Users) CreateUser(ctx context.Context, name string, role store.Role) (store.User, error) {
	if err := store.CheckUser(name, role); err != nil {
		return store.User{}, err
	}
	if err := engine.CheckName("name", name); err != nil {
		return store.User{}, err
	}
	u, err := scan(s.Pool.QueryRow(ctx, `INSERT INTO users AS u (user_id, user_name, role) VALUES ($1, $2, $3)
		RETURNING `+userColumns, newUserID(), name, role))
	return u, dberr.Saving("user", name, err)
}

// ExternalUser implements api.UserStore.
func (s Users) ExternalUser(ctx context.Context, externalID, name string, role store.Role) (u store.User, changed bool,
	err error) {
	if err := store.CheckUser(name, role); err != nil {
		return u, false, err
	}
	err = s.keepingAnAdmin(ctx, func(tx pgx.Tx) error {
		var before store.Role
		err := tx.QueryRow(ctx, "SELECT role FROM users WHERE external_id = $1 FOR UPDATE", externalID).Scan(&before)
		if errors.Is(err, pgx.ErrNoRows) {
			if engine.LooksLikeID(name) {
				name = "user-" + name // providers name people so, who are known by externalID
			}
			u, err = scan(tx.QueryRow(ctx, `INSERT INTO users AS u (user_id, user_name, role, external_id)
				VALUES ($1, $2, $3, $4) RETURNING `+userColumns, newUserID(), name, role, externalID))
			return err
		}
		if err != nil {
			return err
		}
		changed = before != role
		u, err = scan(
			tx.QueryRow(ctx, "UPDATE users u SET role = $2 WHERE external_id = $1 RETURNING "+userColumns, externalID,
				role),
		)
		return err
	})
	if err != nil {
		return store.User{}, false, dberr.Saving("user", name, err)
	}
	return u, changed, nil
}

// ListUsers implements api.UserStore.
func (s Users) ListUsers(ctx context.Context) ([]store.User, error) {
	rows, err := s.Pool.Query(ctx, "SELECT "+userColumns+` FROM users u ORDER BY lower(user_name COLLATE "C"), user_id`)
	if err != nil {
		return nil, dberr.Failed("listing users", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (store.User, error) { return scan(row) })
	return list, dberr.Failed("listing users", err)
}

// ChangeUser implements api.UserStore.
func (s Users) ChangeUser(ctx context.Context, userID string, to store.UserChange) (now, before store.User,
	err error) {
	if err := to.Check(); err != nil {
		return now, before, err
	}
	err = s.keepingAnAdmin(ctx, func(tx pgx.Tx) error {
		before, err = scan(tx.QueryRow(ctx, "SELECT "+userColumns+" FROM users u WHERE user_id = $1 FOR UPDATE", userID))
		if err != nil {
			return err
		}
		if err := to.Expected.Check(before); err != nil {
			return err
		}
		now, err = scan(tx.QueryRow(ctx, `UPDATE users u SET role = coalesce($2, role), disabled_at = CASE
				WHEN $3::boolean IS NULL THEN disabled_at WHEN $3 THEN coalesce(disabled_at, now()) END
			WHERE user_id = $1 RETURNING `+userColumns, userID, to.Role, to.Disabled))
		return err
	})
	return now, before, dberr.Reading("user", userID, err)
}

// DeleteUser implements api.UserStore.
func (s Users) DeleteUser(ctx context.Context, userID string, was store.ExpectedUser) error {
	return dberr.Reading("user", userID, s.keepingAnAdmin(ctx, func(tx pgx.Tx) error {
		u, err := scan(tx.QueryRow(ctx, "SELECT "+userColumns+" FROM users u WHERE user_id = $1 FOR UPDATE", userID))
		if err != nil {
			return err
		}
		if err := was.Check(u); err != nil {
			return err
		}
		// What it has shared stays; its other views go with it.
		if _, err := tx.Exec(ctx, "UPDATE run_views SET user_id = NULL WHERE user_id = $1 AND shared", userID); err != nil {
			return err
		}
		// Links to reports end with who made them.
		if _, err := tx.Exec(ctx, "DELETE FROM run_shares WHERE created_by_id = $1", u.UserID); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "DELETE FROM users WHERE user_id = $1", userID)
		return err
	}))
}

// keepingAnAdmin does what may take an admin away, unless it was the last.
func (s Users) keepingAnAdmin(ctx context.Context, do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", adminLock); err != nil {
			return err
		}
		if err := do(tx); err != nil {
			return err
		}
		var left bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM users WHERE role = 'admin' AND disabled_at IS NULL)").
			Scan(&left); err != nil {
			return err
		}
		if !left {
			return store.LastAdminError()
		}
		return nil
	})
}

// UserCredentials implements api.UserStore.
func (s Users) UserCredentials(ctx context.Context, name string) (u store.User, hash string, err error) {
	u, err = scan(s.Pool.QueryRow(ctx, "SELECT "+userColumns+`, u.password_hash FROM users u
		WHERE lower(user_name COLLATE "C") = lower($1 COLLATE "C") AND disabled_at IS NULL`, store.CleanText(name)), &hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return store.User{}, "", dberr.NotFound("user", name)
	}
	return u, hash, dberr.Failed("looking up a password", err)
}

// SetPassword implements api.UserStore.
func (s Users) SetPassword(ctx context.Context, userID, hash string) error {
	return dberr.Reading("user", userID, pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "UPDATE users SET password_hash = $2 WHERE user_id = $1", userID, hash)
		switch {
		case err != nil:
			return err
		case tag.RowsAffected() == 0:
			return pgx.ErrNoRows
		}
		_, err = tx.Exec(ctx, "DELETE FROM api_tokens WHERE user_id = $1 AND kind IN ('session', 'invite')", userID)
		return err
	}))
}

// newUserID returns a fresh identifier; version 7 keeps index pages hot.
func newUserID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString()
	}
	return id.String()
}

// nullable returns the time for SQL; the zero time is NULL.
func nullable(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// userInstant reads a nullable time.
func userInstant(t *time.Time) engine.Time {
	if t == nil {
		return engine.Time{}
	}
	return engine.At(*t)
}
