package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
)

// RightsStore says when rights have changed, whichever server changed them.
type RightsStore interface {
	// RightsRevision is another after each change of what users, connections, templates and tokens allow.
	RightsRevision(ctx context.Context) (string, error)
	// WatchRights calls heard at once and after changes, until ctx or the way to the store ends.
	WatchRights(ctx context.Context, heard func()) error
	// PruneRights forgets changes that are older than that.
	PruneRights(ctx context.Context, before time.Duration) error
}

// Work is what goes on for users after the request that began it: sockets and downloads, runs, continuous queries.
type Work interface {
	// Recheck judges all of it by the rights of now, and ends what is not allowed any more. An error says that this is
	// not known of some of it.
	Recheck(ctx context.Context) error
}

const (
	// rightsPollInterval is how often the revision is read where no notification comes (a pooler may be between).
	rightsPollInterval = 2 * time.Second
	// rightsSettleDelay is how long after a change all work is judged once more: a request that was judged before the
	// change may have begun work since.
	rightsSettleDelay = 2 * time.Second
	// rightsFullInterval is how often all work is judged though nothing has changed.
	rightsFullInterval = time.Minute
	// rightsTimeout bounds one pass.
	rightsTimeout = 10 * time.Second
	// rightsKept is how long changes are kept.
	rightsKept = 24 * time.Hour
)

// Supervisor judges all work of a server again whenever rights have changed, within rightsPollInterval. While the store
// does not answer, work goes on.
type Supervisor struct {
	Store RightsStore
	Work  []Work
	Log   zerolog.Logger
}

// Run judges until ctx ends.
func (s *Supervisor) Run(ctx context.Context) {
	wake := make(chan struct{}, 1)
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		s.listen(ctx, wake)
	}()
	defer func() { <-listening }()
	seen, failing := "", false
	var judged, settle, pruned time.Time
	for {
		timer := time.NewTimer(rightsPollInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-wake:
			timer.Stop()
		case <-timer.C:
		}
		revision, err := s.revision(ctx)
		now := time.Now()
		due := revision != seen || now.Sub(judged) > rightsFullInterval || !settle.IsZero() && now.After(settle)
		if err == nil && due {
			if settle = (time.Time{}); revision != seen {
				settle = now.Add(rightsSettleDelay)
			}
			if err = s.Recheck(ctx); err == nil {
				seen, judged = revision, now
			}
		}
		if err != nil && ctx.Err() == nil && !failing {
			s.Log.Warn().Err(err).Msg("rights cannot be checked again now; what goes on is checked when the store answers")
		}
		failing = err != nil
		if now.Sub(pruned) > time.Hour {
			_ = s.Store.PruneRights(ctx, rightsKept) // the next server or hour does
			pruned = now
		}
	}
}

func (s *Supervisor) revision(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, rightsPollInterval)
	defer cancel()
	return s.Store.RightsRevision(ctx)
}

// Recheck judges all work once.
func (s *Supervisor) Recheck(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	var failed error
	for _, w := range s.Work {
		failed = errors.Join(failed, w.Recheck(ctx))
	}
	return failed
}

// listen wakes when the store says that something has changed.
func (s *Supervisor) listen(ctx context.Context, wake chan<- struct{}) {
	for ctx.Err() == nil {
		_ = s.Store.WatchRights(ctx, func() { // the revision is read besides
			select {
			case wake <- struct{}{}:
			default:
			}
		})
		select {
		case <-time.After(rightsPollInterval):
		case <-ctx.Done():
		}
	}
}

// LiveRuns are the runs of a server.
type LiveRuns interface {
	// ActiveRunIDs are those that are live here, or being started.
	ActiveRunIDs() []string
	// Revoke stops a run that its user has lost the right to; why is a sentence.
	Revoke(ctx context.Context, runID, why string) error
}

// RunsWork are the live runs of a server, those of matrices included.
type RunsWork struct {
	Authorizer Authorizer
	Runs       LiveRuns
	Log        zerolog.Logger
}

// Recheck implements Work: it stops the runs that are not their users' any more.
func (w RunsWork) Recheck(ctx context.Context) (failed error) {
	for _, id := range w.Runs.ActiveRunIDs() {
		run, err := w.Authorizer.Store.Run(ctx, id)
		if isNotFound(err) || err == nil && run.Status != engine.StatusPrepared && run.Status != engine.StatusRunning {
			continue
		}
		why := ""
		if err == nil {
			why, err = w.Authorizer.revokedRun(ctx, run)
		}
		if err == nil && why != "" {
			w.Log.Warn().Str("run_id", id).Str("reason", why).Msg("a run is stopped: its user has no right to it any more")
			err = w.Runs.Revoke(ctx, id, "It was stopped: "+why+".")
			if engine.HasCode(err, engine.CodeConflict) && w.ended(ctx, id) {
				err = nil
			}
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("checking the run %s: %w", id, err))
		}
	}
	return failed
}

// ended reports whether a run has ended by itself.
func (w RunsWork) ended(ctx context.Context, id string) bool {
	run, err := w.Authorizer.Store.Run(ctx, id)
	return err == nil && run.Status.Terminal()
}

// ContinuousQueries are those of all servers of a store.
type ContinuousQueries interface {
	Recheck(ctx context.Context, judge func(catalog.Query, catalog.Sink) (why string, err error)) error
}

// QueriesWork are the continuous queries.
type QueriesWork struct {
	Authorizer Authorizer
	Queries    ContinuousQueries
}

// Recheck implements Work: it suspends the queries that are not their creators' any more.
func (w QueriesWork) Recheck(ctx context.Context) error {
	users, err := w.Authorizer.Store.ListUsers(ctx)
	if err != nil {
		return fmt.Errorf("checking continuous queries: %w", err)
	}
	return w.Queries.Recheck(ctx, func(q catalog.Query, sink catalog.Sink) (string, error) {
		return w.Authorizer.revokedQuery(ctx, users, q, sink)
	})
}
