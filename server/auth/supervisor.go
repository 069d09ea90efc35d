package auth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/run/enrichment"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
)

// RightsStore says when rights have changed, whichever server changed them.
type RightsStore interface {
	// RightsRevision has numbers that rise with each change: of what users, connections and templates allow, and of the
	// tokens and sessions that are there.
	RightsRevision(ctx context.Context) (rights, tokens int64, err error)
	// WatchRights calls heard at once and after changes, until ctx or the way to the store ends.
	WatchRights(ctx context.Context, heard func()) error
}

// Work is what goes on for users after the request that began it: sockets and downloads, runs, continuous queries.
type Work interface {
	// Recheck judges all of it by the rights of now, and ends what is not allowed any more. An error says that this is
	// not known of some of it.
	Recheck(ctx context.Context) error
}

// localWork is Work that begins on this server in ways that no change of rights tells of, such as a run that is taken
// over.
type localWork interface {
	Work
	// RecheckBegun judges what has begun since the last pass.
	RecheckBegun(ctx context.Context) error
}

const (
	// rightsPollInterval is how often the revision is read where no notification comes (a pooler may be between).
	rightsPollInterval = 2 * time.Second
	// rightsMinInterval is between two looks at the revision, however often there is word of a change.
	rightsMinInterval = time.Second
	// rightsSettleDelay is how long after a change all work is judged once more: a request that was judged before the
	// change may have begun work since.
	rightsSettleDelay = 2 * time.Second
	// rightsFullInterval is how often all work is judged though nothing has changed.
	rightsFullInterval = time.Minute
	// rightsTimeout bounds one pass over one kind of work.
	rightsTimeout = 10 * time.Second
)

// Supervisor judges all work of a server again whenever rights have changed, within rightsPollInterval. Each kind of
// work is judged by itself: one that fails or takes long delays no other. While the store does not answer, work goes
// on.
type Supervisor struct {
	Store RightsStore
	// Open is what is open under tokens and sessions: it is judged when those change, too.
	Open Work
	// Work is what does not ask for the token that began it.
	Work []Work
	Log  zerolog.Logger
}

// Run judges until ctx ends.
func (s *Supervisor) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	all := append([]Work{s.Open}, s.Work...)
	wake := make([]chan struct{}, len(all))
	for i, w := range all {
		wake[i] = make(chan struct{}, 1)
		running.Go(func() { s.watch(ctx, w, wake[i]) })
	}
	running.Go(func() { s.listen(ctx, wake) })
}

// watch judges one kind of work until ctx ends.
func (s *Supervisor) watch(ctx context.Context, w Work, wake <-chan struct{}) {
	seen, failing := int64(-1), false
	var judged, settle time.Time
	for {
		if !awaitRights(ctx, wake) {
			return
		}
		revision, err := s.revision(ctx, w)
		now := time.Now()
		switch due := revision != seen || now.Sub(judged) > rightsFullInterval || !settle.IsZero() && !now.Before(settle); {
		case err != nil:
		case due:
			if settle = (time.Time{}); revision != seen {
				settle = now.Add(rightsSettleDelay)
			}
			if err = bounded(ctx, w.Recheck); err == nil {
				seen, judged = revision, now
			}
		default:
			if l, ok := w.(localWork); ok {
				err = bounded(ctx, l.RecheckBegun)
			}
		}
		if err != nil && ctx.Err() == nil && !failing {
			s.Log.Warn().Err(err).Msg("rights cannot be rechecked now; active work is checked when the store answers")
		}
		failing = err != nil
	}
}

// awaitRights waits for word of a change or the time to look without; false when ctx has ended.
func awaitRights(ctx context.Context, wake <-chan struct{}) bool {
	pause, look := time.NewTimer(rightsMinInterval), time.NewTimer(rightsPollInterval)
	defer pause.Stop()
	defer look.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-pause.C:
	}
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-look.C:
	}
	return true
}

// bounded runs a pass for rightsTimeout at most.
func bounded(ctx context.Context, pass func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	return pass(ctx)
}

// revision is that of the changes that a kind of work is judged after.
func (s *Supervisor) revision(ctx context.Context, w Work) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, rightsPollInterval)
	defer cancel()
	rights, tokens, err := s.Store.RightsRevision(ctx)
	if w == s.Open {
		rights += tokens // both only rise
	}
	return rights, err
}

// listen wakes when the store says that something has changed.
func (s *Supervisor) listen(ctx context.Context, wake []chan struct{}) {
	for ctx.Err() == nil {
		_ = s.Store.WatchRights(ctx, func() { // the revision is read besides
			for _, w := range wake {
				select {
				case w <- struct{}{}:
				default:
				}
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
	// Enrichments are those under way here, by run.
	Enrichments() map[string]enrichment.Origin
	// RevokeEnrichment is Revoke for the enrichment of a run.
	RevokeEnrichment(ctx context.Context, runID, why string) error
}

// judgedAtOnce is how many runs are judged at a time.
const judgedAtOnce = 8

// begun are the things of a server that have begun since the last pass over them.
type begun struct{ judged map[string]bool }

// recheck judges those of the ids that were not judged, and stops those of which judge says why.
func (b *begun) recheck(ctx context.Context, j Authorizer, ids []string,
	judge func(users []store.User, id string) (why string, err error), stop func(id, why string) error) error {
	judged, fresh := map[string]bool{}, []string(nil)
	for _, id := range ids {
		if judged[id] = b.judged[id]; !judged[id] {
			fresh = append(fresh, id)
		}
	}
	b.judged = judged
	if len(fresh) == 0 {
		return nil
	}
	users, err := j.Store.ListUsers(ctx)
	if err != nil {
		return fmt.Errorf("listing users: %w", err)
	}
	var judging, stopping sync.WaitGroup // what does not stop holds up nothing else
	errs, places := make([]error, len(fresh)), make(chan struct{}, judgedAtOnce)
	for i, id := range fresh {
		judging.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			why, err := judge(users, id)
			if errs[i] = err; why != "" && err == nil {
				stopping.Go(func() { errs[i] = stop(id, "It was stopped: "+why+".") })
			}
		})
	}
	judging.Wait()
	stopping.Wait()
	for i, id := range fresh {
		if judged[id] = errs[i] == nil; errs[i] != nil {
			errs[i] = fmt.Errorf("checking the run %s: %w", id, errs[i])
		}
	}
	return errors.Join(errs...)
}

// RunsWork are the live runs of a server, those of matrices included. One supervisor has it.
type RunsWork struct {
	Authorizer Authorizer
	Runs       LiveRuns
	Log        zerolog.Logger
	begun      begun
}

// Recheck implements Work: it stops the runs that are not their users' any more.
func (w *RunsWork) Recheck(ctx context.Context) error {
	w.begun = begun{}
	return w.RecheckBegun(ctx)
}

// RecheckBegun implements localWork: a run may have been taken over from another server.
func (w *RunsWork) RecheckBegun(ctx context.Context) error {
	return w.begun.recheck(ctx, w.Authorizer, w.Runs.ActiveRunIDs(),
		func(users []store.User, id string) (why string, err error) {
			run, err := w.Authorizer.Store.Run(ctx, id)
			switch {
			case isNotFound(err) || err == nil && run.Status != engine.StatusPrepared && run.Status != engine.StatusRunning:
				return "", nil
			case err != nil:
				return "", err
			}
			return w.Authorizer.revokedRun(ctx, users, run)
		},
		func(id, why string) error {
			w.Log.Warn().Str("run_id", id).Str("reason", why).Msg("a run is stopped: its user has no right to it any more")
			err := w.Runs.Revoke(ctx, id, why)
			if engine.HasCode(err, engine.CodeConflict) && w.ended(ctx, id) {
				return nil
			}
			return err
		})
}

// ended reports whether a run has ended by itself.
func (w *RunsWork) ended(ctx context.Context, id string) bool {
	run, err := w.Authorizer.Store.Run(ctx, id)
	return err == nil && run.Status.Terminal()
}

// EnrichmentsWork are the enrichments of a server: they ask the targets of runs that are over.
type EnrichmentsWork struct {
	Authorizer Authorizer
	Runs       LiveRuns
	Log        zerolog.Logger
	begun      begun
}

// Recheck implements Work: it stops the enrichments of runs whose targets are not their users' any more.
func (w *EnrichmentsWork) Recheck(ctx context.Context) error {
	w.begun = begun{}
	return w.RecheckBegun(ctx)
}

// RecheckBegun implements localWork: a run may have ended, or its server gone on with its enrichment.
func (w *EnrichmentsWork) RecheckBegun(ctx context.Context) error {
	origins := w.Runs.Enrichments()
	return w.begun.recheck(ctx, w.Authorizer, slices.Collect(maps.Keys(origins)),
		func(users []store.User, id string) (why string, err error) {
			run, err := w.Authorizer.Store.Run(ctx, id)
			if isNotFound(err) {
				return "", nil
			}
			if err != nil {
				return "", err
			}
			return w.Authorizer.revokedEnrichment(ctx, users, run, origins[id])
		},
		func(id, why string) error {
			w.Log.Warn().Str("run_id", id).Str("reason", why).
				Msg("an enrichment is stopped: its user has no right to it any more")
			return w.Runs.RevokeEnrichment(ctx, id, why)
		})
}

// ContinuousQueries are those of all servers of a store. As of tables and hooks, users asks for the judge once what is
// judged was read: what somebody began after being let in is not judged by the users of before.
type ContinuousQueries interface {
	Recheck(ctx context.Context, users func(context.Context) (
		judge func(catalog.Query, catalog.Sink) (why string, err error), err error)) error
}

// DerivedTables are those of all servers of a store.
type DerivedTables interface {
	Recheck(ctx context.Context, users func(context.Context) (judge func(refresh.Table) (why string), err error)) error
}

// TablesWork are the refreshes of derived tables.
type TablesWork struct {
	Authorizer Authorizer
	Tables     DerivedTables
}

// Recheck implements Work: it suspends the tables whose owners may have nothing refreshed any more.
func (w TablesWork) Recheck(ctx context.Context) error {
	return w.Tables.Recheck(ctx, func(ctx context.Context) (func(refresh.Table) string, error) {
		users, err := w.Authorizer.Store.ListUsers(ctx)
		if err != nil {
			return nil, fmt.Errorf("checking derived tables: %w", err)
		}
		return func(t refresh.Table) string {
			_, why := activeOperator(users, t.OwnerID, t.Owner+", whose table it is,", "refreshes")
			return why
		}, nil
	})
}

// Hooks are the notifications of all servers of a store.
type Hooks interface {
	Recheck(ctx context.Context, users func(context.Context) (judge func(notify.Hook) (why string), err error)) error
}

// HooksWork are the notifications.
type HooksWork struct {
	Authorizer Authorizer
	Hooks      Hooks
}

// Recheck implements Work: it suspends the notifications whose owners decide about none any more.
func (w HooksWork) Recheck(ctx context.Context) error {
	return w.Hooks.Recheck(ctx, func(ctx context.Context) (func(notify.Hook) string, error) {
		users, err := w.Authorizer.Store.ListUsers(ctx)
		if err != nil {
			return nil, fmt.Errorf("checking notifications: %w", err)
		}
		return func(h notify.Hook) string {
			return formerAdmin(users, h.OwnerID, h.Owner+", who saved it,", "saves")
		}, nil
	})
}

// Schedules are those of all servers of a store.
type Schedules interface {
	Recheck(ctx context.Context, users func(context.Context) (judge func(engine.Schedule) (why string), err error)) error
}

// SchedulesWork are the schedules: runs start in the names of their owners.
type SchedulesWork struct {
	Authorizer Authorizer
	Schedules  Schedules
}

// Recheck implements Work: it suspends the schedules whose owners may start no runs any more.
func (w SchedulesWork) Recheck(ctx context.Context) error {
	return w.Schedules.Recheck(ctx, func(ctx context.Context) (func(engine.Schedule) string, error) {
		users, err := w.Authorizer.Store.ListUsers(ctx)
		if err != nil {
			return nil, fmt.Errorf("checking schedules: %w", err)
		}
		return func(v engine.Schedule) string {
			_, why := activeOperator(users, v.OwnerID, v.Owner+", who owns the schedule,", "starts")
			return why
		}, nil
	})
}

// formerAdmin says why a user decides no longer what admins decide; empty while it does. The words are those of
// activeOperator.
func formerAdmin(users []store.User, userID, who, does string) (why string) {
	u, why := activeOperator(users, userID, who, does)
	if why == "" && u.Role != store.RoleAdmin {
		why = who + " is no admin any more"
	}
	return why
}

// QueryLogins are those of programs to the results database.
type QueryLogins interface {
	RecheckReaders(ctx context.Context, users func(context.Context) (judge func(ownerID string) (why string),
		err error)) error
}

// LoginsWork are the logins to the results database: admins make them.
type LoginsWork struct {
	Authorizer Authorizer
	Logins     QueryLogins
}

// Recheck implements Work: it suspends the logins whose owners are no admins any more, and ends their sessions.
func (w LoginsWork) Recheck(ctx context.Context) error {
	return w.Logins.RecheckReaders(ctx, func(ctx context.Context) (func(string) string, error) {
		users, err := w.Authorizer.Store.ListUsers(ctx)
		if err != nil {
			return nil, fmt.Errorf("checking logins to the results database: %w", err)
		}
		return func(ownerID string) string {
			return formerAdmin(users, ownerID, "the user who made it", "makes")
		}, nil
	})
}

// QueriesWork are the continuous queries.
type QueriesWork struct {
	Authorizer Authorizer
	Queries    ContinuousQueries
}

// Recheck implements Work: it suspends the queries that are not their creators' any more.
func (w QueriesWork) Recheck(ctx context.Context) error {
	return w.Queries.Recheck(ctx, func(ctx context.Context) (func(catalog.Query, catalog.Sink) (string, error), error) {
		users, err := w.Authorizer.Store.ListUsers(ctx)
		if err != nil {
			return nil, fmt.Errorf("checking continuous queries: %w", err)
		}
		return func(q catalog.Query, sink catalog.Sink) (string, error) {
			return w.Authorizer.revokedQuery(ctx, users, q, sink)
		}, nil
	})
}
