// Package grantrows keeps in Postgres who started what.
package grantrows

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// Grants implements store.Grants. Its calls last as long as their context and the pool allow.
type Grants struct{ Pool *pgxpool.Pool }

var _ store.Grants = Grants{}

// GrantStart implements store.Grants.
func (g Grants) GrantStart(ctx context.Context, s store.StartGrant) error {
	confirmed := append([]string{}, s.Confirmed...)
	table, key, id := "run_status", "run_id", s.RunID
	if id == "" {
		table, key, id = "matrices", "matrix_id", s.MatrixID
	}
	tag, err := g.Pool.Exec(ctx, `INSERT INTO start_grants (`+key+`, user_id, user_name, confirmed)
		SELECT `+key+`, $2, $3, $4 FROM `+table+` WHERE `+key+` = $1
		ON CONFLICT (`+key+`) DO UPDATE SET user_id = excluded.user_id, user_name = excluded.user_name,
			confirmed = excluded.confirmed, granted_at = clock_timestamp()`, id, s.UserID, s.UserName, confirmed)
	if err == nil && tag.RowsAffected() == 0 {
		err = pgx.ErrNoRows
	}
	return dberr.Reading("run", id, err)
}

// StartGrant implements store.Grants.
func (g Grants) StartGrant(ctx context.Context, runID, matrixID string) (s store.StartGrant, err error) {
	err = g.Pool.QueryRow(ctx, `SELECT coalesce(run_id, ''), coalesce(matrix_id, ''), user_id, user_name, confirmed,
			granted_at
		FROM start_grants WHERE run_id = $1 OR matrix_id = $2 ORDER BY run_id IS NULL LIMIT 1`, runID, matrixID).
		Scan(&s.RunID, &s.MatrixID, &s.UserID, &s.UserName, &s.Confirmed, &s.GrantedAt.Time)
	s.GrantedAt = engine.At(s.GrantedAt.Time)
	return s, dberr.Reading("start", runID, err)
}
