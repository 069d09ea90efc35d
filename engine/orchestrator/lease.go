package orchestrator

import (
	"context"
	"errors"
	"time"

	"github.com/loadstone-db/loadstone/engine/keeper"
	"github.com/loadstone-db/loadstone/engine/store"
)

// leaseEvery is how often leases are renewed and expired ones are looked for.
const leaseEvery = 3 * time.Second

// claim takes a run for this server.
func (s *Service) claim(ctx context.Context, runID string, reclaim bool) (epoch int64, err error) {
	return s.opts.Store.Claim(ctx,
		store.Claim{RunID: runID, Owner: s.opts.Owner, Reclaim: reclaim}) //nolint:wrapcheck // callers say what for
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

// keepLeases renews the leases of this server's runs until it is closed, and takes
// over runs whose owner has let theirs expire. A lease must be seen expired in two
// looks: after an outage of the store their owners come first.
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
		if err := s.lookAtLeases(suspects); err != nil {
			clear(suspects)
			if s.lifetime.Err() == nil {
				s.opts.Log.Warn().Err(err).Msg("leases could not be renewed or looked at")
			}
		}
	}
}

func (s *Service) lookAtLeases(suspects map[string]bool) error {
	ctx, cancel := context.WithTimeout(s.lifetime, keeper.StoreLimit)
	defer cancel()
	enriching := s.enrichments.Runs()
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	if err := s.opts.Store.RenewLeases(ctx, s.opts.Owner, enriching); err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	if closing {
		return nil
	}
	if err := s.sweepPostponed(ctx); err != nil {
		return err
	}
	expired, err := s.opts.Store.ExpiredRuns(ctx)
	if err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	before := make(map[string]bool, len(suspects))
	for id := range suspects {
		before[id] = true
	}
	clear(suspects)
	for _, run := range expired {
		if s.handles(run.RunID) {
			continue
		}
		suspects[run.RunID] = true
		if !before[run.RunID] {
			continue
		}
		delete(suspects, run.RunID)
		err := s.recoverRun(ctx, run, "The server that carried it stopped responding", false)
		if err != nil && !errors.Is(err, store.ErrHeld) {
			return err
		}
	}
	return nil
}

// handles reports whether this process has a run in its hands.
func (s *Service) handles(runID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, starting := s.starting[runID]
	return starting || s.live[runID] != nil || s.recovering[runID]
}
