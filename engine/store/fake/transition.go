package fake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// eventRow is an event with its body as it is stored.
type eventRow struct {
	engine.Event
	data []byte
}

// Transition implements writer.Store: everything is checked before anything changes.
func (s *Store) Transition(ctx context.Context, t store.Transition) ([]engine.Event, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r, err := s.find(t.RunID)
	if err != nil {
		return nil, err
	}
	status := r.row.Status
	switch {
	case t.Epoch != 0 && r.row.OwnerEpoch != t.Epoch:
		return nil, fmt.Errorf("changing run: %w (epoch %d, not %d)", store.ErrFenced, r.row.OwnerEpoch, t.Epoch)
	case len(t.From) > 0 && !slices.Contains(t.From, status), t.To != "" && t.To != status && !status.CanBecome(t.To):
		return nil, conflict(fmt.Sprintf("The run is %s and cannot be made %s.", status, cmp.Or(t.To, "another")), "")
	}
	if t.Admission != nil {
		if err := s.admit(r, t.Admission); err != nil {
			return nil, fmt.Errorf("changing run: %w", err)
		}
	}
	if err := checkLevels(t.Logs); err != nil {
		return nil, err
	}
	events, err := r.append(t.Events)
	if err != nil {
		return nil, err
	}
	r.apply(t)
	r.addLogs(t.Logs)
	if t.To.Terminal() {
		clear(r.reservation)
	}
	if t.To != "" {
		r.waiting = nil
	}
	if t.Phase != nil {
		s.Notify()
	}
	if t.Owner != "" {
		r.owner, r.row.Owner = t.Owner, t.Owner
		r.extendLease()
	}
	if t.To.Terminal() || t.To == engine.StatusRunning {
		// The parent's result follows the run, so that no list contradicts itself.
		parent := r.results[t.RunID]
		parent.Status, parent.UpdatedAt = t.To, r.row.UpdatedAt
		put(&parent.StartTime, t.StartTime)
		put(&parent.EndTime, t.EndTime)
	}
	return events, nil
}

// put writes a time that is not zero.
func put(to *engine.Time, at time.Time) {
	if !at.IsZero() {
		*to = engine.At(at.Truncate(time.Microsecond))
	}
}

func (r *run) apply(t store.Transition) {
	row := &r.row
	r.touch()
	row.Status = cmp.Or(t.To, row.Status)
	row.StopReason = cmp.Or(t.StopReason, row.StopReason)
	row.WorkersExpected = cmp.Or(max(t.WorkersExpected, 0), row.WorkersExpected)
	if t.Phase != nil {
		row.Phase = *t.Phase
	}
	if t.CancellationReason != "" {
		reason := store.CleanText(t.CancellationReason)
		row.CancellationReason = &reason
	}
	if t.Rules != nil {
		row.Rules = slices.Clone(t.Rules)
	}
	put(&row.StartTime, t.StartTime)
	put(&row.WarmupStartTime, t.WarmupStartTime)
	put(&row.WarmupEndTime, t.WarmupEndTime)
	put(&row.MeasurementEndTime, t.MeasurementEndTime)
	put(&row.EndTime, t.EndTime)
	maps.Copy(r.targets, copied(t.WorkerTargets))
}

// append adds events, all or none of them.
func (r *run) append(events []engine.Event) ([]engine.Event, error) {
	if len(events) == 0 {
		return nil, nil
	}
	out := make([]engine.Event, len(events))
	rows := make([]eventRow, len(events))
	for i, e := range events {
		if e.Data.Scope == "" {
			e.Data.Scope = engine.ScopeRun
		}
		if err := check(e); err != nil {
			return nil, err
		}
		if e.EventID != "" && slices.ContainsFunc(r.events, func(o eventRow) bool { return o.EventID == e.EventID }) {
			return nil, conflict("An event of the change is there already.", "")
		}
		if e.EventID == "" {
			e.EventID = newID()
		}
		e.RunID, e.SequenceID, e.CreatedAt = r.row.RunID, r.next+int64(i), orNow(e.CreatedAt)
		data, err := document("event", e.Data)
		if err != nil {
			return nil, err
		}
		out[i] = e
		e.Data = engine.EventData{}
		rows[i] = eventRow{e, data}
	}
	r.events = append(r.events, rows...)
	r.next += int64(len(events))
	return out, nil
}

// check refuses events that nobody would understand.
func check(e engine.Event) error {
	refused := func(what string) error {
		return &engine.Error{Code: engine.CodeInvalid, Message: "The control store refused an event: " + what + "."}
	}
	switch e.Type {
	case engine.EventStart, engine.EventStop, engine.EventSetPhase, engine.EventSetWorkerTarget,
		engine.EventLoadChanged:
	default:
		return refused(fmt.Sprintf("%q is no type", e.Type))
	}
	switch e.Data.Scope {
	case engine.ScopeRun:
	case engine.ScopeWorker:
		if e.Data.WorkerID == "" {
			return refused("the run worker is missing")
		}
	case engine.ScopeWorkerGroup:
		if e.Data.WorkerGroupID == nil {
			return refused("the group is missing")
		}
	default:
		return refused(fmt.Sprintf("%q is no scope", e.Data.Scope))
	}
	return nil
}

func viewEvents(rows []eventRow, only ...engine.EventType) (out []engine.Event, err error) {
	for _, row := range rows {
		if e := row.Event; len(only) == 0 || slices.Contains(only, e.Type) {
			if e.Data, err = read[engine.EventData]("event", row.data); err != nil {
				return nil, err
			}
			out = append(out, e)
		}
	}
	return out, nil
}

// eventsAfter are the events that follow a sequence id: those begin at 1 and have no gaps.
func (r *run) eventsAfter(sequence int64) []eventRow {
	return r.events[min(max(int(sequence), 0), len(r.events)):]
}

// Events implements writer.Store.
func (s *Store) Events(ctx context.Context, runID string, after int64, only ...engine.EventType) ([]engine.Event,
	error) {
	return of(ctx, s, runID, func(r *run) ([]engine.Event, error) { return viewEvents(r.eventsAfter(after), only...) })
}

// EventPage implements query.Store.
func (s *Store) EventPage(ctx context.Context, runID string, after int64, limit int) (page []engine.Event, total int64,
	err error) {
	page, err = of(ctx, s, runID, func(r *run) ([]engine.Event, error) {
		total = int64(len(r.events))
		return viewEvents(first(limit, r.eventsAfter(after)))
	})
	return page, total, err
}

// first are so many elements of a list; limit ≤ 0 means 50.
func first[T any](limit int, list []T) []T {
	if limit <= 0 {
		limit = defaultPage
	}
	return list[:min(limit, len(list))]
}
