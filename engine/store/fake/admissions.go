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
	"github.com/loadstone-db/loadstone/engine/cluster/placement"
	"github.com/loadstone-db/loadstone/engine/store"
)

// queuedRun is a row of the queue.
type queuedRun struct {
	store.QueuedRun
	place      int64
	feasibleAt time.Time
}

// reserved is what all runs hold.
func (s *Store) reserved() (all []engine.Reservation) {
	for _, r := range s.runs {
		all = slices.AppendSeq(all, maps.Values(r.reservation))
	}
	slices.SortFunc(all, func(a, b engine.Reservation) int {
		return cmp.Or(strings.Compare(a.RunID, b.RunID), strings.Compare(a.WorkerID, b.WorkerID))
	})
	return all
}

// admit takes room for the start of a run, unless another of its pool waits before it.
func (s *Store) admit(r *run, a *store.Admission) error {
	pool := placement.Pool(a.Demands)
	for _, other := range s.runs {
		w := other.waiting
		if w != nil && other != r && w.Pool == pool && (r.waiting == nil || w.place < r.waiting.place) &&
			now().Sub(w.feasibleAt) < placement.BypassAfter {
			return store.ErrNoCapacity
		}
	}
	return s.reserve(r, a, s.reserved())
}

// reserve takes room where there is some beside what is held.
func (s *Store) reserve(r *run, a *store.Admission, held []engine.Reservation) error {
	a.On = placement.Assign(placement.WithReservations(a.Nodes, held, ""), r.row.RunID, a.Demands)
	if a.On == nil {
		return store.ErrNoCapacity
	}
	for _, w := range a.Demands {
		r.reservation[w.ID] = engine.Reservation{
			RunID:       r.row.RunID,
			WorkerID:    w.ID,
			NodeID:      a.On[w.ID],
			Connections: w.Connections,
		}
	}
	return nil
}

// Enqueue implements admission.Store.
func (s *Store) Enqueue(ctx context.Context, w store.QueuedRun) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, err := s.find(w.RunID)
	if err != nil {
		return err
	}
	if r.row.Status != engine.StatusPrepared {
		return conflict(fmt.Sprintf("The run is %s and waits for nothing.", r.row.Status), "")
	}
	if r.waiting == nil {
		w.Demands, w.By, w.Since = slices.Clone(w.Demands), store.CleanText(w.By), engine.At(now())
		r.waiting = &queuedRun{w, s.next(), now()}
	}
	return nil
}

// Ledger implements admission.Store.
func (s *Store) Ledger(ctx context.Context) (l store.Ledger, err error) {
	if err := s.lock(ctx); err != nil {
		return l, err
	}
	defer s.mu.Unlock()
	l.Reserved = s.reserved()
	waits := slices.DeleteFunc(slices.Collect(maps.Values(s.runs)), func(r *run) bool { return r.waiting == nil })
	slices.SortFunc(waits, func(a, b *run) int { return cmp.Compare(a.waiting.place, b.waiting.place) })
	for _, r := range waits {
		w := r.waiting.QueuedRun
		w.RunName, w.Demands, w.Unfit = r.row.RunName, slices.Clone(w.Demands), now().Sub(r.waiting.feasibleAt)
		l.Queued = append(l.Queued, w)
	}
	return l, nil
}

// MarkFeasible implements admission.Store.
func (s *Store) MarkFeasible(ctx context.Context, runIDs []string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, id := range runIDs {
		if r := s.runs[id]; r != nil && r.waiting != nil {
			r.waiting.feasibleAt = now()
		}
	}
	return nil
}

// Reserve implements admission.Store.
func (s *Store) Reserve(ctx context.Context, runID string, epoch int64, a *store.Admission) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, err := s.fencedLive(runID, epoch)
	if err != nil {
		return err
	}
	moving := map[string]bool{}
	for _, w := range a.Demands {
		moving[w.ID] = true
	}
	held := slices.DeleteFunc(
		s.reserved(),
		func(h engine.Reservation) bool { return h.RunID == runID && moving[h.WorkerID] },
	)
	if err := s.reserve(r, a, held); err != nil {
		return fmt.Errorf("reserving room: %w", err)
	}
	return nil
}

// SetReservations implements admission.Store.
func (s *Store) SetReservations(ctx context.Context, runID string, epoch int64, held []engine.Reservation) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, err := s.fencedLive(runID, epoch)
	if err != nil {
		return err
	}
	for _, h := range held {
		if h.RunID = runID; h.NodeID == "" {
			delete(r.reservation, h.WorkerID)
		} else {
			r.reservation[h.WorkerID] = h
		}
	}
	return nil
}

// fencedLive is a live run that a writer of this epoch owns: one that is over holds nothing.
func (s *Store) fencedLive(runID string, epoch int64) (*run, error) {
	r, err := s.fenced(runID, epoch)
	if err == nil && !r.row.Status.Live() {
		return nil, conflict(fmt.Sprintf("The run is %s and holds nothing.", r.row.Status), "")
	}
	return r, err
}
