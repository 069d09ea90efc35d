package postgres_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// TestADivisionIsAsOfWhenItWasMade: what has changed since is not in its parts, however late they are claimed; and of
// one whose own claim could not say so any more nobody knows whether it has the last change.
func TestADivisionIsAsOfWhenItWasMade(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx, conn := t.Context(), connect(t, dsn)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.CreateDynamicTable(ctx, refresh.Table{Name: "a", Kind: refresh.SQL, Definition: "SELECT 1",
		TargetLagSeconds: 60, Mode: refresh.Full})
	must(err)
	changes := func() {
		_, err := conn.Exec(ctx, `UPDATE dynamic_tables SET changed_at = clock_timestamp(),
			behind_since = coalesce(behind_since, clock_timestamp())`)
		must(err)
	}
	release := func(r refresh.Result) {
		t.Helper()
		claims, err := s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 1)
		must(err)
		if len(claims) != 1 {
			t.Fatalf("claimed %+v", claims)
		}
		must(s.ReleaseRefresh(ctx, claims[0], r))
	}
	for _, tc := range []struct {
		what                   string
		anew, between, changed bool
		behind                 bool
	}{
		{"divided after the change", true, false, true, false},
		{"a change before a part is claimed", true, true, false, true},
		{"divided by who could not say so", false, false, true, true},
	} {
		_, err := conn.Exec(ctx, "UPDATE dynamic_tables SET changed_at = NULL, behind_since = NULL, updated_at = created_at")
		must(err)
		if tc.changed {
			changes()
		}
		must(s.RequestRefresh(ctx, "a"))
		release(refresh.Result{Parts: []string{"1"}, ReplaceParts: tc.anew})
		if tc.between {
			changes()
		}
		release(refresh.Result{Unchanged: true})
		release(refresh.Result{Rows: 1})
		table, err := s.DynamicTable(ctx, "a")
		must(err)
		if table.BehindSince.IsZero() == tc.behind {
			t.Errorf("%s: changed at %v, as of %v, behind since %v", tc.what, table.ChangedAt, table.AsOf, table.BehindSince)
		}
	}
}
