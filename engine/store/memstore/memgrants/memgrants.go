// Package memgrants keeps who started what in memory, a part of the store there.
package memgrants

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
	// GrantedRun and GrantedMatrix look into the rest of the store.
	GrantedRun    func(ctx context.Context, runID string) (engine.Run, error)
	GrantedMatrix func(ctx context.Context, matrixID string) (engine.MatrixRun, error)

	mu     sync.Mutex
	starts map[string]store.StartGrant
}

// GrantStart implements store.Grants.
func (g *Grants) GrantStart(ctx context.Context, s store.StartGrant) error {
	var err error
	if s.RunID != "" {
		_, err = g.GrantedRun(ctx, s.RunID)
	} else {
		_, err = g.GrantedMatrix(ctx, s.MatrixID)
	}
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.starts == nil {
		g.starts = map[string]store.StartGrant{}
	}
	s.Confirmed, s.GrantedAt = slices.Clone(s.Confirmed), engine.At(time.Now().UTC().Truncate(time.Microsecond))
	g.starts[s.RunID+s.MatrixID] = s
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
		_, err = g.GrantedRun(ctx, s.RunID)
	default:
		_, err = g.GrantedMatrix(ctx, s.MatrixID)
	}
	if !ok || err != nil {
		return store.StartGrant{}, fmt.Errorf("a start: %w", store.ErrNotFound)
	}
	s.Confirmed = slices.Clone(s.Confirmed)
	return s, nil
}
