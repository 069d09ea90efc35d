// This part keeps the audit log in Postgres.

package postgres

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// AuditLog implements store.Audit. Its calls last as long as their context and the pool allow, and so long at most.
type AuditLog struct {
	Pool    *pgxpool.Pool
	Timeout time.Duration
}

var _ store.Audit = AuditLog{}

func (l AuditLog) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(l.Timeout, 10*time.Second))
}

// AppendAudit implements store.Audit.
func (l AuditLog) AppendAudit(ctx context.Context, e store.AuditEntry) error {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	return dberr.Failed("writing the audit log", AppendAuditEntry(ctx, l.Pool, e))
}

// Execer is a pool, or a transaction that the line is a part of.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// AppendAuditEntry writes a line.
func AppendAuditEntry(ctx context.Context, to Execer, e store.AuditEntry) error {
	var at *time.Time
	if !e.At.IsZero() {
		at = &e.At.Time
	}
	clean := store.CleanText
	_, err := to.Exec(ctx, `INSERT INTO audit_log (at, user_id, user_name, address, token_id, token_name, action,
			object, detail, outcome)
		VALUES (coalesce($1, clock_timestamp()), $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		at, e.UserID, clean(e.UserName), clean(e.Address), e.TokenID, clean(e.TokenName), e.Action, clean(e.Object),
		clean(e.Detail), cmp.Or(e.Outcome, store.OutcomeDone))
	return err
}

// ListAudit implements store.Audit.
func (l AuditLog) ListAudit(ctx context.Context, f store.AuditFilter) ([]store.AuditEntry, error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	if f.Limit <= 0 {
		f.Limit = 50
	}
	like := func(text string) string {
		return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(store.CleanText(text)) + "%"
	}
	bound := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	rows, err := l.Pool.Query(ctx, `SELECT audit_id, at, user_id, user_name, address, token_id, token_name, action, object,
			detail, outcome FROM audit_log
		WHERE ($1 = '' OR user_id = $1 OR user_name ILIKE $2) AND ($3 = '' OR action = $3 OR starts_with(action, $3 || '.'))
			AND ($4 = '' OR object ILIKE $5 OR detail ILIKE $5) AND ($6 = '' OR outcome = $6)
			AND ($7::timestamptz IS NULL OR at >= $7) AND ($8::timestamptz IS NULL OR at < $8)
			AND ($9::bigint = 0 OR audit_id < $9)
		ORDER BY audit_id DESC LIMIT $10`, store.CleanText(f.User), like(f.User), store.CleanText(f.Action),
		store.CleanText(f.Object), like(f.Object), f.Outcome, bound(f.Since), bound(f.Until), f.Before, f.Limit)
	if err != nil {
		return nil, dberr.Failed("reading the audit log", err)
	}
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e store.AuditEntry, err error) {
		err = row.Scan(&e.AuditID, &e.At.Time, &e.UserID, &e.UserName, &e.Address, &e.TokenID, &e.TokenName, &e.Action,
			&e.Object, &e.Detail, &e.Outcome)
		e.At = engine.At(e.At.Time)
		return e, err
	})
	return entries, dberr.Failed("reading the audit log", err)
}

// AuditDays implements store.Audit.
func (l AuditLog) AuditDays(ctx context.Context) (days int, err error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	err = l.Pool.QueryRow(ctx, "SELECT coalesce((SELECT keep_days FROM audit_retention), 0)").Scan(&days)
	return days, dberr.Failed("reading how long the audit log is kept", err)
}

// SetAuditRetention implements store.Audit.
func (l AuditLog) SetAuditRetention(ctx context.Context, days int, was *int) (before int, err error) {
	if err := store.CheckAuditDays(days); err != nil {
		return 0, err
	}
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	err = pgx.BeginFunc(ctx, l.Pool, func(tx pgx.Tx) error {
		// The row is there before it is locked: who comes first waits for nobody, who comes second sees what was said.
		if _, err := tx.Exec(ctx, "INSERT INTO audit_retention (keep_days) VALUES (0) ON CONFLICT DO NOTHING"); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, "SELECT keep_days FROM audit_retention FOR UPDATE").Scan(&before); err != nil {
			return err
		}
		if err := store.AuditDaysChangedError(was, before); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE audit_retention SET keep_days = $1", days)
		return err
	})
	return before, dberr.Failed("saving how long the audit log is kept", err)
}

// PruneAudit implements store.Audit.
func (l AuditLog) PruneAudit(ctx context.Context, most int) (int, error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	tag, err := l.Pool.Exec(ctx, `DELETE FROM audit_log WHERE audit_id IN (SELECT audit_id FROM audit_log, audit_retention
		WHERE keep_days > 0 AND at < now() - make_interval(days => keep_days) ORDER BY audit_id LIMIT $1)`, most)
	return int(tag.RowsAffected()), dberr.Failed("removing old lines of the audit log", err)
}
