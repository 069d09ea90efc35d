package fake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/template"
	"github.com/loadstone-db/loadstone/engine/store"
)

// run is a row of run_status with everything that goes with it.
type run struct {
	row      engine.Run // without its scenario and its targets
	scenario []byte
	targets  map[string]engine.WorkerTarget

	owner string
	lease time.Time // its end; zero: that of the last change
	next  int64     // sequence id

	// reservation is what its run workers hold on nodes, by their ids; waiting is its place in the queue.
	reservation map[string]engine.Reservation
	waiting     *queuedRun

	events    []eventRow
	workers   map[string]store.WorkerRow
	points    map[int64]pointRow // by microsecond
	beats     map[beat]workerPoint
	logs      map[int64]engine.LogEntry
	search    []byte
	steps     map[int][]byte
	warehouse map[int64]engine.WarehousePoint // by microsecond
	results   map[string]*result
	artifacts map[string]engine.Artifact
}

// live is what LiveRuns lists.
func (r *run) live() bool { return r.row.Status.Live() || r.row.Phase == engine.PhaseProcessing }

func (r *run) expires() time.Time {
	if r.lease.IsZero() {
		return r.row.UpdatedAt.Add(store.LeaseDuration)
	}
	return r.lease
}

// extendLease prolongs the lease.
func (r *run) extendLease() { r.lease = now().Add(store.LeaseDuration) }

func (r *run) touch() { r.row.UpdatedAt = engine.At(now()) }

// view is the run as it is returned.
func (r *run) view() (engine.Run, error) {
	out := r.row
	out.WorkerTargets = copied(r.targets)
	if c := r.row.CancellationReason; c != nil {
		text := *c
		out.CancellationReason = &text
	}
	var err error
	out.Scenario, err = read[engine.Scenario]("scenario", r.scenario)
	return out, err
}

// copied copies targets with the rates that they point to.
func copied(targets map[string]engine.WorkerTarget) map[string]engine.WorkerTarget {
	out := map[string]engine.WorkerTarget{}
	for id, t := range targets {
		if t.TargetQPS != nil {
			rate := *t.TargetQPS
			t.TargetQPS = &rate
		}
		out[id] = t
	}
	return out
}

// CreateRun implements store.Runs. A TemplateID that names no template is left out.
func (s *Store) CreateRun(ctx context.Context, r engine.Run) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	scenario := r.Scenario
	var err error
	scenario = scenario.Clone()
	if err := template.SealRules(&scenario, nil, s.sealURL); err != nil {
		return err
	}
	if scenario.Target.Connection, err = s.seal(scenario.Target.Connection, nil, "target.connection"); err != nil {
		return err
	}
	text, err := document("scenario", scenario)
	if err != nil {
		return err
	}
	switch {
	case r.RunID == "":
		return unnamed("run")
	case s.runs[r.RunID] != nil:
		return fmt.Errorf("creating run: %w", store.ErrConflict)
	case r.MatrixID != "" && s.matrices[r.MatrixID] == nil:
		return notFound("matrix", r.MatrixID)
	}
	if s.templates[r.TemplateID] == nil {
		r.TemplateID = ""
	}
	row := engine.Run{RunID: r.RunID, ResultID: r.RunID, TemplateID: r.TemplateID, RunName: r.RunName,
		Status: engine.StatusPrepared, Phase: engine.PhasePreparing, WorkersExpected: r.WorkersExpected,
		CreatedBy:    r.CreatedBy,
		MatrixMember: r.MatrixMember, OwnerEpoch: r.OwnerEpoch, CreatedAt: orNow(r.CreatedAt), UpdatedAt: engine.At(now())}
	row.MatrixLabel = store.CleanText(r.MatrixLabel)
	parent := &result{RunResult: engine.RunResult{ResultID: r.RunID, RunID: r.RunID, RunName: r.RunName,
		Status:    engine.StatusPrepared,
		CreatedAt: row.UpdatedAt, UpdatedAt: row.UpdatedAt}}
	s.runs[r.RunID] = &run{row: row, scenario: text, targets: copied(r.WorkerTargets), next: 1,
		workers: map[string]store.WorkerRow{}, points: map[int64]pointRow{}, beats: map[beat]workerPoint{},
		logs: map[int64]engine.LogEntry{}, reservation: map[string]engine.Reservation{},
		steps: map[int][]byte{}, warehouse: map[int64]engine.WarehousePoint{}, results: map[string]*result{r.RunID: parent},
		artifacts: map[string]engine.Artifact{}}
	return nil
}

// find returns a run, or a user-facing store.ErrNotFound.
func (s *Store) find(runID string) (*run, error) {
	if r := s.runs[runID]; r != nil {
		return r, nil
	}
	return nil, notFound("run", runID)
}

// fenced returns a run that a writer of this epoch owns.
func (s *Store) fenced(runID string, epoch int64) (*run, error) {
	r, err := s.find(runID)
	if err == nil && r.row.OwnerEpoch != epoch {
		return nil, fmt.Errorf("run %s is owned at epoch %d, not %d: %w", runID, r.row.OwnerEpoch, epoch, store.ErrFenced)
	}
	return r, err
}

// written returns a run that a writer of this epoch owns, or with 0 who needs not own it.
func (s *Store) written(runID string, epoch int64) (*run, error) {
	if epoch == 0 {
		return s.find(runID)
	}
	return s.fenced(runID, epoch)
}

// Run implements store.Runs.
func (s *Store) Run(ctx context.Context, runID string) (engine.Run, error) {
	if err := s.lock(ctx); err != nil {
		return engine.Run{}, err
	}
	defer s.mu.Unlock()
	r, err := s.find(runID)
	if err != nil {
		return engine.Run{}, err
	}
	return r.view()
}

// oldest orders runs as LiveRuns does.
func oldest(a, b *run) int {
	return cmp.Or(earlier(a.row.CreatedAt, b.row.CreatedAt), strings.Compare(a.row.RunID, b.row.RunID))
}

func (s *Store) selectRuns(ctx context.Context, those func(*run) bool) ([]engine.Run, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []engine.Run
	for _, r := range sorted(s.runs, oldest) {
		if !those(r) {
			continue
		}
		shown, err := r.view()
		if err != nil {
			return nil, err
		}
		out = append(out, shown)
	}
	return out, nil
}

// LiveRuns implements store.Runs.
func (s *Store) LiveRuns(ctx context.Context) ([]engine.Run, error) {
	return s.selectRuns(ctx, (*run).live)
}

// ExpiredRuns implements store.Runs.
func (s *Store) ExpiredRuns(ctx context.Context) ([]engine.Run, error) {
	return s.selectRuns(ctx, func(r *run) bool { return r.live() && r.expires().Before(now()) })
}

// Claim implements store.Runs.
func (s *Store) Claim(ctx context.Context, c store.Claim) (int64, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	r, err := s.find(c.RunID)
	if err != nil {
		return 0, err
	}
	if own := c.Reclaim && r.owner == c.Owner; !own && !r.expires().Before(now()) {
		return 0, fmt.Errorf("claiming the run: %w", store.ErrLeaseHeld)
	}
	r.owner, r.row.Owner = c.Owner, c.Owner
	r.extendLease()
	r.touch()
	r.row.OwnerEpoch++
	return r.row.OwnerEpoch, nil
}

// RenewLeases implements store.Runs.
func (s *Store) RenewLeases(ctx context.Context, owner string, runIDs []string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if r.owner == owner && slices.Contains(runIDs, r.row.RunID) {
			r.extendLease()
		}
	}
	return nil
}

// TakeOver implements store.Runs.
func (s *Store) TakeOver(ctx context.Context, runID string) (int64, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	r, err := s.find(runID)
	if err != nil {
		return 0, err
	}
	r.touch()
	r.row.OwnerEpoch++
	return r.row.OwnerEpoch, nil
}

// DeleteRun implements store.Runs.
func (s *Store) DeleteRun(ctx context.Context, runID string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, err := s.find(runID)
	if err != nil {
		return err
	}
	if r.row.Status.Live() {
		return conflict(fmt.Sprintf("The run is %s and cannot be deleted.", r.row.Status), "Stop it first.")
	}
	delete(s.runs, runID)
	s.QueueRun(runID, true, 0)
	s.RunDeleted(runID)
	return nil
}

const (
	defaultPage = 50
	maxPage     = 500
)

// ListRuns implements store.Runs. A page has at most 500 runs.
func (s *Store) ListRuns(ctx context.Context, f store.RunFilter) (store.RunList, error) {
	if err := s.lock(ctx); err != nil {
		return store.RunList{}, err
	}
	defer s.mu.Unlock()
	list := store.RunList{Runs: []store.RunRow{}}
	if f.Limit <= 0 {
		f.Limit = defaultPage
	}
	f.Limit = min(f.Limit, maxPage)
	if f.Sorted() {
		return s.sortedRuns(f)
	}
	after, err := parseCursor(f.Cursor)
	if err != nil {
		return list, err
	}
	for _, r := range sorted(s.runs, func(a, b *run) int { return oldest(b, a) }) {
		row, err := r.inList()
		if err != nil {
			return list, err
		}
		if !matches(row, f) {
			continue
		}
		list.Total++
		at := cursor{r.row.CreatedAt.UnixMicro(), r.row.RunID}
		switch {
		case f.Cursor != "" && at.compare(after) >= 0:
		case len(list.Runs) < f.Limit:
			list.Runs = append(list.Runs, row)
		case list.NextCursor == "":
			last := list.Runs[f.Limit-1]
			list.NextCursor = cursor{last.CreatedAt.UnixMicro(), last.RunID}.String()
		}
	}
	return list, nil
}

// sortedRuns is ListRuns in another order than newest first.
func (s *Store) sortedRuns(f store.RunFilter) (store.RunList, error) {
	list := store.RunList{Runs: []store.RunRow{}}
	from, err := store.Offset(f.Cursor)
	if err != nil {
		return list, err
	}
	for _, r := range sorted(s.runs, func(a, b *run) int { return oldest(b, a) }) {
		row, err := r.inList()
		if err != nil {
			return list, err
		}
		if matches(row, f) {
			list.Runs = append(list.Runs, row)
		}
	}
	list.Total = int64(len(list.Runs))
	slices.SortStableFunc(list.Runs, f.Compare)
	list.Runs = list.Runs[min(from, len(list.Runs)):]
	if len(list.Runs) > f.Limit {
		list.Runs, list.NextCursor = list.Runs[:f.Limit], store.OffsetCursor(from+f.Limit)
	}
	return list, nil
}

func matches(r store.RunRow, f store.RunFilter) bool {
	switch {
	case f.Passed == nil:
	case *f.Passed:
		if r.Passed == nil || !*r.Passed {
			return false
		}
	case r.FailedThresholds == 0:
		return false
	}
	for k, v := range f.Tag {
		if have, ok := r.Scenario.Tags[k]; !ok || have != v {
			return false
		}
	}
	return (len(f.Statuses) == 0 || slices.Contains(f.Statuses, r.Status)) &&
		(f.TemplateID == "" || r.TemplateID == f.TemplateID) &&
		(f.Connection == "" || r.Scenario.Target.Connection.Name == f.Connection) &&
		strings.Contains(strings.ToLower(r.RunName), strings.ToLower(f.Search)) &&
		(f.Since.IsZero() || !r.CreatedAt.Before(f.Since)) && (f.Until.IsZero() || r.CreatedAt.Before(f.Until))
}

// inList is the run as lists show it: without what of its scenario may be large.
func (r *run) inList() (row store.RunRow, err error) {
	if row.Run, err = r.view(); err != nil {
		return row, err
	}
	sc := &row.Scenario
	sc.Workload.Feed, sc.Workload.Params, sc.Target.Params, sc.Matrix = nil, nil, nil, nil
	parent, err := r.results[r.row.RunID].view()
	if err != nil {
		return row, err
	}
	row.Passed = parent.Passed
	for _, t := range parent.Thresholds {
		if !t.Passed {
			row.FailedThresholds++
		}
	}
	if f := parent.Figures; f != nil {
		row.MeasuredSeconds = &f.DurationSeconds
		if f.HasRates() {
			row.QPS = &f.QPS
		}
		if l := f.LatencyMs; l != nil {
			row.P50Ms, row.P95Ms, row.P99Ms = &l.P50, &l.P95, &l.P99
		}
		if f.Operations > 0 {
			row.ErrorRate = &f.Errors.Rate
		}
	}
	if parent.Validity != nil {
		row.Verdict = &parent.Validity.Verdict
	}
	if e := parent.Environment; e != nil {
		row.Simulated, row.Emulated = e.Simulated, e.Emulated
	}
	return row, nil
}

// cursor is a position in the list of runs, newest first.
type cursor struct {
	at int64 // microseconds
	id string
}

func (c cursor) String() string { return fmt.Sprintf("%d-%s", c.at, c.id) }

func (c cursor) compare(o cursor) int {
	return cmp.Or(cmp.Compare(c.at, o.at), strings.Compare(c.id, o.id))
}

func parseCursor(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	at, id, found := strings.Cut(text, "-")
	if c.at, err = strconv.ParseInt(at, 10, 64); err != nil || !found {
		return c, engine.InvalidField("cursor", "this is not a cursor of an earlier page", "leave it out for the first page")
	}
	c.id = id
	return c, nil
}

// Workers implements store.Runs; rows are ordered by group.
func (s *Store) Workers(ctx context.Context, runID string) ([]store.WorkerRow, error) {
	return of(ctx, s, runID, func(r *run) ([]store.WorkerRow, error) {
		return slices.SortedFunc(maps.Values(r.workers), func(a, b store.WorkerRow) int {
			return cmp.Or(cmp.Compare(a.WorkerGroupID, b.WorkerGroupID), strings.Compare(a.WorkerID, b.WorkerID))
		}), nil
	})
}

// of reads a list of a run; a run that is not there has none.
func of[T any](ctx context.Context, s *Store, runID string, list func(*run) ([]T, error)) ([]T, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r := s.runs[runID]
	if r == nil {
		return nil, nil
	}
	return list(r)
}

// TagRun implements store.RunArtifacts.
func (s *Store) TagRun(ctx context.Context, runID string, tags, was map[string]string) error {
	if err := store.CheckTags(tags); err != nil {
		return err
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, err := s.find(runID)
	switch {
	case err != nil:
		return err
	case r.live():
		return store.LiveRunTagsError()
	}
	scenario, err := read[engine.Scenario]("scenario", r.scenario)
	switch {
	case err != nil:
		return err
	case was != nil && !maps.Equal(scenario.Tags, was):
		return store.TagsChangedError()
	}
	scenario.Tags = tags
	if r.scenario, err = document("scenario", scenario); err == nil {
		r.touch()
	}
	return err
}
