package cli

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/storage/objects/s3test"
)

// TestAResultsDatabaseThatIsAheadOfTheControlStore: where the control store was restored or made anew beside a results
// database that was kept, its epochs are lower than those that have written there. They rise above them when a server
// starts; else no table would be refreshed, and none would fail.
func TestAResultsDatabaseThatIsAheadOfTheControlStore(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	args := []string{"--refresh-workers", "2", "--results", t.TempDir()}
	in := startIngestCluster(t, s3test.Server{}, args...)
	table := func() (d struct{ Table refresh.Table }) {
		in.netProxyTo.Do(http.MethodGet, "/api/v1/tables/run_summary", nil, &d)
		return d
	}
	clitest.Until(t, clitest.StartTimeout, func() bool { return !table().Table.AsOf.IsZero() }, in.served.Out.String)
	before := table().Table.AsOf
	_ = in.served.Cmd.Process.Signal(syscall.SIGTERM)
	if err := in.served.Wait(t, time.Minute); err != nil {
		t.Fatal(err, in.served.Out.String())
	}
	if _, err := in.results.Exec(t.Context(), "UPDATE staging.fences SET epoch = epoch + 1000000"); err != nil {
		t.Fatal(err)
	}
	in.serve(s3test.Server{}, args...)
	in.netProxyTo.Do(http.MethodPost, "/api/v1/tables/run_summary/refresh", nil, nil)
	clitest.Until(t, clitest.StartTimeout, func() bool { return table().Table.AsOf.After(before.Time) },
		in.served.Out.String)
	if n := count(t, in.results, "SELECT epoch FROM staging.fences WHERE dynamic_table = 'run_summary'"); n <= 1_000_000 {
		t.Errorf("it was refreshed at epoch %d", n)
	}
}
