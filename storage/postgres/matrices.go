package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

const matrixColumns = "matrix_id, matrix_name, coalesce(template_id, ''), labels, stop_on_failure, status, " +
	"start_time, end_time, created_by, created_at, owner"

func toMatrix(row pgx.CollectableRow) (m engine.MatrixRun, err error) {
	var labels []byte
	var start, end *time.Time
	var created time.Time
	if err := row.Scan(&m.MatrixID, &m.Name, &m.TemplateID, &labels, &m.StopOnFailure, &m.Status, &start, &end,
		&m.CreatedBy, &created, &m.Owner); err != nil {
		return m, err
	}
	m.StartTime, m.EndTime, m.CreatedAt = instant(start), instant(end), engine.At(created)
	return m, parse("labels", labels, &m.Labels)
}

// CreateMatrix implements matrix.Store.
func (s *Store) CreateMatrix(ctx context.Context, m engine.MatrixRun) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	labels, err := document("labels", m.Labels)
	if err != nil {
		return err
	}
	_, err = s.pool.Exec(
		ctx,
		`INSERT INTO matrices (matrix_id, matrix_name, template_id, labels, stop_on_failure, created_by)
		VALUES ($1, $2, (SELECT template_id FROM test_templates WHERE template_id = $3), $4, $5, $6)`,
		m.MatrixID,
		store.CleanText(m.Name),
		orNull(m.TemplateID),
		labels,
		m.StopOnFailure,
		m.CreatedBy,
	)
	return dberr.Failed("creating the matrix", err)
}

// Matrix implements matrix.Store.
func (s *Store) Matrix(ctx context.Context, matrixID string) (engine.MatrixRun, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, "SELECT "+matrixColumns+" FROM matrices WHERE matrix_id = $1", matrixID)
	if err != nil {
		return engine.MatrixRun{}, dberr.Failed("reading the matrix", err)
	}
	m, err := pgx.CollectExactlyOneRow(rows, toMatrix)
	return m, dberr.Reading("matrix", matrixID, err)
}

func (s *Store) matrices(ctx context.Context, where string, args ...any) ([]engine.MatrixRun, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, "SELECT "+matrixColumns+" FROM matrices "+where, args...)
	if err != nil {
		return nil, dberr.Failed("listing matrices", err)
	}
	list, err := pgx.CollectRows(rows, toMatrix)
	return list, dberr.Failed("listing matrices", err)
}

// ListMatrices implements matrix.Store.
func (s *Store) ListMatrices(ctx context.Context, limit int) ([]engine.MatrixRun, error) {
	return s.matrices(ctx, "ORDER BY created_at DESC, matrix_id DESC LIMIT $1", limit)
}

// LiveMatrices implements matrix.Store.
func (s *Store) LiveMatrices(ctx context.Context) ([]engine.MatrixRun, error) {
	return s.matrices(ctx, "WHERE status IN ('RUNNING', 'CANCELLING') ORDER BY created_at, matrix_id")
}

// MatrixRuns implements matrix.Store.
func (s *Store) MatrixRuns(ctx context.Context, matrixID string) ([]store.RunRow, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, selectRows+" WHERE r.matrix_id = $1 ORDER BY r.matrix_index, r.run_id", matrixID)
	if err != nil {
		return nil, dberr.Failed("reading the runs of the matrix", err)
	}
	list, err := pgx.CollectRows(rows, toRow)
	return list, dberr.Failed("reading the runs of the matrix", err)
}

// TransitionMatrix implements matrix.Store.
func (s *Store) TransitionMatrix(ctx context.Context, move store.MatrixTransition) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	column := "start_time"
	if move.To.Terminal() {
		column = "end_time"
	}
	tag, err := s.pool.Exec(
		ctx,
		"UPDATE matrices SET status = $2, "+column+" = coalesce($3, "+column+`),
			owner = CASE WHEN $5 = '' THEN owner ELSE $5 END,
			lease_until = CASE WHEN $5 = '' THEN lease_until ELSE clock_timestamp() + make_interval(secs => $7) END
		WHERE matrix_id = $1 AND status = ANY($4::text[]) AND ($6 = '' OR owner = $6)`,
		move.MatrixID,
		string(move.To),
		stamp(move.At),
		texts(move.From),
		move.Owner,
		move.Holder,
		s.Lease().Seconds(),
	)
	if err != nil {
		return dberr.Failed("changing the matrix", err)
	}
	if tag.RowsAffected() == 0 {
		m, err := s.Matrix(ctx, move.MatrixID)
		switch {
		case err != nil:
			return err
		case move.Holder != "" && m.Owner != move.Holder:
			return fmt.Errorf("changing the matrix: %w", store.ErrLeaseHeld)
		}
		return store.ErrConflict
	}
	return nil
}

// matrixLapsed holds for a matrix whose lease has expired, or that nobody ever held.
const matrixLapsed = "coalesce(lease_until < clock_timestamp(), true)"

// ClaimMatrix implements matrix.Store.
func (s *Store) ClaimMatrix(ctx context.Context, matrixID, owner string, reclaim bool) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	tag, err := s.pool.Exec(
		ctx,
		`UPDATE matrices SET owner = $2, lease_until = clock_timestamp() + make_interval(secs => $4)
		WHERE matrix_id = $1 AND status IN ('PREPARED', 'RUNNING', 'CANCELLING') AND (`+matrixLapsed+` OR $3 AND owner = $2)`,
		matrixID,
		owner,
		reclaim,
		s.Lease().Seconds(),
	)
	if err != nil {
		return dberr.Failed("claiming the matrix", err)
	}
	if tag.RowsAffected() == 0 {
		m, err := s.Matrix(ctx, matrixID)
		switch {
		case err != nil:
			return err
		case m.Status.Terminal():
			return store.ErrConflict
		}
		return fmt.Errorf("claiming the matrix: %w", store.ErrLeaseHeld)
	}
	return nil
}

// RenewMatrices implements matrix.Store.
func (s *Store) RenewMatrices(ctx context.Context, owner string, matrixIDs []string) ([]engine.MatrixRun, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `UPDATE matrices SET lease_until = clock_timestamp() + make_interval(secs => $3)
		WHERE owner = $1 AND matrix_id = ANY($2::text[]) RETURNING `+matrixColumns, owner, matrixIDs, s.Lease().Seconds())
	if err != nil {
		return nil, dberr.Failed("renewing the leases of matrices", err)
	}
	list, err := pgx.CollectRows(rows, toMatrix)
	return list, dberr.Failed("renewing the leases of matrices", err)
}

// ExpiredMatrices implements matrix.Store.
func (s *Store) ExpiredMatrices(ctx context.Context) ([]engine.MatrixRun, error) {
	return s.matrices(ctx, "WHERE status IN ('RUNNING', 'CANCELLING') AND "+matrixLapsed+" ORDER BY created_at, matrix_id")
}

// DeleteMatrix implements matrix.Store.
func (s *Store) DeleteMatrix(ctx context.Context, matrixID string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	tag, err := s.pool.Exec(ctx, "DELETE FROM matrices WHERE matrix_id = $1 AND status NOT IN ('RUNNING', 'CANCELLING')",
		matrixID)
	if err != nil {
		return dberr.Failed("deleting the matrix", err)
	}
	if tag.RowsAffected() == 0 {
		if _, err := s.Matrix(ctx, matrixID); err != nil {
			return err
		}
		return store.ErrConflict
	}
	return nil
}
