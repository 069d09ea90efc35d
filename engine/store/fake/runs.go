package fake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
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
	logs      map[int64]engine.LogEntry
	search    []byte
	steps     map[int][]byte
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

// CreateRun implements run.ControlStore. It knows no template.
func (s *Store) CreateRun(ctx context.Context, r engine.Run) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	text, err := document("scenario", r.Scenario)
	if err != nil {
		return err
	}
	switch {
	case r.RunID == "":
		return unnamed("run")
	case s.runs[r.RunID] != nil:
		return fmt.Errorf("creating run: %w", store.ErrConflict)
	}
	row := engine.Run{RunID: r.RunID, ResultID: r.RunID, RunName: r.RunName,
		Status: engine.StatusPrepared, Phase: engine.PhasePreparing, WorkersExpected: r.WorkersExpected,
		CreatedBy:    r.CreatedBy,
		CreatedByID:  r.CreatedByID,
		MatrixMember: r.MatrixMember, OwnerEpoch: r.OwnerEpoch, CreatedAt: orNow(r.CreatedAt), UpdatedAt: engine.At(now())}
	row.MatrixLabel = store.CleanText(r.MatrixLabel)
	parent := &result{RunResult: engine.RunResult{ResultID: r.RunID, RunID: r.RunID, RunName: r.RunName,
		Status:    engine.StatusPrepared,
		CreatedAt: row.UpdatedAt, UpdatedAt: row.UpdatedAt}}
	s.runs[r.RunID] = &run{row: row, scenario: text, targets: copied(r.WorkerTargets), next: 1,
		workers: map[string]store.WorkerRow{}, points: map[int64]pointRow{},
		logs: map[int64]engine.LogEntry{}, reservation: map[string]engine.Reservation{},
		steps: map[int][]byte{}, results: map[string]*result{r.RunID: parent},
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

// Run implements writer.Store.
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

// LiveRuns implements recovery.Store.
func (s *Store) LiveRuns(ctx context.Context) ([]engine.Run, error) {
	return s.selectRuns(ctx, (*run).live)
}

// ExpiredRuns implements recovery.Store.
func (s *Store) ExpiredRuns(ctx context.Context) ([]engine.Run, error) {
	return s.selectRuns(ctx, func(r *run) bool { return r.live() && r.expires().Before(now()) })
}

// Claim implements recovery.Store.
func (s *Store) Claim(ctx context.Context, c store.Claim) (int64, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	r, err := s.find(c.RunID)
	if err != nil {
		return 0, err
	}
	unheard := slices.ContainsFunc(s.runCommands, func(w store.RunCommand) bool {
		return c.Command != 0 && w.Seq == c.Command && w.RunID == c.RunID && w.HeardBy == c.Owner && w.AckedBy == ""
	})
	if own := c.Reclaim && r.owner == c.Owner; !own && !unheard && !r.expires().Before(now()) {
		return 0, fmt.Errorf("claiming the run: %w", store.ErrLeaseHeld)
	}
	r.owner, r.row.Owner = c.Owner, c.Owner
	r.extendLease()
	r.touch()
	r.row.OwnerEpoch++
	return r.row.OwnerEpoch, nil
}

// RenewLeases implements recovery.Store.
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

// TakeOver implements storetest.Store.
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

// DeleteRun implements run.ControlStore.
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
	s.RunDeleted(runID)
	return nil
}

const defaultPage = 50

// Workers implements recovery.Store; rows are ordered by group.
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
