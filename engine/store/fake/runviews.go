// This part keeps users' views of runs in memory, a part of the store there.

package fake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// RunViewStore implements store.RunViews, whoever there is. Its zero value has none. It is safe for concurrent use.
type RunViewStore struct {
	mu   sync.Mutex
	byID map[string]store.RunView
}

var _ store.RunViews = (*RunViewStore)(nil)

func (s *RunViewStore) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("asking the control store: %w", err)
	}
	s.mu.Lock()
	if s.byID == nil {
		s.byID = map[string]store.RunView{}
	}
	return nil
}

func viewNow() engine.Time { return engine.At(time.Now().UTC().Truncate(time.Microsecond)) }

func viewNotFound(id string) error {
	return &engine.Error{Code: engine.CodeNotFound, Cause: store.ErrNotFound,
		Message: fmt.Sprintf("There is no view %q.", id)}
}

// RunViews implements store.RunViews.
func (s *RunViewStore) RunViews(ctx context.Context, userID string) ([]store.RunView, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	list := slices.DeleteFunc(slices.Collect(maps.Values(s.byID)), func(v store.RunView) bool {
		return !v.Shared && v.OwnerID != userID
	})
	slices.SortFunc(list, func(a, b store.RunView) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.ViewID, b.ViewID))
	})
	return list, nil
}

// RunView implements store.RunViews.
func (s *RunViewStore) RunView(ctx context.Context, viewID string) (store.RunView, error) {
	if err := s.lock(ctx); err != nil {
		return store.RunView{}, err
	}
	defer s.mu.Unlock()
	v, there := s.byID[viewID]
	if !there {
		return v, viewNotFound(viewID)
	}
	return v, nil
}

// nameTaken reports whether the owner of a view has another one of its name.
func (s *RunViewStore) nameTaken(v store.RunView) bool {
	for _, o := range s.byID {
		if o.OwnerID == v.OwnerID && v.OwnerID != "" && o.Name == v.Name && o.ViewID != v.ViewID {
			return true
		}
	}
	return false
}

// AddRunView implements store.RunViews.
func (s *RunViewStore) AddRunView(ctx context.Context, v store.RunView) (store.RunView, error) {
	if err := store.CheckRunView(v); err != nil {
		return v, err
	}
	if err := s.lock(ctx); err != nil {
		return v, err
	}
	defer s.mu.Unlock()
	v.ViewID = uuid.NewString()
	kept := 0
	for _, o := range s.byID {
		if o.OwnerID == v.OwnerID {
			kept++
		}
	}
	switch {
	case s.nameTaken(v):
		return v, store.NameTaken("view", v.Name)
	case kept >= store.MaxRunViews:
		return v, store.TooManyRunViews()
	}
	v.Owner, v.UpdatedBy = store.CleanText(v.Owner), store.CleanText(v.UpdatedBy)
	v.Version, v.CreatedAt = 1, viewNow()
	v.UpdatedAt = v.CreatedAt
	s.byID[v.ViewID] = v
	return v, nil
}

// ChangeRunView implements store.RunViews.
func (s *RunViewStore) ChangeRunView(ctx context.Context, v store.RunView) (store.RunView, error) {
	if err := store.CheckRunView(v); err != nil {
		return v, err
	}
	if err := s.lock(ctx); err != nil {
		return v, err
	}
	defer s.mu.Unlock()
	old, there := s.byID[v.ViewID]
	switch {
	case !there:
		return v, viewNotFound(v.ViewID)
	case old.Version != v.Version:
		return v, store.ConcurrentEditError("view", old.Name, old.UpdatedBy, old.UpdatedAt, old.Version)
	case old.OwnerID == "" && !v.Shared:
		return v, store.OwnerlessViewError(old.Name)
	}
	old.Name, old.Query, old.Shared, old.UpdatedBy = v.Name, v.Query, v.Shared, store.CleanText(v.UpdatedBy)
	if s.nameTaken(old) {
		return v, store.NameTaken("view", v.Name)
	}
	old.Version, old.UpdatedAt = old.Version+1, viewNow()
	s.byID[v.ViewID] = old
	return old, nil
}

// DeleteRunView implements store.RunViews.
func (s *RunViewStore) DeleteRunView(ctx context.Context, viewID string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if _, there := s.byID[viewID]; !there {
		return viewNotFound(viewID)
	}
	delete(s.byID, viewID)
	return nil
}

// UserDeleted removes the views of a user that is no more; what it has shared stays, and is nobody's.
func (s *RunViewStore) UserDeleted(userID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, v := range s.byID {
		switch {
		case v.OwnerID != userID:
		case v.Shared:
			v.OwnerID = ""
			s.byID[id] = v
		default:
			delete(s.byID, id)
		}
	}
}
