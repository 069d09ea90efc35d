// This part is the part of the conformance suite of control stores about queries that users save.

package storetest

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/engine/store"
)

func queryMust(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantQueryError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

// wantQueryNameTaken checks an error about a name that is there already: the page shows it at its field.
func wantQueryNameTaken(t *testing.T, err error) {
	t.Helper()
	wantQueryError(t, err, store.ErrConflict)
	if e := engine.AsError(err); len(e.Fields) != 1 || e.Fields[0].Field != "name" {
		t.Errorf("a name that is taken: %+v", e)
	}
}

// Queries holds a store to this: a query is saved, changed and renamed by who edited its newest version, and deleted.
func Queries(t *testing.T, s Store) {
	ctx := t.Context()
	odd := `P95 "näch…" /?#%; DROP`
	first, err := s.SaveQuery(ctx, query.SavedQuery{Name: odd, SQL: "SELECT 1", Chart: "x=a", UpdatedBy: "ada\x00"})
	queryMust(t, err)
	if first.Version != 1 || first.CreatedBy != "ada" || first.UpdatedBy != "ada" || first.CreatedAt.IsZero() {
		t.Errorf("a new query: %+v", first)
	}
	_, err = s.SaveQuery(ctx, query.SavedQuery{Name: odd, SQL: "SELECT 2", UpdatedBy: "bob"})
	wantQueryNameTaken(t, err)
	_, err = s.SaveQuery(ctx, query.SavedQuery{Name: "nowhere", SQL: "SELECT 2", Version: 1})
	wantQueryError(t, err, store.ErrNotFound)
	second, err := s.SaveQuery(ctx, query.SavedQuery{Name: odd, SQL: "SELECT 2", Version: 1, UpdatedBy: "bob"})
	queryMust(t, err)
	if second.Version != 2 || second.CreatedBy != "ada" || second.UpdatedBy != "bob" || second.SQL != "SELECT 2" ||
		second.Chart != "" || !second.CreatedAt.Equal(first.CreatedAt.Time) || second.UpdatedAt.Before(first.UpdatedAt.Time) {
		t.Errorf("changed: %+v", second)
	}
	_, err = s.SaveQuery(ctx, query.SavedQuery{Name: odd, SQL: "SELECT 3", Version: 1, UpdatedBy: "eve"})
	wantQueryError(t, err, store.ErrConflict)
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
	queryMust(t, err)
	list, err := s.SavedQueries(ctx)
	queryMust(t, err)
	if len(list) != 2 {
		t.Fatalf("list %+v", list)
	}
	if !reflect.DeepEqual(list[0], second) {
		t.Errorf("the query that was changed is listed as %+v, not %+v", list[0], second)
	}
	renames(t, s, second)
	queryMust(t, s.DeleteSavedQuery(ctx, odd))
	wantQueryError(t, s.DeleteSavedQuery(ctx, odd), store.ErrNotFound)
}

// renames gives a query another name and its own again.
func renames(t *testing.T, s Store, q query.SavedQuery) {
	ctx := t.Context()
	move := func(from, to string, version int64) (query.SavedQuery, error) {
		return s.SaveQuery(ctx, query.SavedQuery{Name: to, PreviousName: from, SQL: q.SQL, Chart: q.Chart, Version: version,
			UpdatedBy: "eve"})
	}
	_, err := move(q.Name, strings.Repeat("é", 100), q.Version)
	wantQueryNameTaken(t, err)
	_, err = move(q.Name, "late", q.Version-1)
	wantQueryError(t, err, store.ErrConflict)
	if err == nil || !strings.Contains(err.Error(), "bob") {
		t.Errorf("who was faster: %v", err)
	}
	_, err = move("nowhere", "somewhere", 1)
	wantQueryError(t, err, store.ErrNotFound)
	_, err = move(q.Name, "nul\x00", q.Version)
	if !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("a name with a NUL: %v", err)
	}
	moved, err := move(q.Name, "P95, renamed", q.Version)
	queryMust(t, err)
	if moved.Name != "P95, renamed" || moved.PreviousName != "" || moved.Version != q.Version+1 ||
		moved.CreatedBy != "ada" ||
		moved.UpdatedBy != "eve" ||
		moved.SQL != q.SQL ||
		!moved.CreatedAt.Equal(q.CreatedAt.Time) {
		t.Errorf("renamed: %+v", moved)
	}
	list, err := s.SavedQueries(ctx)
	queryMust(t, err)
	if len(list) != 2 || !reflect.DeepEqual(list[0], moved) {
		t.Errorf("after a query was renamed there are %+v", list)
	}
	wantQueryError(t, s.DeleteSavedQuery(ctx, q.Name), store.ErrNotFound)
	if _, err = move(moved.Name, q.Name, moved.Version); err != nil {
		t.Errorf("renamed back: %v", err)
	}
}
