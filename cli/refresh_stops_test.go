package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// refreshCluster are servers that share a control store and a results database, and refresh one table at a time each.
type refreshCluster struct {
	t        *testing.T
	args     []string
	key      []byte
	controls *pgxpool.Pool
	results  *pgxpool.Pool
}

// newRefreshCluster makes databases and a server that refreshes nothing itself; it returns that and a session of its
// operator.
func newRefreshCluster(t *testing.T) (s *refreshCluster, requested *clitest.Process, route clitest.Caller) {
	t.Helper()
	shared := pgtest.Start(t)
	control := postgrestest.NewControl(t)
	owner, reader := shared.Results(t)
	s = &refreshCluster{t: t, args: []string{"--listen", "127.0.0.1:0", "--calibrate", "off", "--database-url", control,
		"--local-capacity", "0", "--results", t.TempDir(), "--results-database-url", owner, "--results-reader-url", reader}}
	s.controls, s.results = s.pool(control), s.pool(owner)
	requested, dir, _ := s.serve(0)
	route, _, _ = operatorOf(t, dir, requested).SignIn()
	return s, requested, route
}

func (s *refreshCluster) pool(dsn string) *pgxpool.Pool {
	s.t.Helper()
	p, err := pgxpool.New(s.t.Context(), dsn)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(p.Close)
	return p
}

// serve starts a server with so many workers, and returns the name that it has in its claims.
func (s *refreshCluster) serve(workers int) (p *clitest.Process, dir, name string) {
	s.t.Helper()
	dir = s.t.TempDir()
	file := filepath.Join(dir, "loadstone.key")
	if s.key != nil {
		if err := os.WriteFile(file, s.key, 0o600); err != nil {
			s.t.Fatal(err)
		}
	} else if _, err := keyring.Open(file); err != nil {
		s.t.Fatal(err)
	}
	s.key, _ = os.ReadFile(file)
	names := func() (all []string) {
		if err := s.controls.QueryRow(s.t.Context(), "SELECT coalesce(array_agg(worker_id), '{}') FROM refresh_workers").
			Scan(&all); err != nil {
			s.t.Fatal(err)
		}
		return all
	}
	before := names()
	p = clitest.Launch(s.t, append([]string{"serve", "--data-dir", dir, "--refresh-workers", fmt.Sprint(workers)},
		s.args...)...)
	clitest.Until(s.t, 3*time.Minute, func() bool {
		now := slices.DeleteFunc(names(), func(n string) bool { return slices.Contains(before, n) })
		name = strings.Join(now, "")
		return workers == 0 || len(now) == 1
	}, p.Out.String)
	return p, dir, name
}

func (s *refreshCluster) run(id string) {
	s.t.Helper()
	_, err := s.results.Exec(s.t.Context(), `INSERT INTO rollup.runs (run_id, run_name, template, adapter, connection,
		table_name, status, verdict, simulated, load_mode, warehouse, warehouse_size, currency, tags, created_by, parts,
		part_problems, executions, fingerprint, version) VALUES ($1, '', '', '', '', '', 'COMPLETED', 'VALID', false, '', '',
		'', '', '{}', '', 0, '{}', 0, '', nextval('staging.run_versions'))`, "stops-"+id)
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestServersThatStandStillInARefresh: five servers, each a process of its own with the real limits, are stopped for
// 130 s and more in the middle of a refresh: three while they read, two when they are about to commit. Another server
// refreshes their tables meanwhile, after more has come in; nothing that they had begun is seen afterwards.
func TestServersThatStandStillInARefresh(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("stands still for 130 s; make soak sets " + clitest.Soak)
	}
	const victims = 5
	s, requested, route := newRefreshCluster(t)
	stopped := map[string]*clitest.Process{}
	for range victims {
		p, _, name := s.serve(1)
		stopped[name] = p
	}
	queue := func(of string) int64 {
		return count(t, s.controls, "SELECT count(*) FROM "+of+" WHERE dynamic_table NOT LIKE 'stops\\_%'")
	}
	clitest.Until(t, 3*time.Minute, func() bool { return queue("pending_refreshes") == 0 }, requested.Out.String)
	s.run("1")
	t.Cleanup(func() { _, _ = s.results.Exec(t.Context(), "DELETE FROM rollup.runs WHERE run_id LIKE 'stops-%'") })
	table := func(i int) string { return fmt.Sprintf("stops_%d", i) }
	for i := range victims {
		route.Do(http.MethodPost, "/api/v1/tables", map[string]any{"name": table(i), "target_lag_seconds": 3600,
			"definition": `SELECT count(DISTINCT r.run_id) AS n FROM rollup.runs r, generate_series(1, 12000000)
				WHERE r.run_id LIKE 'stops-%'`}, nil)
	}
	began := time.Now()
	for i := range victims {
		var holder string
		clitest.Until(t, 3*time.Minute, func() bool {
			if s.controls.QueryRow(t.Context(), "SELECT worker_id FROM refresh_claims WHERE dynamic_table = $1",
				table(i)).Scan(&holder) == nil {
				return true
			}
			route.Do(http.MethodPost, "/api/v1/tables/"+table(i)+"/refresh", nil, nil) // it was faster than the stops before
			return false
		}, requested.Out.String)
		if stopped[holder] == nil {
			t.Fatalf("%s is held by %s", table(i), holder)
		}
		goOn := func() {}
		if i >= 3 {
			goOn = s.awaitCommit(table(i), stopped[holder])
		}
		if err := stopped[holder].Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		goOn()
	}
	last := time.Now()
	t.Logf("all stand still %v after their tables were made", last.Sub(began).Round(time.Millisecond))
	s.run("2")
	healthy, _, name := s.serve(victims)
	seen := func(i int) (n int64) {
		_ = s.results.QueryRow(t.Context(), "SELECT n FROM tables."+table(i)).Scan(&n)
		return n
	}
	for i := range victims {
		clitest.Until(t, 6*time.Minute, func() bool { return seen(i) == 2 }, healthy.Out.String)
	}
	t.Logf("another has refreshed all of them %v after the last stop", time.Since(last).Round(time.Second))
	time.Sleep(max(0, 135*time.Second-time.Since(last)))
	for _, p := range stopped {
		if err := p.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
	for name, p := range stopped {
		// Its session may have been ended before it knows of its claim: it gives back then what is not its own any more.
		clitest.Until(t, 3*time.Minute, func() bool {
			text := p.Out.String()
			return strings.Contains(text, "the claim is lost") || strings.Contains(text, "is away: it is tried again")
		}, func() string { return name + ":\n" + p.Out.String() })
	}
	for i := range victims {
		var history struct{ Refreshes []refresh.Record }
		route.Do(http.MethodGet, "/api/v1/tables/"+table(i)+"/history", nil, &history)
		if seen(i) != 2 || len(history.Refreshes) == 0 || history.Refreshes[0].Worker != name {
			t.Errorf("%s: %d runs of 2 are seen, refreshed by %+v", table(i), seen(i), history.Refreshes)
		}
		route.Do(http.MethodDelete, "/api/v1/tables/"+table(i), nil, nil)
	}
}

// awaitCommit waits until the holder of a table waits for the fence, which the test holds: it is about to commit. goOn
// lets the fence go.
func (s *refreshCluster) awaitCommit(table string, p *clitest.Process) (goOn func()) {
	s.t.Helper()
	clitest.Until(s.t, 3*time.Minute, func() bool {
		return count(s.t, s.results, "SELECT count(*) FROM staging.fences WHERE dynamic_table = $1", table) > 0
	}, p.Out.String)
	tx, err := s.results.Begin(s.t.Context())
	if err == nil {
		_, err = tx.Exec(s.t.Context(), "SELECT FROM staging.fences WHERE dynamic_table = $1 FOR UPDATE", table)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	clitest.Until(s.t, 3*time.Minute, func() bool {
		return count(s.t, s.controls, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
			AND query LIKE '%staging.fences%FOR UPDATE%'`) > 0
	}, p.Out.String)
	return func() {
		if err := tx.Rollback(s.t.Context()); err != nil {
			s.t.Error(err)
		}
	}
}

// TestLiveSecondsOfARunWhoseOwnerIsKilled: the server that carries a run is killed, and another goes on with it. The
// seconds in the results database go on, none is there twice, and when the run is taken in they are what was recorded.
func TestLiveSecondsOfARunWhoseOwnerIsKilled(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("three processes and a run of 25 s; make soak sets " + clitest.Soak)
	}
	owner, reader := pgtest.Start(t).Results(t)
	clitest.LeasesOf.Store(t.Name(), "1500ms")
	n := clitest.StartNode(t, t.TempDir(), "")
	c := newClusterOf(t, func(int) []string {
		return []string{"--nodes", n.Address, "--results-database-url", owner, "--results-reader-url", reader,
			"--refresh-workers", "1"}
	})
	c.node = n
	s := &refreshCluster{t: t}
	results := s.pool(owner)
	run := c.start(0, 25, 0)
	live := func() (operations, seconds int64) {
		if err := results.QueryRow(t.Context(), `SELECT coalesce(sum(operations), 0)::bigint, count(*) FROM rollup.run_seconds
			WHERE run_id = $1 AND provisional`, run.RunID).Scan(&operations, &seconds); err != nil {
			t.Fatal(err)
		}
		return operations, seconds
	}
	clitest.Until(t, clitest.StartTimeout, func() bool { _, seconds := live(); return seconds >= 3 },
		c.servers[0].Out.String)
	epoch := c.epoch(run)
	c.kill(c.servers[0])
	c.awaitTakeover(run, epoch, time.Now())
	before, had := live()
	clitest.Until(t, clitest.StartTimeout, func() bool { _, seconds := live(); return seconds >= had+3 },
		c.servers[1].Out.String)
	now, seconds := live()
	// What is there of a run is less than what it has done by then.
	var done int64
	clitest.Until(t, clitest.StartTimeout, func() bool {
		if err := c.control.QueryRow(t.Context(), "SELECT total_ops FROM run_status WHERE run_id = $1",
			run.RunID).Scan(&done); err != nil {
			t.Fatal(err)
		}
		return done >= now
	}, func() string { return fmt.Sprintf("%d operations are live of %d", now, done) })
	t.Logf("%d operations in %d live seconds at the takeover, %d in %d later, of %d", before, had, now, seconds, done)
	d := c.proxies[1].AwaitEnd(run.RunID, c.servers[1])
	clitest.Until(t, 3*time.Minute, func() bool {
		return count(t, results, "SELECT count(*) FROM rollup.runs WHERE run_id = $1 AND NOT provisional", run.RunID) == 1
	}, c.servers[1].Out.String)
	if _, left := live(); left != 0 {
		t.Errorf("%d provisional seconds are left", left)
	}
	all := count(t, results, "SELECT sum(operations)::bigint FROM rollup.run_seconds WHERE run_id = $1", run.RunID)
	if all != d.Summary.Accounting.Recorded {
		t.Errorf("%d operations are there of %d", all, d.Summary.Accounting.Recorded)
	}
	time.Sleep(3 * time.Second) // whoever was late would come now
	if _, left := live(); left != 0 {
		t.Errorf("%d provisional seconds have come afterwards", left)
	}
}
