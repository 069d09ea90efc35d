// This part keeps who started what in memory, a part of the store there.

package fake

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Grants implements store.Grants. It is safe for concurrent use; the functions are set before.
type Grants struct {
	// FindRun and GrantedMatrix look into the rest of the store.
	FindRun    func(ctx context.Context, runID string) (engine.Run, error)
	FindMatrix func(ctx context.Context, matrixID string) (engine.MatrixRun, error)

	mu     sync.Mutex
	starts map[string]store.StartGrant
}

// SaveStartGrant implements store.Grants.
func (g *Grants) SaveStartGrant(ctx context.Context, s store.StartGrant) (store.GrantChange, error) {
	var status engine.Status
	if s.RunID != "" {
		run, err := g.FindRun(ctx, s.RunID)
		if err != nil {
			return store.GrantChange{}, err
		}
		status = run.Status
	} else {
		m, err := g.FindMatrix(ctx, s.MatrixID)
		if err != nil {
			return store.GrantChange{}, err
		}
		status = m.Status
	}
	if status != engine.StatusPrepared {
		return store.GrantChange{}, fmt.Errorf("a start of what is %s: %w", status, store.ErrConflict)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.starts == nil {
		g.starts = map[string]store.StartGrant{}
	}
	s.Confirmed, s.GrantedAt = slices.Clone(s.Confirmed), engine.At(time.Now().UTC())
	granted := store.GrantChange{StartGrant: s}
	if before, there := g.starts[s.RunID+s.MatrixID]; there {
		granted.Previous = &before
	}
	g.starts[s.RunID+s.MatrixID] = s
	return granted, nil
}

// ResolveStart implements store.Grants.
func (g *Grants) ResolveStart(_ context.Context, s store.GrantChange, begun bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := s.RunID + s.MatrixID
	now, there := g.starts[key]
	mine := there && now.UserID == s.UserID && now.GrantedAt.Equal(s.GrantedAt.Time)
	switch {
	case begun:
		g.starts[key] = s.StartGrant
	case mine && s.Previous != nil:
		g.starts[key] = *s.Previous
	case mine:
		delete(g.starts, key)
	}
	return nil
}

// StartGrant implements store.Grants.
func (g *Grants) StartGrant(ctx context.Context, runID, matrixID string) (store.StartGrant, error) {
	g.mu.Lock()
	s, ok := g.starts[runID]
	if !ok && matrixID != "" {
		s, ok = g.starts[matrixID]
	}
	g.mu.Unlock()
	var err error
	switch {
	case !ok:
	case s.RunID != "":
		_, err = g.FindRun(ctx, s.RunID)
	default:
		_, err = g.FindMatrix(ctx, s.MatrixID)
	}
	if !ok || err != nil {
		return store.StartGrant{}, fmt.Errorf("a start: %w", store.ErrNotFound)
	}
	s.Confirmed = slices.Clone(s.Confirmed)
	return s, nil
}
