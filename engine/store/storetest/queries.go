package storetest

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/query"
	"github.com/loadstone-db/loadstone/engine/store"
)

func savedQueries(t *testing.T, s store.Store) {
	ctx := t.Context()
	odd := `P95 "näch…" /?#%; DROP`
	first, err := s.SaveQuery(ctx, query.Saved{Name: odd, SQL: "SELECT 1", Chart: "x=a", UpdatedBy: "ada\x00"})
	must(t, err)
	if first.Version != 1 || first.CreatedBy != "ada" || first.UpdatedBy != "ada" || first.CreatedAt.IsZero() {
		t.Errorf("a new query: %+v", first)
	}
	_, err = s.SaveQuery(ctx, query.Saved{Name: odd, SQL: "SELECT 2", UpdatedBy: "bob"})
	wantTaken(t, err)
	_, err = s.SaveQuery(ctx, query.Saved{Name: "nowhere", SQL: "SELECT 2", Version: 1})
	wantError(t, err, store.ErrNotFound)
	second, err := s.SaveQuery(ctx, query.Saved{Name: odd, SQL: "SELECT 2", Version: 1, UpdatedBy: "bob"})
	must(t, err)
	if second.Version != 2 || second.CreatedBy != "ada" || second.UpdatedBy != "bob" || second.SQL != "SELECT 2" ||
		second.Chart != "" || !second.CreatedAt.Equal(first.CreatedAt.Time) || second.UpdatedAt.Before(first.UpdatedAt.Time) {
		t.Errorf("changed: %+v", second)
	}
	_, err = s.SaveQuery(ctx, query.Saved{Name: odd, SQL: "SELECT 3", Version: 1, UpdatedBy: "eve"})
	wantError(t, err, store.ErrConflict)
	if err == nil || !strings.Contains(err.Error(), "bob") ||
		!strings.Contains(err.Error(), second.UpdatedAt.UTC().Format("15:04:05")) {
		t.Errorf("who was faster, and when: %v", err)
	}
	for _, bad := range []query.Saved{{SQL: "SELECT 1"}, {Name: "x"}, {Name: strings.Repeat("é", 101), SQL: "SELECT 1"}} {
		if _, err := s.SaveQuery(ctx, bad); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	_, err = s.SaveQuery(ctx, query.Saved{Name: strings.Repeat("é", 100), SQL: "SELECT 1"})
	must(t, err)
	list, err := s.SavedQueries(ctx)
	must(t, err)
	if len(list) != 2 {
		t.Fatalf("list %+v", list)
	}
	same(t, "the query that was changed", list[0], second)
	must(t, s.DeleteSavedQuery(ctx, odd))
	wantError(t, s.DeleteSavedQuery(ctx, odd), store.ErrNotFound)
}
