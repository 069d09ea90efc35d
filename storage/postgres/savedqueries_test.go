package postgres_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

// Queries holds a store to this: a query is saved, changed and renamed by who edited its newest version, and deleted.
func Queries(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	odd := `P95 "näch…" /?#%; DROP`
	first, err := s.SaveQuery(ctx, query.SavedQuery{Name: odd, SQL: "SELECT 1", Chart: "x=a", UpdatedBy: "ada\x00"})
	must(t, err)
	if first.Version != 1 || first.CreatedBy != "ada" || first.UpdatedBy != "ada" || first.CreatedAt.IsZero() {
		t.Errorf("a new query: %+v", first)
	}
	_, err = s.SaveQuery(ctx, query.SavedQuery{Name: odd, SQL: "SELECT 2", UpdatedBy: "bob"})
	wantTaken(t, err)
	_, err = s.SaveQuery(ctx, query.SavedQuery{Name: "nowhere", SQL: "SELECT 2", Version: 1})
	wantError(t, err, store.ErrNotFound)
	second, err := s.SaveQuery(ctx, query.SavedQuery{Name: odd, SQL: "SELECT 2", Version: 1, UpdatedBy: "bob"})
	must(t, err)
	if second.Version != 2 || second.CreatedBy != "ada" || second.UpdatedBy != "bob" || second.SQL != "SELECT 2" ||
		second.Chart != "" || !second.CreatedAt.Equal(first.CreatedAt.Time) || second.UpdatedAt.Before(first.UpdatedAt.Time) {
		t.Errorf("changed: %+v", second)
	}
	_, err = s.SaveQuery(ctx, query.SavedQuery{Name: odd, SQL: "SELECT 3", Version: 1, UpdatedBy: "eve"})
	wantError(t, err, store.ErrConflict)
	if err == nil || !strings.Contains(err.Error(), "bob") ||
		!strings.Contains(err.Error(), second.UpdatedAt.UTC().Format("15:04:05")) {
		t.Errorf("who was faster, and when: %v", err)
	}
	for _, bad := range []query.SavedQuery{{SQL: "SELECT 1"}, {Name: "x"}, {Name: strings.Repeat("é", 101), SQL: "SELECT 1"}} {
		if _, err := s.SaveQuery(ctx, bad); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	_, err = s.SaveQuery(ctx, query.SavedQuery{Name: strings.Repeat("é", 100), SQL: "SELECT 1"})
	must(t, err)
	list, err := s.SavedQueries(ctx)
	must(t, err)
	if len(list) != 2 {
		t.Fatalf("list %+v", list)
	}
	if !reflect.DeepEqual(list[0], second) {
		t.Errorf("the query that was changed is listed as %+v, not %+v", list[0], second)
	}
	renames(t, s, second)
	must(t, s.DeleteSavedQuery(ctx, odd))
	wantError(t, s.DeleteSavedQuery(ctx, odd), store.ErrNotFound)
}

// renames gives a query another name and its own again.
func renames(t *testing.T, s *postgres.Store, q query.SavedQuery) {
	ctx := t.Context()
	move := func(from, to string, version int64) (query.SavedQuery, error) {
		return s.SaveQuery(ctx, query.SavedQuery{Name: to, PreviousName: from, SQL: q.SQL, Chart: q.Chart, Version: version,
			UpdatedBy: "eve"})
	}
	_, err := move(q.Name, strings.Repeat("é", 100), q.Version)
	wantTaken(t, err)
	_, err = move(q.Name, "late", q.Version-1)
	wantError(t, err, store.ErrConflict)
	if err == nil || !strings.Contains(err.Error(), "bob") {
		t.Errorf("who was faster: %v", err)
	}
	_, err = move("nowhere", "somewhere", 1)
	wantError(t, err, store.ErrNotFound)
	_, err = move(q.Name, "nul\x00", q.Version)
	if !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("a name with a NUL: %v", err)
	}
	moved, err := move(q.Name, "P95, renamed", q.Version)
	must(t, err)
	if moved.Name != "P95, renamed" || moved.PreviousName != "" || moved.Version != q.Version+1 ||
		moved.CreatedBy != "ada" ||
		moved.UpdatedBy != "eve" ||
		moved.SQL != q.SQL ||
		!moved.CreatedAt.Equal(q.CreatedAt.Time) {
		t.Errorf("renamed: %+v", moved)
	}
	list, err := s.SavedQueries(ctx)
	must(t, err)
	if len(list) != 2 || !reflect.DeepEqual(list[0], moved) {
		t.Errorf("after a query was renamed there are %+v", list)
	}
	wantError(t, s.DeleteSavedQuery(ctx, q.Name), store.ErrNotFound)
	if _, err = move(moved.Name, q.Name, moved.Version); err != nil {
		t.Errorf("renamed back: %v", err)
	}
}
