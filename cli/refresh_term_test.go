package cli

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// TestAServerThatIsToldToEndGivesItsRefreshBack: of two servers one is in the middle of a refresh and gets SIGTERM. The
// other one has the table at once, not when the claim would have expired, and nothing has failed.
func TestAServerThatIsToldToEndGivesItsRefreshBack(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	s, requested, route := newRefreshCluster(t)
	servers := map[string]*clitest.Process{}
	for range 2 {
		p, _, name := s.serve(1)
		servers[name] = p
	}
	clitest.Until(t, clitest.StartTimeout, func() bool {
		return count(t, s.controls, "SELECT count(*) FROM pending_refreshes") == 0
	}, requested.Out.String)
	route.Do(http.MethodPost, "/api/v1/tables", map[string]any{"name": "given_back", "target_lag_seconds": 3600,
		"definition": "SELECT count(*) AS n FROM generate_series(1, 40000000)"}, nil)
	holder := func() (name string) {
		_ = s.controls.QueryRow(t.Context(), "SELECT worker_id FROM refresh_claims WHERE dynamic_table = 'given_back'").
			Scan(&name)
		return name
	}
	var first, second string
	clitest.Until(t, clitest.StartTimeout, func() bool { first = holder(); return first != "" }, requested.Out.String)
	time.Sleep(500 * time.Millisecond)
	message := time.Now()
	if err := servers[first].Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	clitest.Until(t, clitest.StartTimeout, func() bool { second = holder(); return second != "" && second != first },
		requested.Out.String)
	took := time.Since(message)
	t.Logf("the other one has it %v after SIGTERM", took.Round(time.Millisecond))
	if took > 30*time.Second {
		t.Errorf("the other one had to wait for %v", took)
	}
	if err := servers[first].Wait(t, time.Minute); err != nil {
		t.Error(err)
	}
	var d struct{ Table refresh.Table }
	clitest.Until(t, clitest.StartTimeout, func() bool {
		route.Do(http.MethodGet, "/api/v1/tables/given_back", nil, &d)
		return !d.Table.AsOf.IsZero()
	}, requested.Out.String)
	var history struct{ Refreshes []refresh.Record }
	route.Do(http.MethodGet, "/api/v1/tables/given_back/history?limit=10", nil, &history)
	if r := history.Refreshes; len(r) != 1 || r[0].Worker != second || r[0].Error != "" || d.Table.Failures != 0 {
		t.Errorf("its history is %s", fmt.Sprintf("%+v", r))
	}
}
