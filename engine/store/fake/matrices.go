package fake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

type matrixRow struct {
	engine.MatrixRun
	number int64
	lease  time.Time // its end
}

func (m *matrixRow) extendLease(owner string) {
	m.Owner, m.lease = owner, now().Add(store.LeaseDuration)
}

func (m *matrixRow) expired() bool { return m.lease.Before(now()) }

func (m *matrixRow) view() engine.MatrixRun {
	out := m.MatrixRun
	out.Labels = slices.Clone(out.Labels)
	return out
}

func (m *matrixRow) live() bool {
	return m.Status == engine.StatusRunning || m.Status == engine.StatusCancelling
}

// CreateMatrix implements store.Matrices.
func (s *Store) CreateMatrix(ctx context.Context, m engine.MatrixRun) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	switch {
	case m.MatrixID == "":
		return unnamed("matrix")
	case s.matrices[m.MatrixID] != nil:
		return conflict("There is a matrix of this id already.", "")
	}
	if s.templates[m.TemplateID] == nil {
		m.TemplateID = ""
	}
	m.Name, m.Labels, m.Status, m.CreatedAt = store.CleanText(m.Name), slices.Clone(m.Labels), engine.StatusPrepared,
		engine.At(now())
	m.StartTime, m.EndTime, m.Owner = engine.Time{}, engine.Time{}, ""
	s.matrices[m.MatrixID] = &matrixRow{MatrixRun: m, number: s.next()}
	return nil
}

func (s *Store) matrix(matrixID string) (*matrixRow, error) {
	if m := s.matrices[matrixID]; m != nil {
		return m, nil
	}
	return nil, notFound("matrix", matrixID)
}

// Matrix implements store.Matrices.
func (s *Store) Matrix(ctx context.Context, matrixID string) (engine.MatrixRun, error) {
	if err := s.lock(ctx); err != nil {
		return engine.MatrixRun{}, err
	}
	defer s.mu.Unlock()
	m, err := s.matrix(matrixID)
	if err != nil {
		return engine.MatrixRun{}, err
	}
	return m.view(), nil
}

// ListMatrices implements store.Matrices.
func (s *Store) ListMatrices(ctx context.Context, limit int) ([]engine.MatrixRun, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []engine.MatrixRun
	for _, m := range sorted(s.matrices, func(a, b *matrixRow) int { return cmp.Compare(b.number, a.number) }) {
		out = append(out, m.view())
	}
	return out[:min(limit, len(out))], nil
}

// LiveMatrices implements store.Matrices.
func (s *Store) LiveMatrices(ctx context.Context) ([]engine.MatrixRun, error) {
	return s.sortedMatrices(ctx, (*matrixRow).live)
}

// sortedMatrices lists those matrices, oldest first.
func (s *Store) sortedMatrices(ctx context.Context, those func(*matrixRow) bool) ([]engine.MatrixRun, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []engine.MatrixRun
	for _, m := range sorted(s.matrices, func(a, b *matrixRow) int { return cmp.Compare(a.number, b.number) }) {
		if those(m) {
			out = append(out, m.view())
		}
	}
	return out, nil
}

// MatrixRuns implements store.Matrices.
func (s *Store) MatrixRuns(ctx context.Context, matrixID string) ([]store.RunRow, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []store.RunRow
	for _, r := range sorted(s.runs, func(a, b *run) int {
		return cmp.Or(cmp.Compare(a.row.MatrixIndex, b.row.MatrixIndex), strings.Compare(a.row.RunID, b.row.RunID))
	}) {
		if r.row.MatrixID != matrixID {
			continue
		}
		row, err := r.inList()
		if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, nil
}

// TransitionMatrix implements store.Matrices.
func (s *Store) TransitionMatrix(ctx context.Context, move store.MatrixTransition) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	m, err := s.matrix(move.MatrixID)
	switch {
	case err != nil:
		return err
	case move.Holder != "" && m.Owner != move.Holder:
		return fmt.Errorf("changing the matrix: %w", store.ErrLeaseHeld)
	case !slices.Contains(move.From, m.Status):
		return store.ErrConflict
	}
	m.Status = move.To
	if move.To.Terminal() {
		put(&m.EndTime, move.At)
	} else {
		put(&m.StartTime, move.At)
	}
	if move.Owner != "" {
		m.extendLease(move.Owner)
	}
	return nil
}

// ClaimMatrix implements store.Matrices.
func (s *Store) ClaimMatrix(ctx context.Context, matrixID, owner string, reclaim bool) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	m, err := s.matrix(matrixID)
	switch {
	case err != nil:
		return err
	case m.Status.Terminal():
		return store.ErrConflict
	case !m.expired() && (!reclaim || m.Owner != owner):
		return fmt.Errorf("claiming the matrix: %w", store.ErrLeaseHeld)
	}
	m.extendLease(owner)
	return nil
}

// RenewMatrices implements store.Matrices.
func (s *Store) RenewMatrices(ctx context.Context, owner string, matrixIDs []string) ([]engine.MatrixRun, error) {
	return s.sortedMatrices(ctx, func(m *matrixRow) bool {
		held := m.Owner == owner && slices.Contains(matrixIDs, m.MatrixID)
		if held {
			m.extendLease(owner)
		}
		return held
	})
}

// ExpiredMatrices implements store.Matrices.
func (s *Store) ExpiredMatrices(ctx context.Context) ([]engine.MatrixRun, error) {
	return s.sortedMatrices(ctx, func(m *matrixRow) bool { return m.live() && m.expired() })
}

// DeleteMatrix implements store.Matrices. Its runs stay, and are of no matrix.
func (s *Store) DeleteMatrix(ctx context.Context, matrixID string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	m, err := s.matrix(matrixID)
	if err != nil {
		return err
	}
	if m.live() {
		return store.ErrConflict
	}
	delete(s.matrices, matrixID)
	for _, r := range s.runs {
		if r.row.MatrixID == matrixID {
			r.row.MatrixID = ""
		}
	}
	return nil
}
