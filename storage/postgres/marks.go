// This part keeps the marks of runs in Postgres.

package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/snowflakeexport"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// MarkStore implements api.MarkStore. Its calls last as long as their context and the pool allow.
type MarkStore struct{ Pool *pgxpool.Pool }

const markColumns = "mark_id, run_id, at, mark_text, made_by, made_at, changed_by, changed_at"

// exportAgain has a run be taken once more to the account to which it was taken: what users note about it belongs to it.
// One that is being taken there now is taken again after that.
const exportAgain = "UPDATE refresh_subtasks SET asked_at = clock_timestamp() WHERE dynamic_table = '" +
	snowflakeexport.Table + "' AND subtask = "

func markScan(row pgx.CollectableRow) (m engine.Mark, err error) {
	err = row.Scan(&m.MarkID, &m.RunID, &m.At.Time, &m.Text, &m.MadeBy, &m.MadeAt.Time, &m.ChangedBy, &m.ChangedAt.Time)
	m.At, m.MadeAt, m.ChangedAt = engine.At(m.At.Time), engine.At(m.MadeAt.Time), engine.At(m.ChangedAt.Time)
	return m, err
}

// ListMarks implements api.MarkStore.
func (s MarkStore) ListMarks(ctx context.Context, runID string) ([]engine.Mark, error) {
	rows, err := s.Pool.Query(ctx, "SELECT "+markColumns+" FROM run_marks WHERE run_id = $1 ORDER BY at, mark_id", runID)
	if err != nil {
		return nil, dberr.Failed("listing marks", err)
	}
	list, err := pgx.CollectRows(rows, markScan)
	return list, dberr.Failed("listing marks", err)
}

// AddMark implements api.MarkStore.
func (s MarkStore) AddMark(ctx context.Context, m engine.Mark) (engine.Mark, error) {
	m, err := store.CheckMark(m)
	if err != nil {
		return m, err
	}
	rows, err := s.Pool.Query(
		ctx,
		`WITH again AS (`+exportAgain+`$2) INSERT INTO run_marks (mark_id, run_id, at, mark_text, made_by, changed_by)
		SELECT $1, run_id, $3, $4, $5, $5 FROM run_status
		WHERE run_id = $2 AND (SELECT count(*) FROM run_marks WHERE run_id = $2) < $6 RETURNING `+markColumns,
		uuid.NewString(),
		m.RunID,
		m.At.Time,
		m.Text,
		store.CleanText(m.MadeBy),
		store.MaxMarks,
	)
	if err != nil {
		return m, dberr.Failed("adding a mark", err)
	}
	made, err := pgx.CollectRows(rows, markScan)
	if err != nil || len(made) == 1 {
		return append(made, m)[0], dberr.Failed("adding a mark", err)
	}
	var there bool
	err = s.Pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM run_status WHERE run_id = $1)", m.RunID).Scan(&there)
	switch {
	case err != nil:
		return m, dberr.Failed("adding a mark", err)
	case there:
		return m, store.TooManyMarks()
	}
	return m, dberr.NotFound("run", m.RunID)
}

// ChangeMark implements api.MarkStore.
func (s MarkStore) ChangeMark(
	ctx context.Context,
	m engine.Mark,
	was *store.ExpectedMark,
) (now, before engine.Mark, err error) {
	if m, err = store.CheckMark(m); err != nil {
		return m, before, err
	}
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		// Who changes it at the same time waits here, and finds what was saved.
		if before, err = markOne(ctx, tx, "SELECT "+markColumns+` FROM run_marks
			WHERE run_id = $1 AND mark_id = $2 FOR UPDATE`, m.RunID, m.MarkID); err != nil {
			return err
		}
		if err := was.Check(before); err != nil {
			return err
		}
		now, err = markOne(
			ctx,
			tx,
			`WITH again AS (`+exportAgain+`$1) UPDATE run_marks SET at = $3, mark_text = $4, changed_by = $5,
			changed_at = clock_timestamp() WHERE run_id = $1 AND mark_id = $2 RETURNING `+markColumns,
			m.RunID,
			m.MarkID,
			m.At.Time,
			m.Text,
			store.CleanText(m.ChangedBy),
		)
		return err
	})
	return now, before, dberr.Reading("mark", m.MarkID, err)
}

func markOne(ctx context.Context, tx pgx.Tx, statement string, args ...any) (engine.Mark, error) {
	rows, err := tx.Query(ctx, statement, args...)
	if err != nil {
		return engine.Mark{}, err
	}
	return pgx.CollectExactlyOneRow(rows, markScan)
}

// DeleteMark implements api.MarkStore.
func (s MarkStore) DeleteMark(
	ctx context.Context,
	runID, markID string,
	was *store.ExpectedMark,
) (gone engine.Mark, err error) {
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		// Nothing of it is gone where it is another than was seen: the transaction ends with the error.
		if gone, err = markOne(
			ctx,
			tx,
			"WITH again AS ("+exportAgain+"$1) DELETE FROM run_marks WHERE run_id = $1 AND mark_id = $2 RETURNING "+markColumns,
			runID,
			markID,
		); err != nil {
			return err
		}
		return was.Check(gone)
	})
	return gone, dberr.Reading("mark", markID, err)
}
