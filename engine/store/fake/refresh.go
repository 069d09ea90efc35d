// This part is the queue of refreshes in memory, a part of the store there.

package fake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
)

// RefreshQueue implements refresh.Refreshes. It is safe for concurrent use.
type RefreshQueue struct {
	// runs are those that are over, by id, with when they changed last, and all that there are.
	runs func() (over map[string]time.Time, all func(id string) bool)

	mu       sync.Mutex
	tables   map[string]*refresh.Table
	subtasks map[refresh.Task]subtask
	pending  map[refresh.Task]pending
	claims   map[refresh.Task]refresh.Claim
	history  []refresh.Record
	workers  map[string]refresh.Worker
	epoch    int64
	// changed is closed, and made anew, when there may be something to do.
	changed chan struct{}
}

var _ refresh.Refreshes = (*RefreshQueue)(nil)

type subtask struct {
	asOf     time.Time
	failures int
	done     bool
	// abandoned: it has failed too often, lastly so.
	abandoned bool
	error     string
	failedAt  time.Time
}

type pending struct {
	refresh.Pending
	enqueued time.Time
}

// NewRefreshQueue returns an empty queue over the runs of a store.
func NewRefreshQueue(runs func() (over map[string]time.Time, all func(id string) bool)) *RefreshQueue {
	return &RefreshQueue{runs: runs, tables: map[string]*refresh.Table{}, subtasks: map[refresh.Task]subtask{},
		pending: map[refresh.Task]pending{}, claims: map[refresh.Task]refresh.Claim{}, changed: make(chan struct{}),
		workers: map[string]refresh.Worker{}}
}

// Notify wakes whoever waits for something to refresh.
func (s *RefreshQueue) Notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notifyLocked()
}

// RunDeleted says that a run is gone: what could not be taken in may well be removed.
func (s *RefreshQueue) RunDeleted(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for task, sub := range s.subtasks {
		if task.Subtask == run && sub.abandoned {
			s.subtasks[task] = subtask{asOf: sub.asOf, done: true}
		}
	}
	s.notifyLocked()
}

func (s *RefreshQueue) notifyLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *RefreshQueue) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("asking the control store: %w", err)
	}
	s.mu.Lock()
	return nil
}

// refreshNow is exact to a microsecond, as a time that comes back from a database.
func refreshNow() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func (s *RefreshQueue) sources() map[string][]string {
	of := map[string][]string{}
	for name, t := range s.tables {
		of[name] = t.Sources
	}
	return of
}

// checkSources checks what a table reads.
func (s *RefreshQueue) checkSources(t refresh.Table) error {
	for _, source := range t.Sources {
		if s.tables[source] == nil && source != t.Name {
			return refresh.UnknownSource(t.Name)
		}
	}
	if findCycle(t.Name, t.Sources, s.sources()) != nil {
		return refresh.ReadsItself(t.Name)
	}
	return nil
}

// table returns a table, or a user-facing store.ErrNotFound.
func (s *RefreshQueue) table(name string) (*refresh.Table, error) {
	if t := s.tables[name]; t != nil {
		return t, nil
	}
	return nil, &engine.Error{Code: engine.CodeNotFound, Cause: store.ErrNotFound,
		Message: fmt.Sprintf("There is no derived table %q.", name)}
}

// CreateDynamicTable implements refresh.Refreshes.
func (s *RefreshQueue) CreateDynamicTable(ctx context.Context, t refresh.Table) (refresh.Table, error) {
	if err := refresh.Check(t); err != nil {
		return t, err
	}
	if err := s.lock(ctx); err != nil {
		return t, err
	}
	defer s.mu.Unlock()
	if s.tables[t.Name] != nil {
		return t, store.NameTaken("derived table", t.Name)
	}
	if err := s.checkSources(t); err != nil {
		return t, err
	}
	at := engine.At(refreshNow())
	t.Status, t.Version, t.CreatedAt, t.UpdatedAt = refresh.Active, 1, at, at
	t.Description, t.CreatedBy = store.CleanText(t.Description), store.CleanText(t.CreatedBy)
	t.Owner = store.CleanText(t.Owner)
	t.UpdatedBy = t.CreatedBy
	t.Sources = slices.Sorted(slices.Values(t.Sources))
	s.tables[t.Name] = &t
	return copyTable(t), nil
}

// DynamicTable implements refresh.Refreshes.
func (s *RefreshQueue) DynamicTable(ctx context.Context, name string) (refresh.Table, error) {
	if err := s.lock(ctx); err != nil {
		return refresh.Table{}, err
	}
	defer s.mu.Unlock()
	t, err := s.table(name)
	if err != nil {
		return refresh.Table{}, err
	}
	return s.view(*t), nil
}

// view is a table as it is read. Of an INGEST table each run fails by itself: those that are given up count.
func (s *RefreshQueue) view(t refresh.Table) refresh.Table {
	t.Failing = nil
	for task, sub := range s.subtasks {
		if task.Table == t.Name && sub.failures > 0 {
			t.Failing = append(t.Failing, refresh.Failing{Subtask: task.Subtask, Failures: sub.failures, GivenUp: sub.abandoned,
				Error: sub.error, FailedAt: engine.At(sub.failedAt)})
		}
	}
	slices.SortFunc(t.Failing, func(a, b refresh.Failing) int {
		return cmp.Or(b.FailedAt.Compare(a.FailedAt.Time), strings.Compare(a.Subtask, b.Subtask))
	})
	for _, f := range slices.Backward(t.Failing) {
		if t.Kind == refresh.Ingest && f.GivenUp {
			t.Failures, t.Error = t.Failures+1, "Run "+f.Subtask+": "+f.Error
		}
	}
	t.Failing = t.Failing[:min(refresh.MaxFailing, len(t.Failing))]
	return copyTable(t)
}

// copyTable shares no memory with what is stored.
func copyTable(t refresh.Table) refresh.Table {
	t.Sources = append([]string{}, t.Sources...)
	t.Failing = append([]refresh.Failing{}, t.Failing...)
	return t
}

// UpdateDynamicTable implements refresh.Refreshes.
func (s *RefreshQueue) UpdateDynamicTable(ctx context.Context, t refresh.Table) (refresh.Table, error) {
	if err := refresh.Check(t); err != nil {
		return t, err
	}
	if err := s.lock(ctx); err != nil {
		return t, err
	}
	defer s.mu.Unlock()
	old, err := s.table(t.Name)
	if err != nil {
		return t, err
	}
	if old.Version != t.Version {
		return t, store.ConcurrentEditError("table", t.Name, old.UpdatedBy, old.UpdatedAt, old.Version)
	}
	if err := s.checkSources(t); err != nil {
		return t, err
	}
	at := engine.At(refreshNow())
	old.Definition, old.Description, old.TargetLagSeconds = t.Definition, store.CleanText(t.Description),
		t.TargetLagSeconds
	old.Mode, old.PartitionBy, old.Partitions, old.Priority = t.Mode, t.PartitionBy, t.Partitions, t.Priority
	old.Sources = slices.Sorted(slices.Values(t.Sources))
	old.Version++
	old.UpdatedBy, old.Failures, old.Error = store.CleanText(t.UpdatedBy), 0, ""
	if old.Status == refresh.Failed || t.OwnerID != "" && old.Suspended != "" {
		old.Status = refresh.Active
	}
	if t.OwnerID != "" {
		old.OwnerID, old.Owner, old.Suspended = t.OwnerID, store.CleanText(t.Owner), ""
	}
	old.UpdatedAt, old.ChangedAt, old.BehindSince, old.AsOf = at, at, at, engine.Time{}
	return copyTable(*old), nil
}

// DropDynamicTable implements refresh.Refreshes.
func (s *RefreshQueue) DropDynamicTable(ctx context.Context, name string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if _, err := s.table(name); err != nil {
		return err
	}
	if readers := s.dependents(name); len(readers) > 0 {
		return refresh.ReadBy(name, readers)
	}
	delete(s.tables, name)
	of := func(task refresh.Task) bool { return task.Table == name }
	maps.DeleteFunc(s.pending, func(t refresh.Task, _ pending) bool { return of(t) })
	maps.DeleteFunc(s.claims, func(t refresh.Task, _ refresh.Claim) bool { return of(t) })
	maps.DeleteFunc(s.subtasks, func(t refresh.Task, _ subtask) bool { return of(t) })
	s.history = slices.DeleteFunc(s.history, func(r refresh.Record) bool { return of(r.Task) })
	return nil
}

// dependents are the tables that read one, by name.
func (s *RefreshQueue) dependents(name string) []string {
	var readers []string
	for reader, t := range s.tables {
		if slices.Contains(t.Sources, name) {
			readers = append(readers, reader)
		}
	}
	slices.Sort(readers)
	return readers
}

// SetDynamicTableStatus implements refresh.Refreshes.
func (s *RefreshQueue) SetDynamicTableStatus(ctx context.Context, name string, status refresh.Status) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	t, err := s.table(name)
	if err != nil {
		return err
	}
	t.Status, t.Failures = status, 0
	if status == refresh.Active {
		t.Error, t.Suspended = "", ""
		maps.DeleteFunc(s.subtasks, func(task refresh.Task, sub subtask) bool {
			return task.Table == name && sub.failures > 0
		})
		return nil
	}
	maps.DeleteFunc(s.pending, func(task refresh.Task, _ pending) bool {
		_, claimed := s.claims[task]
		return task.Table == name && !claimed
	})
	return nil
}

// ResumeDynamicTable implements refresh.Refreshes.
func (s *RefreshQueue) ResumeDynamicTable(ctx context.Context, name, ownerID, owner string) error {
	if err := s.SetDynamicTableStatus(ctx, name, refresh.Active); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tables[name]; t != nil && ownerID != "" && !t.Bundled {
		t.OwnerID, t.Owner = ownerID, store.CleanText(owner)
	}
	return nil
}

// OwnedTables implements refresh.Refreshes.
func (s *RefreshQueue) OwnedTables(ctx context.Context) (owned []refresh.Table, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		if t := s.tables[name]; t.OwnerID != "" && t.Status == refresh.Active {
			owned = append(owned, s.view(*t))
		}
	}
	return owned, nil
}

// RevokeDynamicTable implements refresh.Refreshes.
func (s *RefreshQueue) RevokeDynamicTable(ctx context.Context, name, ownerID, why string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	t := s.tables[name]
	if t == nil || t.OwnerID != ownerID || t.Status != refresh.Active {
		return nil
	}
	t.Status, t.Failures, t.Suspended = refresh.Suspended, 0, store.CleanText(why)
	maps.DeleteFunc(s.pending, func(task refresh.Task, _ pending) bool { return task.Table == name })
	maps.DeleteFunc(s.claims, func(task refresh.Task, _ refresh.Claim) bool { return task.Table == name })
	s.notifyLocked()
	return nil
}

// RequestRefresh implements refresh.Refreshes.
func (s *RefreshQueue) RequestRefresh(ctx context.Context, name string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	t, err := s.table(name)
	if err != nil {
		return err
	}
	if t.Kind != refresh.SQL || t.Status != refresh.Active {
		return refresh.NotRefreshable(*t)
	}
	at := refreshNow()
	// A claim whose worker has died is nobody's.
	if c, there := s.claims[refresh.Task{Table: name}]; there && c.ExpiresAt.After(at) {
		return nil
	}
	t.ChangedAt = engine.At(at)
	p, ok := s.pending[refresh.Task{Table: name}]
	if !ok {
		p = pending{refresh.Pending{Task: refresh.Task{Table: name}, Priority: t.Priority}, at}
	}
	if p.Due.IsZero() || p.Due.After(at) {
		p.Due = engine.At(at)
	}
	s.pending[p.Task] = p
	s.notifyLocked()
	return nil
}

// RefreshState implements refresh.Refreshes.
func (s *RefreshQueue) RefreshState(ctx context.Context, runs int) (refresh.State, error) {
	over, there := s.runs() // the store's lock is never taken under the queue's
	if err := s.lock(ctx); err != nil {
		return refresh.State{}, err
	}
	defer s.mu.Unlock()
	state := refresh.State{Now: engine.At(refreshNow()), Runs: map[string][]string{}}
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		t := s.tables[name]
		state.Tables = append(state.Tables, s.view(*t))
		if t.Kind != refresh.Ingest || t.Status == refresh.Suspended {
			continue
		}
		if stale, since := s.staleRuns(name, over, there, state.Now.Time); !since.IsZero() {
			state.Tables[len(state.Tables)-1].BehindSince = engine.At(since)
			if t.Status == refresh.Active && len(stale) > 0 {
				state.Runs[name] = stale[:min(runs, len(stale))]
			}
		}
	}
	for _, p := range s.pending {
		state.Pending = append(state.Pending, p.Pending)
	}
	state.Claims = slices.Collect(maps.Values(s.claims))
	state.Workers = s.present()
	return state, nil
}

// staleRuns are those that have ended or changed since a table took them in, those that could not be taken in, and
// those that are gone, but for what is given up; since is when the oldest change was, also of that: of a run that is
// gone now, zero when there is none.
func (s *RefreshQueue) staleRuns(table string, over map[string]time.Time, there func(string) bool,
	at time.Time) (stale []string, since time.Time) {
	waits := func(run string, changed time.Time, givenUp bool) {
		if !givenUp {
			stale = append(stale, run)
		}
		if since.IsZero() || changed.Before(since) {
			since = changed
		}
	}
	for run, changed := range over {
		sub, known := s.subtasks[refresh.Task{Table: table, Subtask: run}]
		if known && sub.done && !changed.After(sub.asOf) {
			continue
		}
		givenUp := sub.abandoned && !changed.After(sub.asOf)
		if t := s.tables[table]; t != nil && t.CreatedAt.After(changed) {
			changed = t.CreatedAt.Time // it did not wait before it was made
		}
		waits(run, changed, givenUp)
	}
	for task, sub := range s.subtasks {
		if task.Table == table && !there(task.Subtask) {
			waits(task.Subtask, at, sub.abandoned)
		}
	}
	slices.Sort(stale)
	return stale, since
}

// ScheduleRefreshes implements refresh.Refreshes.
func (s *RefreshQueue) ScheduleRefreshes(ctx context.Context, plan refresh.Schedule) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for name, due := range plan.Due {
		if t := s.tables[name]; t != nil {
			t.NextDue = due
		}
	}
	for _, p := range plan.Enqueue {
		t := s.tables[p.Table]
		if _, there := s.pending[p.Task]; !there && t != nil && t.Status == refresh.Active {
			s.pending[p.Task] = pending{p, refreshNow()}
		}
	}
	if len(plan.Enqueue) > 0 {
		s.notifyLocked()
	}
	return nil
}

// ClaimRefreshes implements refresh.Refreshes.
func (s *RefreshQueue) ClaimRefreshes(ctx context.Context, worker string, life time.Duration, most int,
	kinds ...refresh.Kind) ([]refresh.Claim, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	at := refreshNow()
	var due []refresh.Pending
	for task, p := range s.pending {
		wanted := len(kinds) == 0 || slices.Contains(kinds, s.tables[task.Table].Kind)
		if _, claimed := s.claims[task]; !claimed && wanted && !p.Due.After(at) {
			due = append(due, p.Pending)
		}
	}
	slices.SortFunc(due, func(a, b refresh.Pending) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Due.Compare(b.Due.Time), strings.Compare(a.Table, b.Table),
			strings.Compare(a.Subtask, b.Subtask))
	})
	var claims []refresh.Claim
	for _, p := range due[:min(most, len(due))] {
		s.epoch++
		c := refresh.Claim{Task: p.Task, Worker: worker, Epoch: s.epoch, ClaimedAt: engine.At(at),
			HeartbeatAt: engine.At(at), ExpiresAt: engine.At(at.Add(life))}
		s.claims[p.Task] = c
		claims = append(claims, c)
	}
	return claims, nil
}

// activeClaim returns the claim if it is in force.
func (s *RefreshQueue) activeClaim(c refresh.Claim) (refresh.Claim, error) {
	kept, ok := s.claims[c.Task]
	if !ok || kept.Epoch != c.Epoch || !kept.ExpiresAt.After(refreshNow()) {
		return kept, fmt.Errorf("refreshing %s %s at epoch %d: %w", c.Table, c.Subtask, c.Epoch, store.ErrClaimLost)
	}
	return kept, nil
}

// RenewRefresh implements refresh.Refreshes.
func (s *RefreshQueue) RenewRefresh(ctx context.Context, c refresh.Claim, life time.Duration) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	kept, err := s.activeClaim(c)
	if err != nil {
		return err
	}
	at := refreshNow()
	kept.HeartbeatAt, kept.ExpiresAt = engine.At(at), engine.At(at.Add(life))
	s.claims[c.Task] = kept
	return nil
}

// AbandonRefresh implements refresh.Refreshes.
func (s *RefreshQueue) AbandonRefresh(ctx context.Context, c refresh.Claim, after time.Duration) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if s.claims[c.Task].Epoch == c.Epoch {
		delete(s.claims, c.Task)
		if p := s.pending[c.Task]; after > 0 {
			p.Due = engine.At(refreshNow().Add(after))
			s.pending[c.Task] = p
		}
		s.notifyLocked()
	}
	return nil
}

// SweepRefreshes implements refresh.Refreshes.
func (s *RefreshQueue) SweepRefreshes(ctx context.Context) (int, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	before := len(s.claims)
	maps.DeleteFunc(s.claims, func(_ refresh.Task, c refresh.Claim) bool { return !c.ExpiresAt.After(refreshNow()) })
	return before - len(s.claims), nil
}

// RefreshHistory implements refresh.Refreshes.
func (s *RefreshQueue) RefreshHistory(ctx context.Context, name string, limit int) ([]refresh.Record, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var found []refresh.Record
	for _, r := range slices.Backward(s.history) {
		if r.Table == name && len(found) < limit {
			found = append(found, r)
		}
	}
	return found, nil
}

// PruneRefreshHistory implements refresh.Refreshes.
func (s *RefreshQueue) PruneRefreshHistory(ctx context.Context, keep int) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	kept := map[string]int{}
	slices.Reverse(s.history)
	s.history = slices.DeleteFunc(s.history, func(r refresh.Record) bool {
		kept[r.Table]++
		return kept[r.Table] > keep
	})
	slices.Reverse(s.history)
	maps.DeleteFunc(
		s.workers,
		func(_ string, w refresh.Worker) bool { return refreshNow().Sub(w.SeenAt.Time) > refresh.WorkerTTL },
	)
	return nil
}

// AwaitRefreshes implements refresh.Refreshes.
func (s *RefreshQueue) AwaitRefreshes(ctx context.Context, told func()) error {
	for {
		if err := s.lock(ctx); err != nil {
			return err
		}
		changed := s.changed
		s.mu.Unlock()
		told()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// findCycle returns the circle that a table with these sources would close, beginning and ending
// with its name, or nil.
func findCycle(name string, sources []string, of map[string][]string) []string {
	seen := map[string]bool{}
	var walk func(at string, path []string) []string
	walk = func(at string, path []string) []string {
		if at == name {
			return append(path, at)
		}
		if seen[at] {
			return nil
		}
		seen[at] = true
		for _, next := range of[at] {
			if found := walk(next, append(path, at)); found != nil {
				return found
			}
		}
		return nil
	}
	for _, source := range sources {
		if found := walk(source, []string{name}); found != nil {
			return found
		}
	}
	return nil
}
