package matrix

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/lease"
	"github.com/loadstone-db/loadstone/engine/store"
)

// leaseHeld notes that the lease was just seen to hold.
func (g *activeMatrix) leaseHeld() {
	now := time.Now()
	g.renewed.Store(&now)
}

// leaseValid reports whether nobody else can have taken the matrix over yet.
func (c runner) leaseValid() bool { return time.Since(*c.renewed.Load()) < c.opts.Store.Lease() }

// isLost holds for a matrix that is not this process's to go on with.
func isLost(err error) bool {
	return errors.Is(err, store.ErrLeaseHeld) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound)
}

// adopt takes a matrix for this owner and goes on with it.
func (s *Service) adopt(ctx context.Context, m engine.MatrixRun, reclaim bool) error {
	if err := s.opts.Store.ClaimMatrix(ctx, m.MatrixID, s.opts.Owner, reclaim); err != nil {
		return fmt.Errorf("claiming the matrix: %w", err)
	}
	// Since it was listed somebody may have stopped it.
	now, err := s.opts.Store.Matrix(ctx, m.MatrixID)
	if err != nil {
		return fmt.Errorf("reading the matrix: %w", err)
	}
	s.opts.Log.Info().Str("matrix_id", m.MatrixID).Str("owner", m.Owner).Msg("going on with a matrix")
	s.runMatrix(now, now.CreatedBy)
	return nil
}

// leases renews those of the matrices under way here, and goes on with matrices whose
// owner has let theirs expire.
func (s *Service) leases() lease.Manager[engine.MatrixRun] {
	return lease.Manager[engine.MatrixRun]{Leases: matrixLeases{s}, Kind: "matrices", Lease: s.opts.Store.Lease(),
		Log: s.opts.Log, RenewsOnly: !s.opts.TakesOver}
}

// matrixLeases implements lease.Leases.
type matrixLeases struct{ *Service }

func (matrixLeases) ID(m engine.MatrixRun) string { return m.MatrixID }

func (s matrixLeases) Expired(ctx context.Context) ([]engine.MatrixRun, error) {
	return s.opts.Store.ExpiredMatrices(ctx)
}

func (s matrixLeases) TakeOver(ctx context.Context, m engine.MatrixRun) error {
	if err := s.adopt(ctx, m, false); err != nil && !isLost(err) {
		return err
	}
	return nil
}

// Renew prolongs the leases. A matrix that another process has taken over meanwhile
// is left to it; one that somebody stopped elsewhere is stopped.
func (s matrixLeases) Renew(ctx context.Context) error {
	s.mu.Lock()
	mine := make(map[string]*activeMatrix, len(s.active))
	ids := make([]string, 0, len(s.active))
	for id, g := range s.active {
		mine[id] = g
		ids = append(ids, id)
	}
	s.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	held, err := s.opts.Store.RenewMatrices(ctx, s.opts.Owner, ids)
	if err != nil {
		return fmt.Errorf("renewing the leases of matrices: %w", err)
	}
	for _, m := range held {
		g := mine[m.MatrixID]
		g.leaseHeld()
		if m.Status == engine.StatusCancelling {
			g.stop()
		}
		delete(mine, m.MatrixID)
	}
	for id, g := range mine {
		s.opts.Log.Error().Str("matrix_id", id).Msg("another server has taken the matrix over")
		g.abandon()
	}
	return nil
}
