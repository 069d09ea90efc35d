package fake

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
)

// ReleaseRefreshes implements refresh.Refreshes.
func (s *RefreshQueue) ReleaseRefreshes(
	ctx context.Context,
	ended []refresh.Completion,
) (lost []refresh.Claim, err error) {
	for _, e := range ended {
		err := s.ReleaseRefresh(ctx, e.Claim, e.Result)
		if errors.Is(err, store.ErrClaimLost) {
			lost = append(lost, e.Claim)
		} else if err != nil {
			return nil, err
		}
	}
	return lost, nil
}

// ReleaseRefresh implements refresh.Refreshes.
func (s *RefreshQueue) ReleaseRefresh(ctx context.Context, c refresh.Claim, r refresh.Result) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	kept, err := s.activeClaim(c)
	if err != nil {
		return err
	}
	delete(s.claims, c.Task)
	t, at := s.tables[c.Table], refreshNow()
	if len(r.Parts) > 0 {
		s.divide(kept, r, at)
		return nil
	}
	record := refresh.Record{Seq: c.Epoch, Task: c.Task, Worker: kept.Worker, Epoch: c.Epoch, StartedAt: kept.ClaimedAt,
		EndedAt: engine.At(at), Mode: r.Mode, Note: store.CleanText(r.Note), Rows: r.Rows, Bytes: r.Bytes,
		Error: store.CleanText(r.Error)}
	if r.Error != "" {
		s.markFailed(t, kept, r, at)
		s.history = append(s.history, record)
		return nil
	}
	oldest := s.pending[c.Task].enqueued
	if waited := kept.ClaimedAt.Sub(s.pending[c.Task].Due.Time).Seconds(); c.Subtask == "" {
		t.WaitSeconds = max(waited, t.WaitSeconds*refresh.WaitDecay, 0)
	}
	delete(s.pending, c.Task)
	if !r.Unchanged {
		s.notifyDependents(c.Table, at)
	}
	switch {
	case c.Subtask == "":
		if !t.BehindSince.IsZero() {
			oldest = t.BehindSince.Time
		}
		s.markRefreshed(t, kept, at)
	case r.Gone:
		delete(s.subtasks, c.Task)
	default:
		s.subtasks[c.Task] = subtask{asOf: s.asOf(kept), done: true}
	}
	s.requeueTable(c, at)
	if !r.Unchanged {
		lag := at.Sub(oldest).Seconds()
		record.LagSeconds = &lag
	}
	s.history = append(s.history, record)
	return nil
}

// notifyDependents says to the tables that read one that it has changed.
func (s *RefreshQueue) notifyDependents(table string, at time.Time) {
	for _, name := range s.dependents(table) {
		reader := s.tables[name]
		reader.ChangedAt = engine.At(at)
		if reader.BehindSince.IsZero() {
			reader.BehindSince = reader.ChangedAt
		}
	}
}

// markRefreshed notes that all of a table is as of when it was claimed, or its first part.
func (s *RefreshQueue) markRefreshed(t *refresh.Table, c refresh.Claim, at time.Time) {
	begun := c.ClaimedAt
	for task, sub := range s.subtasks {
		if task.Table == t.Name {
			if !sub.asOf.IsZero() && sub.asOf.Before(begun.Time) {
				begun = engine.At(sub.asOf)
			}
			delete(s.subtasks, task)
		}
	}
	t.AsOf, t.BehindSince, t.Failures, t.Error = begun, engine.Time{}, 0, ""
	if t.UpdatedAt.After(begun.Time) {
		t.AsOf = engine.Time{}
	}
	if t.ChangedAt.After(begun.Time) {
		t.BehindSince = t.ChangedAt
	}
	t.LastSeconds = at.Sub(begun.Time).Seconds()
}

// asOf is when what a claim of a subtask has read was settled: when it was claimed, or all of its table was divided.
func (s *RefreshQueue) asOf(c refresh.Claim) time.Time {
	before := s.subtasks[c.Task].asOf
	if _, divided := s.pending[refresh.Task{Table: c.Table}]; divided && !before.IsZero() &&
		before.Before(c.ClaimedAt.Time) {
		return before
	}
	return c.ClaimedAt.Time
}

// divide puts the parts of a table into the queue. All of it is due again when the last is done.
func (s *RefreshQueue) divide(c refresh.Claim, r refresh.Result, at time.Time) {
	table := c.Table
	if r.ReplaceParts {
		part := func(t refresh.Task) bool { return t.Table == table && t.Subtask != "" }
		maps.DeleteFunc(s.pending, func(t refresh.Task, _ pending) bool { return part(t) })
		maps.DeleteFunc(s.claims, func(t refresh.Task, _ refresh.Claim) bool { return part(t) })
		maps.DeleteFunc(s.subtasks, func(t refresh.Task, _ subtask) bool { return part(t) })
	}
	settled := c.ClaimedAt
	if t := s.tables[table]; !r.ReplaceParts && !t.ChangedAt.IsZero() && !t.ChangedAt.After(settled.Time) {
		// Of a division whose own claim could not say so any more nobody knows whether it has the last change.
		settled = engine.At(t.ChangedAt.Add(-time.Microsecond))
	}
	whole := s.pending[refresh.Task{Table: table}]
	for _, part := range r.Parts {
		task := refresh.Task{Table: table, Subtask: part}
		s.subtasks[task] = subtask{asOf: s.asOf(refresh.Claim{Task: task, ClaimedAt: settled}),
			failures: s.subtasks[task].failures}
		if _, there := s.pending[task]; !there {
			s.pending[task] = pending{refresh.Pending{Task: task, Priority: whole.Priority, Due: engine.At(at)}, at}
		}
	}
	whole.Due = engine.At(at.Add(time.Hour))
	s.pending[whole.Task] = whole
	s.notifyLocked()
}

// requeueTable makes a table due whose last part is done.
func (s *RefreshQueue) requeueTable(c refresh.Claim, at time.Time) {
	all, there := s.pending[refresh.Task{Table: c.Table}]
	if c.Subtask == "" || !there {
		return
	}
	for task, sub := range s.subtasks {
		if task.Table == c.Table && !sub.done {
			return
		}
	}
	all.Due = engine.At(at)
	s.pending[all.Task] = all
}

// markFailed notes a refresh that has failed.
func (s *RefreshQueue) markFailed(t *refresh.Table, c refresh.Claim, r refresh.Result, at time.Time) {
	var failures int
	if c.Subtask == "" {
		t.Failures++
		t.Error, failures = store.CleanText(r.Error), t.Failures
	} else {
		failures = s.subtasks[c.Task].failures + 1
		_, over := refresh.AfterFailure(failures)
		s.subtasks[c.Task] = subtask{asOf: s.asOf(c), failures: failures, abandoned: over, error: store.CleanText(r.Error),
			failedAt: at}
	}
	pause, over := refresh.AfterFailure(failures)
	if !over {
		p := s.pending[c.Task]
		p.Due = engine.At(at.Add(pause))
		s.pending[c.Task] = p
		return
	}
	delete(s.pending, c.Task)
	if _, divided := s.pending[refresh.Task{Table: c.Table}]; c.Subtask != "" && divided {
		// Without one of its parts nothing can be put in place of the table. What others hold they finish.
		maps.DeleteFunc(s.pending, func(task refresh.Task, _ pending) bool {
			_, claimed := s.claims[task]
			return task.Table == c.Table && !claimed
		})
		t.Failures, t.Error = failures, "Part "+c.Subtask+": "+store.CleanText(r.Error)
	} else if c.Subtask != "" {
		return
	}
	if t.Status == refresh.Active {
		t.Status = refresh.Failed
	}
}
