// This part keeps the queries that users save in Postgres.

package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// SavedQueryStore implements query.Queries. Its calls last as long as their context and the pool allow.
type SavedQueryStore struct{ Pool *pgxpool.Pool }

var _ query.Queries = SavedQueryStore{}

const queryColumns = "query_name, statement, chart, version, created_by, updated_by, created_at, updated_at"

func queryScan(row pgx.CollectableRow) (q query.SavedQuery, err error) {
	err = row.Scan(&q.Name, &q.SQL, &q.Chart, &q.Version, &q.CreatedBy, &q.UpdatedBy, &q.CreatedAt.Time, &q.UpdatedAt.Time)
	q.CreatedAt, q.UpdatedAt = engine.At(q.CreatedAt.Time), engine.At(q.UpdatedAt.Time)
	return q, err
}

// SavedQueries implements query.Queries.
func (s SavedQueryStore) SavedQueries(ctx context.Context) ([]query.SavedQuery, error) {
	rows, err := s.Pool.Query(ctx, "SELECT "+queryColumns+` FROM saved_queries ORDER BY query_name COLLATE "C"`)
	if err != nil {
		return nil, dberr.Failed("listing saved queries", err)
	}
	list, err := pgx.CollectRows(rows, queryScan)
	return list, dberr.Failed("listing saved queries", err)
}

// SaveQuery implements query.Queries.
func (s SavedQueryStore) SaveQuery(ctx context.Context, q query.SavedQuery) (query.SavedQuery, error) {
	if err := query.CheckQuery(q); err != nil {
		return q, err
	}
	before := query.StoredName(q)
	values := []any{q.Name, q.SQL, store.CleanText(q.Chart), store.CleanText(q.UpdatedBy), q.Version}
	statement := `INSERT INTO saved_queries (query_name, statement, chart, created_by, updated_by)
		SELECT $1, $2, $3, $4, $4 WHERE $5 = 0 ON CONFLICT DO NOTHING RETURNING ` + queryColumns
	if q.Version != 0 {
		statement = `UPDATE saved_queries SET query_name = $1, statement = $2, chart = $3, updated_by = $4,
			version = version + 1, updated_at = clock_timestamp() WHERE query_name = $6 AND version = $5 RETURNING ` + queryColumns
		values = append(values, before)
	}
	rows, err := s.Pool.Query(ctx, statement, values...)
	if err != nil {
		return q, dberr.Failed("saving a query", err)
	}
	saved, err := pgx.CollectRows(rows, queryScan)
	if errors.Is(dberr.Map(err), store.ErrConflict) {
		return q, store.NameTaken("saved query", q.Name)
	}
	if err != nil || len(saved) == 1 {
		return append(saved, query.SavedQuery{})[0], dberr.Failed("saving a query", err)
	}
	rows, err = s.Pool.Query(ctx, "SELECT "+queryColumns+" FROM saved_queries WHERE query_name = $1", before)
	if err != nil {
		return q, dberr.Failed("reading a saved query", err)
	}
	there, err := pgx.CollectExactlyOneRow(rows, queryScan)
	switch {
	case err != nil:
		return q, dberr.Reading("saved query", before, err)
	case q.Version == 0:
		return q, store.NameTaken("saved query", q.Name)
	}
	return q, store.ConcurrentEditError("saved query", before, there.UpdatedBy, there.UpdatedAt, there.Version)
}

// DeleteSavedQuery implements query.Queries.
func (s SavedQueryStore) DeleteSavedQuery(ctx context.Context, name string) error {
	tag, err := s.Pool.Exec(ctx, "DELETE FROM saved_queries WHERE query_name = $1", name)
	if err == nil && tag.RowsAffected() == 0 {
		return dberr.NotFound("saved query", name)
	}
	return dberr.Failed("deleting a saved query", err)
}
