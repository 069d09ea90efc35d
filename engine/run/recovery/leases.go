package recovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/lease"
	"github.com/loadstone-db/loadstone/engine/run/writer"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Claim takes a run for this server.
func (s *Service) Claim(ctx context.Context, runID string, reclaim bool) (epoch int64, err error) {
	return s.opts.Store.Claim(ctx,
		store.Claim{RunID: runID, Owner: s.opts.Owner, Reclaim: reclaim})
}

// beginFinishing notes that a run of another process is finished here, unless it is already. From here on
// it is left only when that fails.
func (s *Service) beginFinishing(runID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finishing[runID] {
		return false
	}
	s.finishing[runID] = true
	delete(s.unfinished, runID)
	return true
}

// endFinishing notes that a run is no longer finished here.
func (s *Service) endFinishing(runID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.finishing, runID)
}

// WatchLeases renews those of this server's runs, and takes over runs whose owner has let
// theirs expire.
func (s *Service) WatchLeases() lease.Manager[engine.Run] {
	return lease.Manager[engine.Run]{Leases: runLeases{s}, Kind: "runs", Lease: s.opts.Store.Lease(), Log: s.opts.Log}
}

// runLeases implements lease.Leases.
type runLeases struct{ *Service }

func (runLeases) ID(run engine.Run) string { return run.RunID }

func (s runLeases) Renew(ctx context.Context) error {
	return s.opts.Store.RenewLeases(ctx, s.opts.Owner, s.heldRuns())
}

func (s runLeases) TakeOver(ctx context.Context, run engine.Run) error {
	err := s.finish(ctx, run, "The server that carried it stopped responding or lost the control store", false)
	if errors.Is(err, store.ErrLeaseHeld) || errors.Is(err, errAlreadyHandled) {
		return nil
	}
	return err
}

// Expired are the runs with an expired lease that this process does not have in its
// hands. Before it looks for them it takes in what other servers have let go of.
func (s runLeases) Expired(ctx context.Context) ([]engine.Run, error) {
	if s.opts.Runs.Closed() {
		return nil, nil
	}
	// What cannot be done of one run holds up no other.
	if err := errors.Join(s.retryUnfinished(ctx), s.sweepPostponed(ctx), s.resolveUnknownWorkers(ctx)); err != nil {
		s.opts.Log.Warn().Err(err).Msg("parts of a run that another server released could not be ingested")
	}
	runs, err := s.opts.Store.ExpiredRuns(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(runs, func(run engine.Run) bool { return s.IsHandling(run.RunID) }), nil
}

// setUnfinished remembers that a run could not be finished, or forgets it.
func (s *Service) setUnfinished(runID, why string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || errors.Is(err, store.ErrLeaseHeld) || errors.Is(err, store.ErrNotFound) {
		delete(s.unfinished, runID)
	} else {
		s.unfinished[runID] = why
	}
}

// retryUnfinished finishes what could not be finished when it was claimed. Its lease is renewed with
// those of this owner's other runs, so that it would never expire, and nobody else would do it.
func (s *Service) retryUnfinished(ctx context.Context) error {
	s.mu.Lock()
	left := maps.Clone(s.unfinished)
	s.mu.Unlock()
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(left)) {
		if s.IsHandling(id) {
			continue
		}
		run, err := s.opts.Store.Run(ctx, id)
		if err == nil && (run.Status.Live() || run.Phase == engine.PhaseProcessing) {
			err = s.finish(ctx, run, left[id], true)
		} else {
			s.setUnfinished(id, left[id], err)
		}
		if err != nil && !errors.Is(err, store.ErrLeaseHeld) && !errors.Is(err, store.ErrNotFound) &&
			!errors.Is(err, errAlreadyHandled) {
			errs = append(errs, fmt.Errorf("finishing run %s: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

// heldRuns are the runs whose leases this process renews. Those that are its owner's and nobody's work, because the
// store has made the change that gave them to it later than it was waited for, are left to expire.
func (s *Service) heldRuns() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(
		s.opts.Runs.ActiveRunIDs(),
		s.opts.Enrichments.ActiveRunIDs(),
		slices.Collect(maps.Keys(s.finishing)),
	)
}

// IsHandling reports whether this process has a run in its hands.
func (s *Service) IsHandling(runID string) bool {
	s.mu.Lock()
	recovering := s.finishing[runID]
	s.mu.Unlock()
	return recovering || s.opts.Runs.Has(runID)
}

// HandlesAny reports whether this process has any run or enrichment in its hands.
func (s *Service) HandlesAny() bool { return len(s.heldRuns()) > 0 }

// ClaimWithRetry is Claim of the own runs, tried for a few seconds.
func (s *Service) ClaimWithRetry(ctx context.Context, runID string) (epoch int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, writer.StoreTimeout)
	defer cancel()
	err = writer.Retry(ctx, func() error {
		epoch, err = s.Claim(ctx, runID, true)
		return err
	})
	return epoch, err
}

// EndUnowned ends a run that was started at the given time and that nobody owns, because the store went away then,
// however long it stays away.
func (s *Service) EndUnowned(runID string, started time.Time) {
	_ = writer.Retry(s.opts.Lifetime, func() error {
		if s.opts.Runs.Has(runID) {
			return errAlreadyHandled // it is being started, or who found it goes on with it
		}
		ctx, cancel := context.WithTimeout(s.opts.Lifetime, writer.StoreTimeout)
		defer cancel()
		run, err := s.opts.Store.Run(ctx, runID)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		// Another start that succeeded meanwhile has another time.
		if err != nil || run.Status != engine.StatusRunning || run.StartTime.Sub(started).Abs() > time.Millisecond {
			return err
		}
		err = s.finish(ctx, run, fmt.Sprintf("The control store went away at %s for %.0f s",
			started.UTC().Format(engine.TimeLayout), s.opts.Clock().Sub(started).Seconds()), true)
		if errors.Is(err, store.ErrLeaseHeld) {
			return nil // another server has it
		}
		return err
	})
}
