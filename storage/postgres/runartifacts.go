// This part keeps shares, notes, tags and baselines of runs in Postgres.

package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// RunArtifacts implements api.Store. Its calls last as long as their context and the pool allow.
type RunArtifacts struct {
	Pool   *pgxpool.Pool
	hashes *hashes
}

const shareColumns = `share_id, run_id, run_name, created_by, created_by_id, created_at, expires_at, used_at, use_count,
	NOT EXISTS (SELECT FROM run_status r WHERE r.run_id = run_shares.run_id)`

func scanShare(row pgx.CollectableRow) (s store.Share, err error) {
	var used *time.Time
	err = row.Scan(
		&s.ShareID,
		&s.RunID,
		&s.RunName,
		&s.CreatedBy,
		&s.CreatedByID,
		&s.CreatedAt.Time,
		&s.ExpiresAt.Time,
		&used,
		&s.UseCount,
		&s.RunDeleted,
	)
	s.CreatedAt, s.ExpiresAt = engine.At(s.CreatedAt.Time), engine.At(s.ExpiresAt.Time)
	if used != nil {
		s.UsedAt = engine.At(*used)
	}
	return s, err
}

// one runs a statement that answers with one row or none.
func one[T any](ctx context.Context, k RunArtifacts, scan pgx.RowToFunc[T], statement string, args ...any) (T, error) {
	rows, err := k.Pool.Query(ctx, statement, args...)
	if err != nil {
		var none T
		return none, err
	}
	return pgx.CollectExactlyOneRow(rows, scan)
}

// lockRunSQL locks the row of a run against its deletion: one that is being let go of is waited for, and gone then; one
// that is held is looked at again, with what was written by that.
const lockRunSQL = "SELECT run_id, test_name FROM run_status WHERE run_id = $1 FOR KEY SHARE"

// CreateShare implements api.Store.
func (k RunArtifacts) CreateShare(ctx context.Context, s store.Share, secret [32]byte) (store.Share, error) {
	hash, hashKey, err := k.hashes.stored(ctx, shareHash, secret)
	if err != nil {
		return s, err
	}
	made, err := one(ctx, k, scanShare, `INSERT INTO run_shares
			(share_id, run_id, run_name, secret_sha256, created_by, expires_at, hash_key, created_by_id)
		SELECT $2, run_id, test_name, $3, $4, $5, $6, $7 FROM (`+lockRunSQL+`) r
		RETURNING `+shareColumns, s.RunID, uuid.NewString(), hash, store.CleanText(s.CreatedBy), s.ExpiresAt.UTC(), hashKey,
		s.CreatedByID)
	return made, dberr.Reading("run", s.RunID, err)
}

// UseShare implements api.Store.
func (k RunArtifacts) UseShare(ctx context.Context, secret [32]byte) (store.Share, error) {
	s, err := one(ctx, k, scanShare, `UPDATE run_shares SET
			used_at = CASE WHEN expires_at > clock_timestamp() THEN clock_timestamp() ELSE used_at END,
			use_count = use_count + CASE WHEN expires_at > clock_timestamp() THEN 1 ELSE 0 END
		WHERE secret_sha256 = ANY($1) RETURNING `+shareColumns, k.hashes.candidates(shareHash, secret))
	return s, dberr.Failed("looking for a share", err)
}

// ListShares implements api.Store.
func (k RunArtifacts) ListShares(ctx context.Context, runID string) ([]store.Share, error) {
	rows, err := k.Pool.Query(ctx, "SELECT "+shareColumns+` FROM run_shares WHERE $1 = '' OR run_id = $1
		ORDER BY created_at DESC, share_id`, runID)
	if err != nil {
		return nil, dberr.Failed("listing shares", err)
	}
	list, err := pgx.AppendRows([]store.Share{}, rows, scanShare)
	return list, dberr.Failed("listing shares", err)
}

// RevokeShare implements api.Store.
func (k RunArtifacts) RevokeShare(ctx context.Context, shareID string) error {
	tag, err := k.Pool.Exec(ctx, "DELETE FROM run_shares WHERE share_id = $1", shareID)
	if err == nil && tag.RowsAffected() == 0 {
		return dberr.NotFound("share", shareID)
	}
	return dberr.Failed("ending a share", err)
}

func scanNote(row pgx.CollectableRow) (n store.RunNote, err error) {
	var at *time.Time
	err = row.Scan(&n.RunID, &n.Text, &n.Version, &n.UpdatedBy, &at)
	if at != nil {
		n.UpdatedAt = engine.At(*at)
	}
	return n, err
}

// RunNote implements api.Store.
func (k RunArtifacts) RunNote(ctx context.Context, runID string) (store.RunNote, error) {
	n, err := one(ctx, k, scanNote, `SELECT r.run_id, coalesce(n.note, ''), coalesce(n.version, 0),
			coalesce(n.updated_by, ''), n.updated_at
		FROM run_status r LEFT JOIN run_notes n USING (run_id) WHERE r.run_id = $1`, runID)
	return n, dberr.Reading("run", runID, err)
}

// SaveRunNote implements api.Store.
func (k RunArtifacts) SaveRunNote(ctx context.Context, n store.RunNote) (store.RunNote, error) {
	n, err := store.CheckNote(n)
	if err != nil {
		return n, err
	}
	statement := `WITH again AS (` + exportAgain + `$1) INSERT INTO run_notes (run_id, note, updated_by)
		SELECT run_id, $2, $3 FROM (` + lockRunSQL + `) r WHERE $4 = 0
		ON CONFLICT DO NOTHING RETURNING run_id, note, version, updated_by, updated_at`
	if n.Version != 0 {
		statement = `WITH again AS (` + exportAgain + `$1), r AS MATERIALIZED (` + lockRunSQL + `) UPDATE run_notes n SET note = $2, updated_by = $3,
				version = version + 1, updated_at = clock_timestamp()
			FROM r WHERE n.run_id = r.run_id AND n.version = $4
			RETURNING n.run_id, n.note, n.version, n.updated_by, n.updated_at`
	}
	saved, err := one(ctx, k, scanNote, statement, n.RunID, n.Text, store.CleanText(n.UpdatedBy), n.Version)
	if !errors.Is(err, pgx.ErrNoRows) {
		return saved, dberr.Failed("saving a note", err)
	}
	there, err := k.RunNote(ctx, n.RunID)
	if err != nil {
		return n, err
	}
	return n, store.ConcurrentEditError("note of run", n.RunID, there.UpdatedBy, there.UpdatedAt, there.Version)
}

// TagRun implements api.Store.
func (k RunArtifacts) TagRun(ctx context.Context, runID string, tags, was map[string]string) error {
	if err := store.CheckTags(tags); err != nil {
		return err
	}
	text, err := json.Marshal(tags)
	if err != nil {
		return fmt.Errorf("writing tags: %w", err)
	}
	before, err := json.Marshal(was) // null: whatever is there
	if err != nil {
		return fmt.Errorf("writing the tags before: %w", err)
	}
	err = pgx.BeginFunc(ctx, k.Pool, func(tx pgx.Tx) error {
		// What is found out about the run is of one moment: who changes its tags, or ends it, waits here.
		var over, same bool
		err := tx.QueryRow(ctx, `SELECT status IN ('PREPARED', 'COMPLETED', 'FAILED', 'CANCELLED')
				AND phase IS DISTINCT FROM 'PROCESSING', $2::jsonb = 'null'
				OR coalesce(nullif(scenario_config -> 'tags', 'null'), '{}') = $2::jsonb
			FROM run_status WHERE run_id = $1 FOR NO KEY UPDATE`, runID, string(before)).Scan(&over, &same)
		switch {
		case err != nil:
			return err
		case !over:
			return store.LiveRunTagsError()
		case !same:
			return store.TagsChangedError()
		}
		_, err = tx.Exec(ctx, `UPDATE run_status SET scenario_config = jsonb_set(scenario_config, '{tags}', $2::jsonb),
			updated_at = now() WHERE run_id = $1`, runID, string(text))
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return dberr.NotFound("run", runID)
	}
	return dberr.Failed("tagging a run", err)
}

func scanBaseline(row pgx.CollectableRow) (b store.Baseline, err error) {
	err = row.Scan(&b.TemplateID, &b.RunID, &b.SetBy, &b.SetAt.Time)
	b.SetAt = engine.At(b.SetAt.Time)
	return b, err
}

// Baseline implements api.Store.
func (k RunArtifacts) Baseline(ctx context.Context, templateID string) (store.Baseline, error) {
	b, err := one(ctx, k, scanBaseline,
		"SELECT template_id, run_id, set_by, set_at FROM template_baselines WHERE template_id = $1", templateID)
	return b, dberr.Failed("reading a baseline", err)
}

// SetBaseline implements api.Store.
func (k RunArtifacts) SetBaseline(ctx context.Context, b store.Baseline) (store.Baseline, error) {
	var template *string
	var status engine.Status
	err := k.Pool.QueryRow(ctx, "SELECT template_id FROM test_templates WHERE template_id = $1",
		b.TemplateID).Scan(&template)
	if err != nil {
		return b, dberr.Reading("template", b.TemplateID, err)
	}
	err = k.Pool.QueryRow(ctx, "SELECT template_id, status FROM run_status WHERE run_id = $1", b.RunID).Scan(&template,
		&status)
	switch {
	case err != nil:
		return b, dberr.Reading("run", b.RunID, err)
	case template == nil || *template != b.TemplateID:
		return b, store.BaselineError("it is of another template")
	case status != engine.StatusCompleted:
		return b, store.BaselineError("it has not completed")
	}
	set, err := one(ctx, k, scanBaseline, `INSERT INTO template_baselines (template_id, run_id, set_by)
		SELECT $2, run_id, $3 FROM (`+lockRunSQL+`) r
		ON CONFLICT (template_id) DO UPDATE SET run_id = excluded.run_id, set_by = excluded.set_by, set_at = clock_timestamp()
		RETURNING template_id, run_id, set_by, set_at`, b.RunID, b.TemplateID, store.CleanText(b.SetBy))
	return set, dberr.Reading("run", b.RunID, err)
}

// DeleteBaseline implements api.Store.
func (k RunArtifacts) DeleteBaseline(ctx context.Context, templateID string) error {
	_, err := k.Pool.Exec(ctx, "DELETE FROM template_baselines WHERE template_id = $1", templateID)
	return dberr.Failed("removing a baseline", err)
}
