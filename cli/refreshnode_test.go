package cli

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/worker"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// startRefreshNode is a node in this process that refreshes tables.
func startRefreshNode(t *testing.T, control, owner, reader string) (*worker.Node, *wiring.RefreshNode, error) {
	t.Helper()
	n := worker.NewNode(worker.Options{NodeID: "the-node", Version: "test", SpoolDir: t.TempDir(), Log: zerolog.Nop()})
	t.Cleanup(n.Close)
	meters := wiring.NewNodeMetrics("test", nil)
	meters.Read = n.State
	r, err := wiring.OpenRefreshNode(wiring.RefreshNodeFlags{DatabaseFlags: wiring.DatabaseFlags{DatabaseURL: control},
		ResultsFlags:   wiring.ResultsFlags{ResultsDatabase: owner, ResultsReaderURL: reader},
		RefreshWorkers: 2, Results: "/a/folder/of/the/server"},
		wiring.RefreshNodeOptions{Name: "the-node", DataDir: t.TempDir(), Node: n, Metrics: meters, Log: zerolog.Nop()})
	return n, r, err
}

// TestANodeRefreshesTables: a node that knows the databases takes what waits, of the kinds that it can; while it is
// drained it takes nothing, and when it ends it is no worker any more.
func TestANodeRefreshesTables(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	server := pgtest.Start(t)
	control := postgrestest.NewControl(t)
	store, err := postgres.Open(t.Context(), control, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	owner, reader := server.Results(t)
	make := func(name string) {
		t.Helper()
		if _, err := store.CreateDynamicTable(t.Context(), refresh.Table{Name: name, Kind: refresh.SQL,
			Definition: "SELECT 7 AS seven", TargetLagSeconds: 3600, Mode: refresh.Full}); err != nil {
			t.Fatal(err)
		}
	}
	state := func() refresh.State {
		t.Helper()
		s, err := store.RefreshState(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	make("of a node")
	node, tables, err := startRefreshNode(t, control, owner, reader)
	if err != nil {
		t.Fatal(err)
	}
	clitest.WaitFor(
		t,
		clitest.StartTimeout,
		"refresh by the node",
		func() bool { return !state().Tables[0].AsOf.IsZero() },
	)
	history, err := store.RefreshHistory(t.Context(), "of a node", 10)
	if err != nil || len(history) != 1 || history[0].Worker != "the-node" || history[0].Rows != 1 {
		t.Errorf("history %+v, %v", history, err)
	}
	workers := state().Workers
	if len(workers) != 1 || workers[0].Role != refresh.Node || workers[0].Slots != 2 ||
		!slices.Equal(workers[0].Kinds, []refresh.Kind{refresh.SQL}) {
		t.Errorf("workers %+v: the record in a folder is the servers' alone", workers)
	}
	node.Drain()
	make("while it is drained")
	clitest.WaitFor(t, clitest.StartTimeout, "word of the drain", func() bool {
		s := state()
		return len(s.Workers) == 1 && s.Workers[0].Waits == "the node is drained" && len(s.Pending) == 1
	})
	if s := state(); len(s.Claims) > 0 || !s.Tables[1].AsOf.IsZero() && !s.Tables[0].AsOf.IsZero() {
		t.Errorf("a drained node works on %+v", s.Claims)
	}
	tables.Close()
	if s := state(); len(s.Workers) > 0 || len(s.Claims) > 0 || refresh.MissingWorkers(s) == "" {
		t.Errorf("after its end: %+v, %+v", s.Workers, s.Claims)
	}
}

// TestANodeThatMayNotReadFailsNoTable: a node whose login is not as it should be in the results database claims
// nothing: what is wrong there counts as no table's failure, of which five would end it for all.
// TestDatabasesThatAreNotAsTheyShouldBe is the same with processes and passwords.
func TestANodeThatMayNotReadFailsNoTable(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	server := pgtest.Start(t)
	control := postgrestest.NewControl(t)
	store, err := postgres.Open(t.Context(), control, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	if _, err := store.CreateDynamicTable(t.Context(), refresh.Table{Name: "of others", Kind: refresh.SQL,
		Definition: "SELECT 7 AS seven", TargetLagSeconds: 3600, Mode: refresh.Full}); err != nil {
		t.Fatal(err)
	}
	owner, _ := server.Results(t)
	_, node, err := startRefreshNode(t, control, owner, owner) // the reader is the owner
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	for range 40 { // a worker claims what waits within the first half second
		time.Sleep(50 * time.Millisecond)
		state, err := store.RefreshState(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if table := state.Tables[0]; table.Failures > 0 || table.Error != "" || len(state.Claims)+len(state.Workers) > 0 {
			t.Fatalf("a node that may not read has begun: %+v, claims %+v, workers %+v", table, state.Claims, state.Workers)
		}
	}
}

// TestWhatANodeThatRefreshesIsTold: halves of what it needs are refused with the field that is missing.
func TestWhatANodeThatRefreshesIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ control, owner, reader, field string }{
		"no control store": {"", "postgres://o@h/r", "postgres://r@h/r", "--database-url"},
		"no reader":        {"postgres://c@h/c", "postgres://o@h/r", "", "--results-reader-url"},
		"no owner":         {"postgres://c@h/c", "", "postgres://r@h/r", "--results-database-url"},
		"nothing":          {"", "", "", ""},
		"of a server":      {"postgres://c@h/c", "", "", ""},
	} {
		_, r, err := startRefreshNode(t, c.control, c.owner, c.reader)
		switch {
		case c.field == "" && (err != nil || r != nil):
			t.Errorf("%s: %v, %v", name, r, err)
		case c.field != "" && (!engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), c.field+": ")):
			t.Errorf("%s: %v", name, err)
		}
		r.Close()
	}
}

// TestNothingIsRefreshedWhileTheOwnNodeMeasures: a server whose own node carries a run gives back what it refreshes
// when the run begins, takes nothing while it measures, and does it all afterwards.
func TestNothingIsRefreshedWhileTheOwnNodeMeasures(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("measures for some seconds; make soak sets " + clitest.Soak)
	}
	owner, reader := pgtest.Start(t).Results(t)
	c := newClusterOf(t, func(i int) []string {
		return []string{"--results-database-url", owner, "--results-reader-url", reader, "--refresh-workers",
			strconv.Itoa(2 * (1 - i)), "--local-capacity", strconv.Itoa(8 * (1 - i))}
	})
	c.proxies[0].Do(http.MethodPost, "/api/v1/tables", map[string]any{"name": "slow", "target_lag_seconds": 3600,
		"definition": "SELECT count(*) AS n FROM generate_series(1, 20000000)"}, nil)
	t.Cleanup(func() { c.proxies[0].Do(http.MethodDelete, "/api/v1/tables/slow", nil, nil) })
	claims := func() (n int) {
		if err := c.control.QueryRow(t.Context(), "SELECT count(*) FROM refresh_claims").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// It is being refreshed when the run begins.
	clitest.WaitFor(t, clitest.StartTimeout, "refresh", func() bool { return claims() > 0 })
	run := c.start(0, 6, 0)
	began, looks := time.Now(), 0
	for phase := engine.PhaseMeasurement; phase == engine.PhaseMeasurement; looks++ {
		n := claims()
		if err := c.control.QueryRow(t.Context(), "SELECT coalesce(phase, '') FROM run_status WHERE run_id = $1",
			run.RunID).Scan(&phase); err != nil {
			t.Fatal(err)
		}
		if n > 0 && phase == engine.PhaseMeasurement {
			t.Fatalf("%d claims %s after the measurement began:\n%s", n, time.Since(began), c.servers[0].Out.String())
		}
		c.proxies[1].Do(http.MethodPost, "/api/v1/tables/slow/refresh", nil, nil)
		time.Sleep(50 * time.Millisecond)
	}
	over := time.Now()
	var history struct{ Refreshes []refresh.Record }
	clitest.WaitFor(t, clitest.StartTimeout, "refresh after the run", func() bool {
		c.proxies[1].Do(http.MethodGet, "/api/v1/tables/slow/history", nil, &history)
		return len(history.Refreshes) > 0 && history.Refreshes[0].StartedAt.After(began)
	})
	for _, r := range history.Refreshes {
		if r.StartedAt.Before(over.Add(-time.Second)) && r.EndedAt.After(began) {
			t.Errorf("it was refreshed from %s to %s, and measured from %s to %s", r.StartedAt, r.EndedAt, began, over)
		}
	}
	t.Logf("%d looks in %s", looks, over.Sub(began))
}

// TestServersAndANodeRefreshOneTable: two servers and a node, each a process, share the parts of one table. A part that
// fails is tried again alone, and the table is put in place once. What a worker holds that is asked to end others take.
func TestServersAndANodeRefreshOneTable(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("works for a minute on all cores; make soak sets " + clitest.Soak)
	}
	shared := pgtest.Start(t)
	owner, reader := shared.Results(t)
	databases := []string{"--results-database-url", owner, "--results-reader-url", reader, "--refresh-workers", "1"}
	c := newClusterOf(t, func(int) []string { return databases })
	n := clitest.StartNode(t, t.TempDir(), "", append(databases, "--database-url", c.control.Config().ConnString())...)
	db, err := pgxpool.New(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	var list struct {
		Tables  []refresh.Table
		Workers []refresh.Worker
		Claims  []refresh.Claim
		Nobody  string
	}
	read := func() { c.proxies[0].Do(http.MethodGet, "/api/v1/tables", nil, &list) }
	clitest.WaitFor(t, clitest.StartTimeout, "three workers", func() bool {
		read()
		return len(list.Workers) == 3 &&
			list.Nobody == ""
	})
	const runs = 1024
	exec := func(sql string) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(
		fmt.Sprintf(`INSERT INTO rollup.runs (run_id, run_name, template, adapter, connection, table_name, status, verdict,
		simulated, load_mode, warehouse, warehouse_size, currency, tags, created_by, parts, part_problems, executions,
		fingerprint, version) SELECT 'shared-' || lpad(i::text, 4, '0'), CASE i WHEN 500 THEN '0' ELSE '1' END, '', '', '', '',
		'COMPLETED', 'VALID', false, '', '', '', '', '{}', '', 0, '{}', 0, '', nextval('staging.run_versions')
		FROM generate_series(1, %d) i`, runs),
	)
	t.Cleanup(func() {
		_, _ = db.Exec(context.Background(), "DELETE FROM rollup.runs WHERE run_id LIKE 'shared-%'")
	})
	var made refresh.Table
	c.proxies[0].Do(http.MethodPost, "/api/v1/tables", map[string]any{"name": "shared", "partition_by": "RUN",
		"target_lag_seconds": 3600, "definition": `SELECT r.run_id, count(*) AS n, max(10 / r.run_name::int) AS x
			FROM rollup.runs r, generate_series(1, 60000) WHERE r.run_id LIKE 'shared-%' GROUP BY r.run_id`}, &made)
	var history struct{ Refreshes []refresh.Record }
	records := func() []refresh.Record {
		c.proxies[1].Do(http.MethodGet, "/api/v1/tables/shared/history?limit=100", nil, &history)
		return history.Refreshes
	}
	failed := func() (n int) {
		for _, r := range records() {
			if r.Error != "" {
				n++
			}
		}
		return n
	}
	clitest.WaitFor(t, 3*time.Minute, "part that fails", func() bool { return failed() == 1 })
	exec("UPDATE rollup.runs SET run_name = '1' WHERE run_id = 'shared-0500'")
	// One of them is asked to end while it works.
	if err := n.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-n.Done
	clitest.WaitFor(t, 3*time.Minute, "whole table", func() bool {
		c.proxies[1].Do(http.MethodGet, "/api/v1/tables/shared", nil, &struct{ Table *refresh.Table }{&made})
		return !made.AsOf.IsZero()
	})
	tries, workers, wholes := map[string]int{}, map[string]int{}, 0
	for _, r := range records() {
		workers[r.Worker]++
		if tries[r.Subtask]++; r.Subtask == "" && r.Rows > 0 {
			wholes++
		}
	}
	t.Logf("tries %v, workers %v", tries, workers)
	second := 0
	for part, n := range tries {
		if part != "" && n > 1 {
			second++
		}
	}
	if second != 1 || len(tries) != 17 || wholes != 1 || failed() != 1 || len(workers) != 3 {
		t.Errorf("%d parts were tried again of %d, by %v; the table was put in place %d times", second, len(tries)-1,
			slices.Collect(maps.Keys(workers)), wholes)
	}
	var count, rows int
	if err := db.QueryRow(t.Context(), `SELECT count(*), count(DISTINCT run_id) FROM tables.shared`).Scan(&rows,
		&count); err != nil || rows != runs || count != runs {
		t.Errorf("%d rows of %d runs, %v", rows, count, err)
	}
	clitest.WaitFor(t, clitest.StartTimeout, "word of the end", func() bool { read(); return len(list.Workers) == 2 })
	c.proxies[0].Do(http.MethodDelete, "/api/v1/tables/shared", nil, nil)
}

// TestAQueryIsCancelledThroughTheOtherServer: of two servers on one results database the one ends what the other does.
func TestAQueryIsCancelledThroughTheOtherServer(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("starts two servers; make soak sets " + clitest.Soak)
	}
	shared := pgtest.Start(t)
	owner, reader := shared.Results(t)
	config, err := pgxpool.ParseConfig(shared.NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	role, err := pgxpool.ParseConfig(reader)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.Database = role.ConnConfig.Database
	admin, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	// As it is in a Postgres that is not Loadstone's own.
	if _, err := admin.Exec(t.Context(), "GRANT EXECUTE ON FUNCTION pg_cancel_backend(integer) TO PUBLIC"); err != nil {
		t.Fatal(err)
	}
	databases := []string{"--results-database-url", owner, "--results-reader-url", reader, "--refresh-workers", "1"}
	c := newClusterOf(t, func(int) []string { return databases })
	const id = "cancel-me-please"
	ended := make(chan error, 1)
	go func() {
		_, err := c.proxies[0].Try(http.MethodPost, "/api/query", map[string]any{"query_id": id,
			"sql": "SELECT count(*) FROM (SELECT generate_series(1, 1000000000000)) AS n"}, nil)
		ended <- err
	}()
	clitest.WaitFor(t, clitest.StartTimeout, "a query to cancel", func() bool {
		code, _ := c.proxies[1].Try(http.MethodPost, "/api/query/cancel", map[string]any{"query_id": id}, nil)
		return code == http.StatusNoContent
	})
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "was cancelled") {
		t.Errorf("the query ended with %v", err)
	}
}
