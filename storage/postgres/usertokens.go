package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

const tokenColumns = "t.token_id, t.user_id, t.kind, t.name, t.scope, t.expires_at, t.last_used_at, t.created_at" //nolint:gosec // names and columns, no secret

func scanToken(row pgx.Row, t *store.Token, more ...any) error {
	var expires, used *time.Time
	dest := append([]any{&t.TokenID, &t.UserID, &t.Kind, &t.Name, &t.Scope, &expires, &used, &t.CreatedAt.Time}, more...)
	err := row.Scan(dest...)
	t.ExpiresAt, t.LastUsedAt, t.CreatedAt = userInstant(expires), userInstant(used), engine.At(t.CreatedAt.Time)
	return err
}

// CreateToken implements api.UserStore. It removes the owner's expired tokens.
func (s Users) CreateToken(ctx context.Context, t store.Token, secretSHA256 [32]byte) (store.Token, error) {
	if t.TokenID == "" {
		t.TokenID = newUserID()
	}
	hash, hashKey, err := s.hashes.stored(ctx, tokenHash, secretSHA256)
	if err != nil {
		return t, err
	}
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM api_tokens WHERE user_id = $1 AND expires_at <= now()", t.UserID); err != nil {
			return err
		}
		// One link at a time: a new one makes those before it useless.
		const links = "DELETE FROM api_tokens WHERE kind = $1 AND ($1 = 'signin' OR $1 = 'invite' AND user_id = $2)"
		if _, err := tx.Exec(ctx, links, t.Kind, t.UserID); err != nil {
			return err
		}
		return scanToken(tx.QueryRow(ctx,
			`INSERT INTO api_tokens AS t (token_id, user_id, kind, name, secret_sha256, expires_at, scope, hash_key)
			VALUES ($1, $2, $3, $4, $5, $6, coalesce(nullif($7, ''), 'write'), $8) RETURNING `+tokenColumns,
			t.TokenID, t.UserID, t.Kind, t.Name, hash, nullable(t.ExpiresAt.Time), t.Scope, hashKey), &t)
	})
	return t, dberr.Failed("saving token", err)
}

// useNoteTimeout bounds how long the noting of a token's use holds a request up.
const useNoteTimeout = time.Second

// UseToken implements api.UserStore. The time of use is exact to a minute, so
// that a page that asks each second does not write each second.
func (s Users) UseToken(ctx context.Context, kind string, secretSHA256 [32]byte) (store.Token, store.User, error) {
	return s.token(ctx, kind, secretSHA256, true)
}

// FindToken implements auth.Tokens.
func (s Users) FindToken(ctx context.Context, kind string, secretSHA256 [32]byte) (store.Token, store.User, error) {
	return s.token(ctx, kind, secretSHA256, false)
}

func (s Users) token(ctx context.Context, kind string, secretSHA256 [32]byte, used bool) (store.Token, store.User,
	error) {
	var t store.Token
	var u store.User
	candidates := s.hashes.candidates(tokenHash, secretSHA256)
	read := func(sql string) error {
		return scanToken(s.Pool.QueryRow(ctx, sql, kind, candidates), &t, &u.UserID, &u.Name, &u.Role,
			&u.CreatedAt.Time, &u.HasPassword, &u.External)
	}
	const userColumns = ", u.user_id, u.user_name, u.role, u.created_at, u.password_hash <> '', u.external_id IS NOT NULL"
	const valid = " t.kind = $1 AND t.secret_sha256 = ANY($2) AND (t.expires_at IS NULL OR t.expires_at > now())" +
		" AND u.disabled_at IS NULL"
	once := used && (kind == "signin" || kind == "invite")
	var err error
	if once {
		err = read("DELETE FROM api_tokens t USING users u WHERE u.user_id = t.user_id AND" + valid + " RETURNING " +
			tokenColumns + userColumns)
	} else {
		err = read("SELECT " + tokenColumns + userColumns + " FROM api_tokens t JOIN users u USING (user_id) WHERE" + valid)
	}
	if err != nil {
		return store.Token{}, store.User{}, dberr.Failed("looking up token", err)
	}
	u.CreatedAt = engine.At(u.CreatedAt.Time)
	if used && !once && time.Since(t.LastUsedAt.Time) > time.Minute {
		// A store that takes no writes (a full disk, a standby) still knows its callers.
		note, done := context.WithTimeout(ctx, useNoteTimeout)
		defer done()
		var used time.Time
		if s.Pool.QueryRow(note, "UPDATE api_tokens SET last_used_at = now() WHERE token_id = $1 RETURNING last_used_at",
			t.TokenID).Scan(&used) == nil {
			t.LastUsedAt = engine.At(used)
		}
	}
	return t, u, nil
}

// ListTokens implements api.UserStore; newest first, expired ones left out. userID or kind "" means any.
func (s Users) ListTokens(ctx context.Context, userID, kind string) ([]store.Token, error) {
	rows, err := s.Pool.Query(ctx, "SELECT "+tokenColumns+` FROM api_tokens t
		WHERE ($1 = '' OR t.user_id = $1) AND ($2 = '' OR t.kind = $2) AND (t.expires_at IS NULL OR t.expires_at > now())
		ORDER BY t.created_at DESC, t.token_id DESC`, userID, kind)
	if err != nil {
		return nil, dberr.Failed("listing tokens", err)
	}
	tokens, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t store.Token, err error) {
		return t, scanToken(row, &t)
	})
	return tokens, dberr.Failed("listing tokens", err)
}

// DeleteToken implements api.UserStore.
func (s Users) DeleteToken(ctx context.Context, userID, tokenID string) error {
	tag, err := s.Pool.Exec(ctx, "DELETE FROM api_tokens WHERE token_id = $2 AND user_id = $1", userID, tokenID)
	if err != nil {
		return dberr.Failed("deleting token", err)
	}
	if tag.RowsAffected() == 0 {
		return dberr.NotFound("token", tokenID)
	}
	return nil
}
