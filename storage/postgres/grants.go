// This part keeps in Postgres who started what.

package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// Grants implements api.GrantStore. Its calls last as long as their context and the pool allow.
type Grants struct{ Pool *pgxpool.Pool }

// subject is where what a grant is about lies: its table, the key of it, and its id.
func subject(s store.StartGrant) (table, key, id string) {
	if s.RunID != "" {
		return "run_status", "run_id", s.RunID
	}
	return "matrices", "matrix_id", s.MatrixID
}

const grantColumns = "coalesce(run_id, ''), coalesce(matrix_id, ''), user_id, user_name, confirmed, granted_at"

func grantScan(row pgx.Row) (s store.StartGrant, err error) {
	err = row.Scan(&s.RunID, &s.MatrixID, &s.UserID, &s.UserName, &s.Confirmed, &s.GrantedAt.Time)
	s.GrantedAt = engine.At(s.GrantedAt.Time)
	return s, err
}

// SaveStartGrant implements api.GrantStore. Starts of one thing follow each other here, as they do with what moves it.
func (g Grants) SaveStartGrant(ctx context.Context, s store.StartGrant) (granted store.GrantChange, err error) {
	table, key, id := subject(s)
	err = pgx.BeginFunc(ctx, g.Pool, func(tx pgx.Tx) error {
		var status engine.Status
		err := tx.QueryRow(ctx, "SELECT status FROM "+table+" WHERE "+key+" = $1 FOR NO KEY UPDATE", id).Scan(&status)
		if err != nil {
			return err
		}
		if status != engine.StatusPrepared {
			return fmt.Errorf("a start of what is %s: %w", status, store.ErrConflict)
		}
		before, err := grantScan(tx.QueryRow(ctx, "SELECT "+grantColumns+" FROM start_grants WHERE "+key+" = $1", id))
		switch {
		case err == nil:
			granted.Previous = &before
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		}
		granted.StartGrant, err = grantScan(put(ctx, tx, s, nil))
		return err
	})
	if errors.Is(err, store.ErrConflict) {
		return granted, err
	}
	return granted, dberr.Reading("run", id, err)
}

// put writes a grant in place of the one there is; at is nil for now.
func put(ctx context.Context, tx pgx.Tx, s store.StartGrant, at *time.Time) pgx.Row {
	table, key, id := subject(s)
	return tx.QueryRow(ctx, `INSERT INTO start_grants (`+key+`, user_id, user_name, confirmed, granted_at)
		SELECT `+key+`, $2, $3, $4, coalesce($5, clock_timestamp()) FROM `+table+` WHERE `+key+` = $1
		ON CONFLICT (`+key+`) DO UPDATE SET user_id = excluded.user_id, user_name = excluded.user_name,
			confirmed = excluded.confirmed, granted_at = excluded.granted_at RETURNING `+grantColumns,
		id, s.UserID, s.UserName, append([]string{}, s.Confirmed...), at)
}

// ResolveStart implements api.GrantStore.
func (g Grants) ResolveStart(ctx context.Context, s store.GrantChange, begun bool) error {
	table, key, id := subject(s.StartGrant)
	err := pgx.BeginFunc(ctx, g.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT FROM "+table+" WHERE "+key+" = $1 FOR NO KEY UPDATE", id); err != nil {
			return err
		}
		stands := s.StartGrant
		if !begun {
			tag, err := tx.Exec(ctx, "DELETE FROM start_grants WHERE "+key+" = $1 AND user_id = $2 AND granted_at = $3", id,
				s.UserID, s.GrantedAt.Time)
			if err != nil || tag.RowsAffected() == 0 || s.Previous == nil {
				return err
			}
			stands = *s.Previous
		}
		_, err := grantScan(put(ctx, tx, stands, &stands.GrantedAt.Time))
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // it is deleted, and its grant with it
		}
		return err
	})
	return dberr.Failed("settling a start", err)
}

// StartGrant implements api.GrantStore.
func (g Grants) StartGrant(ctx context.Context, runID, matrixID string) (store.StartGrant, error) {
	s, err := grantScan(g.Pool.QueryRow(ctx, "SELECT "+grantColumns+` FROM start_grants WHERE run_id = $1 OR matrix_id = $2
		ORDER BY run_id IS NULL LIMIT 1`, runID, matrixID))
	return s, dberr.Reading("start", runID, err)
}
