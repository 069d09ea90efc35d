// This part keeps the marks of runs in memory.

package fake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Marks implements store.Marks. There reports whether there is a run.
type Marks struct {
	RunExists func(runID string) bool

	mu    sync.Mutex
	marks map[string][]engine.Mark
}

func (s *Marks) lock(ctx context.Context, runID string) (there bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("asking the control store: %w", err)
	}
	there = s.RunExists(runID)
	s.mu.Lock()
	if s.marks == nil {
		s.marks = map[string][]engine.Mark{}
	}
	if !there {
		delete(s.marks, runID) // they go with their run
	}
	return there, nil
}

// ListMarks implements store.Marks.
func (s *Marks) ListMarks(ctx context.Context, runID string) ([]engine.Mark, error) {
	if _, err := s.lock(ctx, runID); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	list := slices.Clone(s.marks[runID])
	slices.SortFunc(list, func(a, b engine.Mark) int {
		return cmp.Or(a.At.Compare(b.At.Time), cmp.Compare(a.MarkID, b.MarkID))
	})
	return list, nil
}

// AddMark implements store.Marks.
func (s *Marks) AddMark(ctx context.Context, m engine.Mark) (engine.Mark, error) {
	m, err := store.CheckMark(m)
	if err != nil {
		return m, err
	}
	there, err := s.lock(ctx, m.RunID)
	if err != nil {
		return m, err
	}
	defer s.mu.Unlock()
	switch {
	case !there:
		return m, fmt.Errorf("run %s: %w", m.RunID, store.ErrNotFound)
	case len(s.marks[m.RunID]) >= store.MaxMarks:
		return m, store.TooManyMarks()
	}
	now := engine.At(time.Now())
	m.MarkID, m.MadeAt, m.ChangedBy, m.ChangedAt = uuid.NewString(), now, m.MadeBy, now
	s.marks[m.RunID] = append(s.marks[m.RunID], m)
	return m, nil
}

// ChangeMark implements store.Marks.
func (s *Marks) ChangeMark(
	ctx context.Context,
	m engine.Mark,
	was *store.ExpectedMark,
) (now, before engine.Mark, err error) {
	if m, err = store.CheckMark(m); err != nil {
		return m, before, err
	}
	if _, err := s.lock(ctx, m.RunID); err != nil {
		return m, before, err
	}
	defer s.mu.Unlock()
	i := s.index(m.RunID, m.MarkID)
	if i < 0 {
		return m, before, fmt.Errorf("mark %s: %w", m.MarkID, store.ErrNotFound)
	}
	kept := &s.marks[m.RunID][i]
	before = *kept
	if err := was.Check(before); err != nil {
		return m, before, err
	}
	kept.At, kept.Text, kept.ChangedBy, kept.ChangedAt = m.At, m.Text, m.ChangedBy, engine.At(time.Now())
	return *kept, before, nil
}

// DeleteMark implements store.Marks.
func (s *Marks) DeleteMark(
	ctx context.Context,
	runID, markID string,
	was *store.ExpectedMark,
) (gone engine.Mark, err error) {
	if _, err := s.lock(ctx, runID); err != nil {
		return gone, err
	}
	defer s.mu.Unlock()
	i := s.index(runID, markID)
	if i < 0 {
		return gone, fmt.Errorf("mark %s: %w", markID, store.ErrNotFound)
	}
	gone = s.marks[runID][i]
	if err := was.Check(gone); err != nil {
		return gone, err
	}
	s.marks[runID] = slices.Delete(s.marks[runID], i, i+1)
	return gone, nil
}

func (s *Marks) index(runID, markID string) int {
	return slices.IndexFunc(s.marks[runID], func(m engine.Mark) bool { return m.MarkID == markID })
}
