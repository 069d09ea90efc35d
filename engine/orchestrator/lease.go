package orchestrator

import (
	"context"
	"errors"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/lease"
	"github.com/loadstone-db/loadstone/engine/store"
)

// claim takes a run for this server.
func (s *Service) claim(ctx context.Context, runID string, reclaim bool) (epoch int64, err error) {
	return s.opts.Store.Claim(ctx,
		store.Claim{RunID: runID, Owner: s.opts.Owner, Reclaim: reclaim})
}

// recovers notes that a run of another process is finished here, or is no more.
func (s *Service) recovers(runID string, now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now {
		s.recovering[runID] = true
	} else {
		delete(s.recovering, runID)
	}
}

// leases renews those of this server's runs, and takes over runs whose owner has let
// theirs expire.
func (s *Service) leases() lease.Watch[engine.Run] {
	return lease.Watch[engine.Run]{What: "runs", Log: s.opts.Log,
		Renew: func(ctx context.Context) error {
			return s.opts.Store.RenewLeases(ctx, s.opts.Owner, s.enrichments.Runs())
		},
		Expired: s.expired,
		ID:      func(run engine.Run) string { return run.RunID },
		TakeOver: func(ctx context.Context, run engine.Run) error {
			err := s.recoverRun(ctx, run, "The server that carried it stopped responding", false)
			if errors.Is(err, store.ErrHeld) {
				return nil
			}
			return err
		}}
}

// expired are the runs with an expired lease that this process does not have in its
// hands. Before it looks for them it takes in what other servers have let go of.
func (s *Service) expired(ctx context.Context) ([]engine.Run, error) {
	if s.runs.closed() {
		return nil, nil
	}
	if err := s.sweepPostponed(ctx); err != nil {
		return nil, err
	}
	runs, err := s.opts.Store.ExpiredRuns(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(runs, func(run engine.Run) bool { return s.handles(run.RunID) }), nil
}

// handles reports whether this process has a run in its hands.
func (s *Service) handles(runID string) bool {
	s.mu.Lock()
	recovering := s.recovering[runID]
	s.mu.Unlock()
	return recovering || s.runs.has(runID)
}
