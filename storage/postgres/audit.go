package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// AppendAudit implements store.Audit.
func (s *Store) AppendAudit(ctx context.Context, e store.AuditEntry) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := s.pool.Exec(ctx, `INSERT INTO audit_log (at, user_id, action, object, detail)
		VALUES (coalesce($1, clock_timestamp()), $2, $3, $4, $5)`,
		stamp(e.At.Time), e.UserID, e.Action, store.CleanText(e.Object), store.CleanText(e.Detail))
	return dberr.Failed("writing the audit log", err)
}

// ListAudit implements store.Audit; newest first. limit ≤ 0 means 50.
func (s *Store) ListAudit(ctx context.Context, limit int) ([]store.AuditEntry, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if limit <= 0 {
		limit = defaultPage
	}
	rows, err := s.pool.Query(ctx,
		"SELECT at, user_id, action, object, detail FROM audit_log ORDER BY audit_id DESC LIMIT $1", limit)
	if err != nil {
		return nil, dberr.Failed("reading the audit log", err)
	}
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e store.AuditEntry, err error) {
		err = row.Scan(&e.At.Time, &e.UserID, &e.Action, &e.Object, &e.Detail)
		e.At = engine.At(e.At.Time)
		return e, err
	})
	return entries, dberr.Failed("reading the audit log", err)
}
