// This part keeps users' views of runs in Postgres.

package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// RunViewStore implements api.RunViewStore. Its calls last as long as their context and the pool allow.
type RunViewStore struct{ Pool *pgxpool.Pool }

const viewColumns = `view_id, coalesce(user_id, ''), owner_name, view_name, query, shared, version, updated_by, created_at,
	updated_at`

func viewScan(row pgx.CollectableRow) (v store.RunView, err error) {
	err = row.Scan(&v.ViewID, &v.OwnerID, &v.Owner, &v.Name, &v.Query, &v.Shared, &v.Version, &v.UpdatedBy,
		&v.CreatedAt.Time, &v.UpdatedAt.Time)
	v.CreatedAt, v.UpdatedAt = engine.At(v.CreatedAt.Time), engine.At(v.UpdatedAt.Time)
	return v, err
}

// RunViews implements api.RunViewStore.
func (s RunViewStore) RunViews(ctx context.Context, userID string) ([]store.RunView, error) {
	rows, err := s.Pool.Query(ctx, "SELECT "+viewColumns+` FROM run_views WHERE shared OR user_id = $1
		ORDER BY view_name COLLATE "C", owner_name COLLATE "C", view_id`, userID)
	if err != nil {
		return nil, dberr.Failed("listing views", err)
	}
	list, err := pgx.CollectRows(rows, viewScan)
	return list, dberr.Failed("listing views", err)
}

// RunView implements api.RunViewStore.
func (s RunViewStore) RunView(ctx context.Context, viewID string) (store.RunView, error) {
	rows, err := s.Pool.Query(ctx, "SELECT "+viewColumns+" FROM run_views WHERE view_id = $1", viewID)
	if err != nil {
		return store.RunView{}, dberr.Failed("reading a view", err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, viewScan)
	return v, dberr.Reading("view", viewID, err)
}

// AddRunView implements api.RunViewStore.
func (s RunViewStore) AddRunView(ctx context.Context, v store.RunView) (store.RunView, error) {
	if err := store.CheckRunView(v); err != nil {
		return v, err
	}
	var added store.RunView
	err := pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		// One at a time for a user: the bound is counted.
		if err := tx.QueryRow(ctx, "SELECT user_id FROM users WHERE user_id = $1 FOR NO KEY UPDATE", v.OwnerID).
			Scan(new(string)); err != nil {
			return dberr.Reading("user", v.OwnerID, err)
		}
		var kept int
		var taken bool
		if err := tx.QueryRow(ctx, `SELECT count(*), coalesce(bool_or(view_name = $2), false) FROM run_views
			WHERE user_id = $1`, v.OwnerID, v.Name).Scan(&kept, &taken); err != nil {
			return dberr.Failed("counting views", err)
		}
		switch {
		case taken:
			return store.NameTaken("view", v.Name)
		case kept >= store.MaxRunViews:
			return store.TooManyRunViews()
		}
		rows, err := tx.Query(ctx, `INSERT INTO run_views (view_id, user_id, owner_name, view_name, query, shared, updated_by)
			VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING `+viewColumns, uuid.NewString(), v.OwnerID, store.CleanText(v.Owner),
			v.Name, v.Query, v.Shared, store.CleanText(v.UpdatedBy))
		if err == nil {
			added, err = pgx.CollectExactlyOneRow(rows, viewScan)
		}
		return dberr.Saving("view", v.Name, err)
	})
	return added, userError("adding a view", err)
}

// ChangeRunView implements api.RunViewStore.
func (s RunViewStore) ChangeRunView(ctx context.Context, v store.RunView) (store.RunView, error) {
	if err := store.CheckRunView(v); err != nil {
		return v, err
	}
	rows, err := s.Pool.Query(ctx, `UPDATE run_views SET view_name = $2, query = $3, shared = $4, updated_by = $5,
		version = version + 1, updated_at = clock_timestamp()
		WHERE view_id = $1 AND version = $6 AND (user_id IS NOT NULL OR $4) RETURNING `+viewColumns,
		v.ViewID, v.Name, v.Query, v.Shared, store.CleanText(v.UpdatedBy), v.Version)
	if err != nil {
		return v, dberr.Saving("view", v.Name, err)
	}
	changed, err := pgx.CollectRows(rows, viewScan)
	if err != nil || len(changed) == 1 {
		return append(changed, v)[0], dberr.Saving("view", v.Name, err)
	}
	old, err := s.RunView(ctx, v.ViewID)
	switch {
	case err != nil:
		return v, err
	case old.Version == v.Version:
		return v, store.OwnerlessViewError(old.Name)
	}
	return v, store.ConcurrentEditError("view", old.Name, old.UpdatedBy, old.UpdatedAt, old.Version)
}

// DeleteRunView implements api.RunViewStore.
func (s RunViewStore) DeleteRunView(ctx context.Context, viewID string) error {
	tag, err := s.Pool.Exec(ctx, "DELETE FROM run_views WHERE view_id = $1", viewID)
	if err == nil && tag.RowsAffected() == 0 {
		return dberr.NotFound("view", viewID)
	}
	return dberr.Failed("deleting a view", err)
}

// userError leaves what is said to users as it is.
func userError(doing string, err error) error {
	var e *engine.Error
	if errors.As(err, &e) {
		return e
	}
	return dberr.Failed(doing, err)
}
