package cli

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/storage/derived/derivedtest"
	"github.com/loadstone-db/loadstone/storage/embedded"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/objects/s3test"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// ingestCluster is a server that carries runs and takes none in, whose records are in S3, and nodes that do. The
// results database is in a Postgres of its own.
type ingestCluster struct {
	first                  string // the data directory of the first server, whose key the others have
	t                      *testing.T
	load                   string
	control, owner, reader string
	controls, results      *pgxpool.Pool
	pg                     *embedded.Postgres
	pgDir                  string
	served                 *clitest.Process
	netProxyTo             clitest.Caller
	// nodeArgs stands before the same storage as the server's.
	nodeArgs *s3test.Proxy
	nodes    int
}

// startIngestCluster starts all of it but the nodes.
func startIngestCluster(t *testing.T, storage s3test.Server, args ...string) *ingestCluster {
	t.Helper()
	shared := pgtest.Start(t)
	in := &ingestCluster{t: t, load: shared.NewTarget(t), control: postgrestest.NewControl(t), pgDir: reachable(t)}
	in.postgres()
	t.Cleanup(func() { _ = in.pg.Stop(context.Background()) })
	in.serve(storage, args...)
	return in
}

// serve starts the server.
func (in *ingestCluster) serve(storage s3test.Server, args ...string) {
	t := in.t
	t.Helper()
	in.controls, in.results = in.pool(in.control), in.pool(in.owner)
	if storage.Bucket != "" {
		storage.Environment(t)
		in.nodeArgs = s3test.NewProxy(t, storage)
		args = append(args, "--results", storage.Address("runs"))
	}
	dir := t.TempDir()
	if in.first == "" {
		in.first = dir
	}
	clitest.ShareKey(t, in.first, dir)
	in.served = clitest.Launch(t, append([]string{"serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--calibrate",
		"off",
		"--database-url", in.control, "--results-database-url", in.owner, "--results-reader-url", in.reader,
		"--ingest", "executions"}, args...)...)
	in.netProxyTo, _, _ = operatorOf(t, dir, in.served).SignIn()
}

// postgres starts the Postgres of the results database.
func (in *ingestCluster) postgres() {
	in.t.Helper()
	var err error
	if in.pg, err = embedded.Start(in.t.Context(), embedded.Options{DataDir: in.pgDir, Log: zerolog.Nop()}); err == nil {
		in.owner, in.reader, err = in.pg.Results(in.t.Context())
	}
	if err != nil {
		in.t.Fatal(err)
	}
}

func (in *ingestCluster) pool(dsn string) *pgxpool.Pool {
	in.t.Helper()
	p, err := pgxpool.New(in.t.Context(), dsn)
	if err != nil {
		in.t.Fatal(err)
	}
	in.t.Cleanup(p.Close)
	return p
}

func (in *ingestCluster) node() *clitest.RemoteNode {
	in.t.Helper()
	in.nodes++
	return clitest.StartNode(in.t, in.t.TempDir(), "", "--database-url", in.control, "--results-database-url", in.owner,
		"--results-reader-url", in.reader, "--refresh-workers", "1", "--ingest", "executions",
		"--results", in.nodeArgs.Address("runs"))
}

// run makes a run, and returns how many executions its record has.
func (in *ingestCluster) run() (engine.RunDetail, int64) {
	in.t.Helper()
	var run engine.Run
	in.netProxyTo.Do(
		"POST",
		"/api/runs",
		map[string]any{"start": true, "source": fmt.Sprintf("name: taken in\ntarget:\n  "+
			"connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
			"workload: {plugin: mix, load_mode: QPS, target_qps: 300, concurrent_connections: 4, duration_seconds: 3, "+
			"warmup_seconds: 0}\nscaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 2}\n", in.load)},
		&run,
	)
	d := in.netProxyTo.AwaitEnd(run.RunID, in.served)
	if d.Status != engine.StatusCompleted || d.Summary.Accounting.Recorded < 300 {
		in.t.Fatalf("%s: %v, %+v\n%s", d.Status, d.CancellationReason, d.Summary, in.served.Out.String())
	}
	return d, d.Summary.Accounting.Recorded
}

// gate lets no node read a part of a run until it is opened; at is closed when one wants to.
func (in *ingestCluster) gate() (at <-chan struct{}, open func()) {
	reached, opened := make(chan struct{}), make(chan struct{})
	var first, once sync.Once
	in.nodeArgs.Set(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/executions-") {
			first.Do(func() { close(reached) })
			select {
			case <-opened:
			case <-r.Context().Done():
			}
		}
		return false
	})
	open = func() { once.Do(func() { close(opened) }) }
	in.t.Cleanup(open)
	return reached, open
}

func (in *ingestCluster) await(what string, n *clitest.RemoteNode, met func() bool) {
	in.t.Helper()
	clitest.Until(in.t, 5*time.Minute, met, func() string {
		text := "not " + what + ":\n" + in.served.Out.String()
		if n != nil {
			text += "\nthe node:\n" + n.Out.String()
		}
		return text
	})
}

func (in *ingestCluster) reached(at <-chan struct{}, n *clitest.RemoteNode) {
	in.t.Helper()
	in.await("reading a part", n, func() bool {
		select {
		case <-at:
			return true
		default:
			return false
		}
	})
}

func count(t *testing.T, db *pgxpool.Pool, sql string, args ...any) (n int64) {
	t.Helper()
	if err := db.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (in *ingestCluster) settledQueue() bool {
	return count(in.t, in.controls, `SELECT (SELECT count(*) FROM refresh_claims) +
		(SELECT count(*) FROM pending_refreshes)`) == 0
}

func (in *ingestCluster) ingestedRuns(runID string) bool {
	var n int64
	err := in.controls.QueryRow(in.t.Context(), `SELECT count(*) FROM refresh_subtasks WHERE dynamic_table = 'runs'
		AND subtask = $1 AND status = 'DONE'`, runID).Scan(&n)
	return err == nil && n == 1
}

// checkIngested checks that the results database has a run once, all of it, and nothing that somebody has left halfway.
func (in *ingestCluster) checkIngested(when, runID string, executions int64) {
	in.t.Helper()
	for what, sql := range map[string]string{
		"executions": "SELECT count(*) FROM rollup.executions WHERE run_id = $1 AND position = 0",
		"distinct": `SELECT count(DISTINCT (worker_id, connection_id, seq)) FROM rollup.executions
			WHERE run_id = $1 AND position = 0`,
		"roll-ups": "SELECT sum(operations)::bigint FROM rollup.run_seconds WHERE run_id = $1",
		"workers":  "SELECT sum(operations)::bigint FROM rollup.worker_seconds WHERE run_id = $1",
		"the run":  "SELECT sum(executions)::bigint FROM rollup.runs WHERE run_id = $1 AND NOT provisional"} {
		if n := count(in.t, in.results, sql, runID); n != executions {
			in.t.Errorf("%s: %s of %d: %d", when, what, executions, n)
		}
	}
	if n := count(in.t, in.results, "SELECT count(*) FROM rollup.run_seconds WHERE run_id = $1 AND provisional",
		runID); n != 0 {
		in.t.Errorf("%s: %d provisional seconds are left", when, n)
	}
	conn, err := in.results.Acquire(in.t.Context())
	if err != nil {
		in.t.Fatal(err)
	}
	defer conn.Release()
	differences, err := derivedtest.CompareSeconds(in.t.Context(), conn.Conn(), runID)
	if err != nil || len(differences) > 0 {
		in.t.Errorf("%s: %v, seconds are not those of the executions:\n%s", when, err, strings.Join(differences, "\n"))
	}
	in.checkNoStaging(when)
}

// checkNoStaging checks that no table is left in which rows were gathered.
func (in *ingestCluster) checkNoStaging(when string) {
	in.t.Helper()
	if n := count(in.t, in.results, `SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'staging' AND c.relkind = 'r' AND c.relname LIKE '%~%' AND NOT c.relispartition`); n != 0 {
		in.t.Errorf("%s: %d tables are left in which rows were gathered", when, n)
	}
}

// TestANodeTakesRunsInFromS3: a node that knows the databases and the storage takes in what a server has run. One that
// is killed midway, or between its commit and its release, is followed by another one, and there is one copy.
func TestANodeTakesRunsInFromS3(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("waits until claims of killed nodes have expired; make soak sets " + clitest.Soak)
	}
	t.Run("stand-in", func(t *testing.T) { nodeIngests(t, s3test.NewStandIn(t, "bench").Server) })
	t.Run("real", func(t *testing.T) { nodeIngests(t, s3test.Real(t, "bench")) })
}

func nodeIngests(t *testing.T, storage s3test.Server) {
	in := startIngestCluster(t, storage, "--refresh-workers", "0")
	first := in.node()
	d, n := in.run()
	in.await("taken in", first, func() bool { return in.ingestedRuns(d.RunID) })
	in.checkIngested("as it should be", d.RunID, n)

	at, open := in.gate()
	d, n = in.run()
	in.reached(at, first)
	if err := first.Cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-first.Done
	open()
	second := in.node()
	killed := time.Now()
	in.await("taken in by another", second, func() bool { return in.ingestedRuns(d.RunID) })
	t.Logf("another node has taken it in %v after the kill", time.Since(killed).Round(time.Second))
	in.checkIngested("killed midway", d.RunID, n)

	// Whoever releases has to lock the entry: it has committed what it took in, and cannot say so.
	at, open = in.gate()
	d, n = in.run()
	in.reached(at, second)
	tx, err := in.controls.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `SELECT FROM pending_refreshes WHERE dynamic_table = 'runs' AND subtask = $1
			FOR UPDATE`, d.RunID)
	}
	if err != nil {
		t.Fatal(err)
	}
	open()
	in.await("committed", second, func() bool {
		return count(t, in.results, "SELECT count(*) FROM rollup.runs WHERE run_id = $1 AND NOT provisional", d.RunID) == 1
	})
	if err := second.Cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-second.Done
	// Its session does not know yet that nobody is there any more, and would go on with what it was sent.
	waits := "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%release_refresh%'"
	count(t, in.controls, "SELECT count(pg_terminate_backend(pid)) "+waits)
	in.await("ended its session", second, func() bool { return count(t, in.controls, "SELECT count(*) "+waits) == 0 })
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if in.ingestedRuns(d.RunID) {
		t.Error("it was released though its entry was locked")
	}
	third := in.node()
	in.await("found to be there", third, func() bool { return in.ingestedRuns(d.RunID) })
	in.checkIngested("killed between commit and release", d.RunID, n)
	var history struct{ Refreshes []refresh.Record }
	in.netProxyTo.Do(http.MethodGet, "/api/v1/tables/runs/history?limit=50", nil, &history)
	lines := slices.DeleteFunc(history.Refreshes, func(r refresh.Record) bool { return r.Subtask != d.RunID })
	if len(lines) != 1 || !strings.Contains(lines[0].Note, "Nothing of it has changed") {
		t.Errorf("its history is %+v", lines)
	}
}

// TestWhatHappensToARunThatIsTakenIn: it is deleted, its parts are lost or damaged, the Postgres that it goes into is
// restarted. The rest goes on, and what is wrong is said.
func TestWhatHappensToARunThatIsTakenIn(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("starts a Postgres and three processes; make soak sets " + clitest.Soak)
	}
	storage := s3test.NewStandIn(t, "bench")
	in := startIngestCluster(t, storage.Server, "--refresh-workers", "0")
	n := in.node()
	t.Run("deleted", func(t *testing.T) {
		at, open := in.gate()
		d, _ := in.run()
		in.reached(at, n)
		in.netProxyTo.Do(http.MethodDelete, "/api/runs/"+d.RunID, nil, nil)
		open()
		in.await("over", n, in.settledQueue)
		in.await("forgotten", n, func() bool {
			return count(t, in.controls, "SELECT count(*) FROM refresh_subtasks WHERE subtask = $1", d.RunID) == 0
		})
		for _, relation := range []string{"runs", "run_seconds", "segments", "executions", "execution_runs"} {
			if left := count(t, in.results, "SELECT count(*) FROM rollup."+relation+" WHERE run_id = $1", d.RunID); left > 0 {
				t.Errorf("%d rows of %s are left of a deleted run", left, relation)
			}
		}
		in.await("removed from S3", n, func() bool {
			return !slices.ContainsFunc(storage.Keys(), func(k string) bool { return strings.Contains(k, d.RunID) })
		})
		in.checkNoStaging("deleted")
	})
	t.Run("parts lost and damaged", func(t *testing.T) {
		at, open := in.gate()
		lost, _ := in.run()
		in.reached(at, n) // the only worker is at work on it
		parts := func(runID string) (keys []string) {
			for _, k := range storage.Keys() {
				if strings.Contains(k, runID) && strings.Contains(k, "/executions-") {
					keys = append(keys, k)
				}
			}
			slices.Sort(keys)
			return keys
		}
		damaged, _ := in.run()
		good, executions := in.run()
		for _, k := range parts(damaged.RunID)[:1] {
			storage.Flip(t, k, 100)
		}
		keys := parts(lost.RunID)
		storage.Remove(keys[len(keys)-1])
		open()
		for _, d := range []engine.RunDetail{lost, damaged, good} {
			in.await("taken in", n, func() bool { return in.ingestedRuns(d.RunID) })
		}
		in.checkIngested("beside damaged ones", good.RunID, executions)
		var history struct{ Refreshes []refresh.Record }
		in.netProxyTo.Do(http.MethodGet, "/api/v1/tables/runs/history?limit=50", nil, &history)
		for d, what := range map[*engine.RunDetail]string{&lost: " is not there.",
			&damaged: " are not those that were stored"} {
			i := slices.IndexFunc(history.Refreshes, func(r refresh.Record) bool { return r.Subtask == d.RunID })
			if i < 0 || !strings.Contains(history.Refreshes[i].Note, "executions-") ||
				!strings.Contains(history.Refreshes[i].Note, what) {
				t.Errorf("the history of a run of which a part%s: %+v", what, history.Refreshes)
			}
			if bad := count(t, in.results, "SELECT cardinality(part_problems) FROM rollup.runs WHERE run_id = $1",
				d.RunID); bad != 1 {
				t.Errorf("%d parts are marked of one%s", bad, what)
			}
			some := count(t, in.results, "SELECT sum(operations)::bigint FROM rollup.run_seconds WHERE run_id = $1", d.RunID)
			if some == 0 || some >= d.Summary.Accounting.Recorded {
				t.Errorf("%d executions of %d are there without a part%s", some, d.Summary.Accounting.Recorded, what)
			}
		}
	})
	t.Run("Postgres is restarted", func(t *testing.T) {
		at, open := in.gate()
		d, executions := in.run()
		in.reached(at, n)
		if err := in.pg.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		open()
		time.Sleep(2 * time.Second) // it is tried meanwhile
		in.postgres()
		in.await("taken in", n, func() bool { return in.ingestedRuns(d.RunID) })
		in.checkIngested("Postgres was restarted", d.RunID, executions)
		failed := count(t, in.controls, "SELECT count(*) FROM refresh_history WHERE error <> ''")
		if failed > 0 {
			t.Errorf("%d refreshes have failed for it", failed)
		}
	})
}
