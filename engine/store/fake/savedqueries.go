// This part keeps the queries that users save in memory, a part of the store there.

package fake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/store"
)

// QueryStore implements query.Queries. Its zero value has none. It is safe for concurrent use.
type QueryStore struct {
	mu     sync.Mutex
	byName map[string]query.SavedQuery
}

var _ query.Queries = (*QueryStore)(nil)

// SavedQueries implements query.Queries.
func (s *QueryStore) SavedQueries(ctx context.Context) ([]query.SavedQuery, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("asking the control store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(
		maps.Values(s.byName),
		func(a, b query.SavedQuery) int { return cmp.Compare(a.Name, b.Name) },
	), nil
}

// SaveQuery implements query.Queries.
func (s *QueryStore) SaveQuery(ctx context.Context, q query.SavedQuery) (query.SavedQuery, error) {
	if err := ctx.Err(); err != nil {
		return q, fmt.Errorf("asking the control store: %w", err)
	}
	if err := query.CheckQuery(q); err != nil {
		return q, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := query.StoredName(q)
	there, known := s.byName[before]
	_, taken := s.byName[q.Name]
	switch {
	case !known && q.Version != 0:
		return q, queryNotFound(before)
	case known && q.Version == 0:
		return q, store.NameTaken("saved query", q.Name)
	case known && q.Version != there.Version:
		return q, store.ConcurrentEditError("saved query", before, there.UpdatedBy, there.UpdatedAt, there.Version)
	case taken && before != q.Name:
		return q, store.NameTaken("saved query", q.Name)
	}
	now := engine.At(time.Now().UTC().Truncate(time.Microsecond))
	q.Version, q.UpdatedAt, q.CreatedAt = there.Version+1, now, there.CreatedAt
	q.UpdatedBy, q.Chart = store.CleanText(q.UpdatedBy), store.CleanText(q.Chart)
	if q.CreatedBy = there.CreatedBy; !known {
		q.CreatedAt, q.CreatedBy = now, q.UpdatedBy
	}
	if s.byName == nil {
		s.byName = map[string]query.SavedQuery{}
	}
	q.PreviousName = ""
	delete(s.byName, before)
	s.byName[q.Name] = q
	return q, nil
}

func queryNotFound(name string) error {
	return &engine.Error{Code: engine.CodeNotFound, Cause: store.ErrNotFound,
		Message: fmt.Sprintf("There is no saved query %q.", name)}
}

// DeleteSavedQuery implements query.Queries.
func (s *QueryStore) DeleteSavedQuery(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("asking the control store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.byName[name]; !known {
		return queryNotFound(name)
	}
	delete(s.byName, name)
	return nil
}
