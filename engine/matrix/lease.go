package matrix

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// The pace of leases, as that of runs.
const (
	leaseEvery = 3 * time.Second
	leaseLimit = 10 * time.Second
)

// held notes that the lease was just seen to hold.
func (g *going) held() {
	now := time.Now()
	g.renewed.Store(&now)
}

// sure reports whether nobody else can have taken the matrix over yet.
func (g *going) sure() bool { return time.Since(*g.renewed.Load()) < store.Lease }

// left holds for a matrix that is not this process's to go on with.
func left(err error) bool {
	return errors.Is(err, store.ErrHeld) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound)
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
	s.carry(now, now.CreatedBy)
	return nil
}

// keepLeases renews the leases of the matrices under way here until the service is
// closed, and goes on with those whose owner has let theirs expire. As with runs, a
// lease must be seen expired in two looks: after an outage of the store its owner comes first.
func (s *Service) keepLeases() {
	ticker := time.NewTicker(leaseEvery)
	defer ticker.Stop()
	suspects := map[string]bool{}
	for {
		select {
		case <-s.lifetime.Done():
			return
		case <-ticker.C:
		}
		next, err := s.lookAtLeases(suspects)
		if err != nil && s.lifetime.Err() == nil {
			s.opts.Log.Warn().Err(err).Msg("leases of matrices could not be renewed or looked at")
		}
		suspects = next
	}
}

// lookAtLeases renews and looks once; suspects were seen expired before, and it
// returns those that were seen now.
func (s *Service) lookAtLeases(suspects map[string]bool) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(s.lifetime, leaseLimit)
	defer cancel()
	if err := s.renew(ctx); err != nil || !s.opts.Succeeds {
		return nil, err
	}
	expired, err := s.opts.Store.ExpiredMatrices(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for matrices without an owner: %w", err)
	}
	next := map[string]bool{}
	for _, m := range expired {
		if !suspects[m.MatrixID] {
			next[m.MatrixID] = true
			continue
		}
		if err := s.adopt(ctx, m, false); err != nil && !left(err) {
			return next, err
		}
	}
	return next, nil
}

// renew prolongs the leases. A matrix that another process has taken over meanwhile
// is left to it; one that somebody stopped elsewhere is stopped.
func (s *Service) renew(ctx context.Context) error {
	s.mu.Lock()
	mine := make(map[string]*going, len(s.going))
	ids := make([]string, 0, len(s.going))
	for id, g := range s.going {
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
		g.held()
		if m.Status == engine.StatusCancelling {
			g.stop()
		}
		delete(mine, m.MatrixID)
	}
	for id, g := range mine {
		s.opts.Log.Error().Str("matrix_id", id).Msg("another server has taken the matrix over")
		g.lose()
	}
	return nil
}
