package cli

import (
	"net/http"
	"testing"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/storage/objects/s3test"
)

// TestADropThatEndedHalfway: a server that was killed between the two databases has forgotten a table whose rows are
// still there. The drop, repeated, removes them; repeated once more there is no such table. A table of that name that
// is made before that has its own rows alone.
func TestADropThatEndedHalfway(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	in := startIngestCluster(t, s3test.Server{}, "--refresh-workers", "1", "--results", t.TempDir())
	made := func(definition string) {
		t.Helper()
		in.netProxyTo.Do(http.MethodPost, "/api/v1/tables", map[string]any{"name": "half", "definition": definition,
			"target_lag_seconds": 3600}, nil)
		clitest.Until(t, clitest.StartTimeout, func() bool {
			var d struct{ Table refresh.Table }
			in.netProxyTo.Do(http.MethodGet, "/api/v1/tables/half", nil, &d)
			return !d.Table.AsOf.IsZero()
		}, in.served.Out.String)
	}
	forget := func() {
		t.Helper()
		if _, err := in.controls.Exec(t.Context(), "DELETE FROM dynamic_tables WHERE name = 'half'"); err != nil {
			t.Fatal(err)
		}
	}
	drop := func() int {
		status, err := in.netProxyTo.Try(http.MethodDelete, "/api/v1/tables/half", nil, nil)
		t.Logf("%d %v", status, err)
		return status
	}
	made("SELECT 1 AS n")
	forget()
	if n := count(t, in.results, "SELECT sum(n)::bigint FROM tables.half"); n != 1 {
		t.Fatalf("what is left is %d", n)
	}
	if status := drop(); status != http.StatusNoContent {
		t.Errorf("the drop, repeated: %d", status)
	}
	if n := count(t, in.results, `SELECT count(*) + (SELECT count(*) FROM staging.contents WHERE dynamic_table = 'half')
		FROM pg_tables WHERE schemaname = 'tables' AND tablename = 'half'`); n != 0 {
		t.Errorf("%d things are left of it", n)
	}
	if status := drop(); status != http.StatusNotFound {
		t.Errorf("the drop of what is gone: %d", status)
	}
	made("SELECT 1 AS n")
	forget()
	made("SELECT 2 AS n")
	if n := count(t, in.results, "SELECT sum(n)::bigint FROM tables.half"); n != 2 {
		t.Errorf("made again, it holds %d", n)
	}
	if status := drop(); status != http.StatusNoContent {
		t.Errorf("dropping it: %d", status)
	}
}
