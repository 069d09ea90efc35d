// This part tells servers when rights have changed.

package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// rightsChannel is where changes of rights are told of. It is the database's, whatever the schema.
const rightsChannel = "loadstone_rights"

// RightsRevision implements auth.RightsStore.
func (s *Store) RightsRevision(ctx context.Context) (rights, tokens int64, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err = s.pool.QueryRow(ctx, "SELECT rights, tokens FROM rights_revision").Scan(&rights, &tokens)
	return rights, tokens, dberr.Failed("reading the revision of rights", err)
}

// WatchRights implements auth.RightsStore, on a connection of its own.
func (s *Store) WatchRights(ctx context.Context, heard func()) error {
	return listen(ctx, s.pool, rightsChannel, "listening to changes of rights", heard)
}

// ValidTokens implements auth.Tokens.
func (s Users) ValidTokens(ctx context.Context, tokenIDs []string) (map[string]store.Role, error) {
	rows, err := s.Pool.Query(ctx, `SELECT t.token_id, u.role FROM api_tokens t JOIN users u USING (user_id)
		WHERE t.token_id = ANY ($1) AND u.disabled_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())`, tokenIDs)
	if err != nil {
		return nil, dberr.Failed("looking up tokens", err)
	}
	valid := map[string]store.Role{}
	var id string
	var role store.Role
	_, err = pgx.ForEachRow(rows, []any{&id, &role}, func() error { valid[id] = role; return nil })
	return valid, dberr.Failed("looking up tokens", err)
}
