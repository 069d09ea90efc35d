package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// TokenColumns are those of a token by which nodes join, as ScanToken reads them.
const TokenColumns = "token_id, uses, used, created_by, created_by_id, created_at, expires_at" //nolint:gosec // names and columns, no secret

// ScanToken reads one.
func ScanToken(row pgx.Row) (t store.NodeToken, err error) {
	err = row.Scan(&t.TokenID, &t.Uses, &t.Used, &t.CreatedBy, &t.CreatedByID, &t.CreatedAt.Time, &t.ExpiresAt.Time)
	t.CreatedAt, t.ExpiresAt = engine.At(t.CreatedAt.Time), engine.At(t.ExpiresAt.Time)
	return t, err
}

// NodeTokens implements pki.MemberStore.
func (r NodeStore) NodeTokens(ctx context.Context) ([]store.NodeToken, error) {
	ctx, cancel := nodeBounded(ctx)
	defer cancel()
	rows, err := r.Pool.Query(ctx, "SELECT "+TokenColumns+" FROM node_tokens WHERE expires_at > now() AND used < uses "+
		"ORDER BY created_at DESC, token_id")
	if err != nil {
		return nil, dberr.Failed("listing the tokens by which nodes join", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (store.NodeToken, error) { return ScanToken(row) })
	return all, dberr.Failed("listing the tokens by which nodes join", err)
}

// RevokeNodeToken implements pki.MemberStore. What is over stays remembered, to say why it is refused.
func (r NodeStore) RevokeNodeToken(ctx context.Context, id string) error {
	ctx, cancel := nodeBounded(ctx)
	defer cancel()
	tag, err := r.Pool.Exec(ctx, "UPDATE node_tokens SET expires_at = least(expires_at, now()) WHERE token_id = $1", id)
	if err == nil && tag.RowsAffected() == 0 {
		return dberr.NotFound("token by which nodes join called", id)
	}
	return dberr.Failed("ending the token "+id, err)
}
