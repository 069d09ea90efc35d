package derived_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/derived"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		worker()
		return
	}
	goleak.VerifyTestMain(pgtest.M{M: m})
}

// open returns the results database, emptied.
func open(t testing.TB) (d *derived.Database, owner, reader *pgx.Conn) {
	t.Helper()
	ownerDSN, readerDSN := pgtest.Start(t).Results(t)
	d, err := derived.Open(t.Context(), ownerDSN, readerDSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	owner, reader = connect(t, ownerDSN), connect(t, readerDSN)
	if _, err := owner.Exec(
		t.Context(),
		`TRUNCATE rollup.runs, rollup.execution_runs, rollup.slow_executions, rollup.exports, staging.fences, staging.partitions,
			staging.contents, staging.live_runs CASCADE;
		DROP TABLE rollup.executions;
		DROP SCHEMA tables CASCADE; DROP TABLE staging.applied`,
		pgx.QueryExecModeSimpleProtocol,
	); err != nil {
		t.Fatal(err)
	}
	second, err := derived.Open(t.Context(), ownerDSN, readerDSN)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
	return d, owner, reader
}

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func held(context.Context) error { return nil }

func claim(table, subtask string, epoch int64) refresh.Claim {
	return refresh.Claim{Task: refresh.Task{Table: table, Subtask: subtask}, Worker: "w", Epoch: epoch}
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// oneRun has so many executions of 1 to 100 ms in three seconds, every tenth of which fails.
func oneRun(id string, executions int) (rollup.Run, *histogram.Histogram) {
	s, all := rollup.New(noon), histogram.New()
	b := &rollup.Batch{Kind: record.Texts{Values: []string{"POINT_LOOKUP"}},
		Statement: record.Texts{Values: []string{"get"}},
		Worker:    record.Texts{Values: []string{"worker-0", "worker-1"}},
		Class:     record.Texts{Values: []string{"TIMEOUT"}}, Code: record.Texts{Values: []string{"57014"}}}
	for i := range executions {
		failed := int32(0)
		if i%10 != 0 {
			failed = -1
		}
		b.DueNs = append(b.DueNs, noon.Add(time.Duration(i%3)*time.Second).UnixNano())
		b.ElapsedNs, b.Rows = append(b.ElapsedNs, int64(i%100+1)*1e6), append(b.Rows, 2)
		b.Position, b.Warmup, b.Success = append(b.Position, 0), append(b.Warmup, false), append(b.Success, failed < 0)
		b.Kind.Index, b.Statement.Index = append(b.Kind.Index, 0), append(b.Statement.Index, 0)
		b.Worker.Index = append(b.Worker.Index, int32(i%2))
		b.Class.Index, b.Code.Index = append(b.Class.Index, failed), append(b.Code.Index, failed)
		all.Record(b.ElapsedNs[i])
	}
	s.Add(b)
	for i := range 3 {
		rate := float64(i - 1)
		s.Report(int32(i), &engine.WorkerSnapshot{WorkerID: "worker-0", Phase: engine.PhaseMeasurement,
			NodeID: "node-a", Scheduled: 7, Dropped: 2, ActiveConnections: executions, TargetConnections: 9, Waiting: i - 1,
			TargetQPS: &rate, Resources: engine.Resources{CPUPercent: 25, MemoryPercent: 50, MemoryBytes: 1 << 40,
				HostCPUPercent: 75, HostMemoryPercent: 12.5}}, nil)
	}
	return rollup.Run{PerHour: func(engine.Warehouse) (float64, bool) { return 2.5, true },
		Run: engine.Run{RunID: id, RunName: "test of " + id, Status: engine.StatusCompleted,
			StartTime: engine.At(noon), Scenario: engine.Scenario{TemplateName: "nightly"}}, Adapter: "postgres", Parts: 1,
		Fingerprint: "first", Seconds: s,
		Summary: &engine.Summary{Verdict: "VALID", Figures: engine.Figures{Operations: int64(executions), QPS: new(10.0),
			LatencyMs: &engine.LatencyMs{P95: 95}}},
		Warehouse: []engine.WarehousePoint{{Timestamp: engine.At(noon), ElapsedSeconds: 0.5,
			Warehouse: engine.Warehouse{Name: "W", State: "STARTED"}}}}, all
}

func put(t *testing.T, d *derived.Database, r rollup.Run, epoch int64) {
	t.Helper()
	c := claim("runs", r.Run.RunID, epoch)
	if err := d.Begin(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if rows, bytes, err := d.PutRun(t.Context(), c, r, held); err != nil || rows < 2 || bytes == 0 {
		t.Fatalf("%d rows, %d bytes, %v", rows, bytes, err)
	}
}

func count(t *testing.T, conn *pgx.Conn, sql string, args ...any) (n int64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func TestARunIsTakenInOnce(t *testing.T) {
	d, owner, _ := open(t)
	r, all := oneRun("a", 3000)
	put(t, d, r, 1)
	r.Fingerprint = "second"
	put(t, d, r, 2)
	other, _ := oneRun("b", 30)
	put(t, d, other, 3)
	for _, table := range []string{"run_seconds", "kind_seconds", "statement_seconds", "worker_seconds"} {
		if n := count(t, owner, "SELECT sum(operations)::bigint FROM rollup."+table+" WHERE run_id = 'a'"); n != 3000 {
			t.Errorf("%s has %d executions of 3000", table, n)
		}
	}
	if n := count(t, owner, "SELECT sum(errors)::bigint FROM rollup.error_seconds WHERE run_id = 'a'"); n != 300 {
		t.Errorf("%d errors of 300", n)
	}
	if print, name, err := d.Known(t.Context(), "a"); err != nil || print != "second" || name != "" {
		t.Errorf("fingerprint %q, segment %q, %v", print, name, err)
	}
	for _, q := range []float64{0, 0.5, 0.95, 0.99, 1} {
		var got float64
		if err := owner.QueryRow(t.Context(), `SELECT rollup.histogram_quantile_ms(rollup.histogram_merge(latency), $1)
			FROM rollup.run_seconds WHERE run_id = 'a'`, q).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if want := all.Quantile(q) / 1e6; math.Abs(got-want) > want*1e-9 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if n := count(t, owner, `SELECT rollup.histogram_count(rollup.histogram_merge(latency)) FROM rollup.kind_seconds
		WHERE run_id = 'a'`); n != 3000 {
		t.Errorf("merged histograms hold %d values of 3000", n)
	}
	c := claim("runs", "a", 4)
	if err := errors.Join(d.Begin(t.Context(), c), d.DropRun(t.Context(), c)); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"runs", "run_seconds", "kind_seconds", "statement_seconds", "worker_seconds",
		"error_seconds", "warehouse_seconds"} {
		if n := count(t, owner, "SELECT count(*) FROM rollup."+table+" WHERE run_id = 'a'"); n != 0 {
			t.Errorf("%s still has %d rows of a run that is gone", table, n)
		}
		if n := count(t, owner, "SELECT count(*) FROM rollup."+table+" WHERE run_id = 'b'"); n == 0 {
			t.Errorf("%s has lost the rows of another run", table)
		}
	}
}

// TestAStaleWriterWritesNothing: once a higher epoch has begun, whatever a lower one had begun comes to nothing,
// also when it stands in the middle of its transaction.
func TestAStaleWriterWritesNothing(t *testing.T) {
	d, owner, _ := open(t)
	r, _ := oneRun("a", 30)
	old, young := claim("runs", "a", 7), claim("runs", "a", 8)
	if err := errors.Join(d.Begin(t.Context(), old), d.Begin(t.Context(), old), d.Begin(t.Context(), young)); err != nil {
		t.Fatal(err)
	}
	if err := d.Begin(t.Context(), old); !errors.Is(err, store.ErrClaimLost) {
		t.Errorf("an old epoch begins: %v", err)
	}
	if _, _, err := d.PutRun(t.Context(), old, r, held); !errors.Is(err, store.ErrClaimLost) {
		t.Errorf("an old epoch writes: %v", err)
	}
	if err := d.DropRun(t.Context(), old); !errors.Is(err, store.ErrClaimLost) {
		t.Errorf("an old epoch deletes: %v", err)
	}
	lost := func(context.Context) error { return store.ErrClaimLost }
	if _, _, err := d.PutRun(t.Context(), young, r, lost); !errors.Is(err, store.ErrClaimLost) {
		t.Errorf("a claim that is lost before the end: %v", err)
	}
	if n := count(t, owner, "SELECT count(*) FROM rollup.runs"); n != 0 {
		t.Errorf("%d runs were written", n)
	}
	table := refresh.Table{Name: "one", Kind: refresh.SQL, Definition: "SELECT 1 AS one", Version: 1, Mode: refresh.Full}
	overtaken := func(ctx context.Context) error { return nil }
	if _, err := d.Materialize(t.Context(), table, claim("one", "", 5), overtaken); err != nil {
		t.Fatal(err)
	}
	table.Definition = "SELECT 2 AS one FROM pg_catalog.generate_series(1, 10)"
	if err := d.Begin(t.Context(), claim("one", "", 9)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Materialize(t.Context(), table, claim("one", "", 6), held); !errors.Is(err, store.ErrClaimLost) {
		t.Errorf("an old epoch refreshes: %v", err)
	}
	if n := count(t, owner, "SELECT sum(one) FROM tables.one"); n != 1 {
		t.Errorf("the table holds %d", n)
	}
}

func TestBundledTables(t *testing.T) {
	d, owner, reader := open(t)
	for i, id := range []string{"a", "b"} {
		r, _ := oneRun(id, 300)
		r.Run.StartTime = engine.At(noon.Add(time.Duration(i) * time.Hour))
		put(t, d, r, int64(i+1))
	}
	epoch := int64(10)
	refreshed := func(wantMode refresh.Mode, unchanged bool) {
		t.Helper()
		for _, table := range derived.Bundled() {
			if table.Kind != refresh.SQL {
				continue
			}
			table.Version = 1
			epoch++
			r, err := d.Materialize(t.Context(), table, claim(table.Name, "", epoch), held)
			if err != nil {
				t.Fatalf("%s: %v", table.Name, err)
			}
			if table.PartitionBy == refresh.ByRun && (r.Mode != wantMode || r.Unchanged != unchanged) {
				t.Errorf("%s: %+v, want %s", table.Name, r, wantMode)
			}
		}
	}
	refreshed(refresh.Full, false)
	refreshed(refresh.Incremental, true)
	for table, want := range map[string]int64{"run_summary": 2, "run_seconds": 6, "kind_seconds": 6, "statement_stats": 2,
		"error_stats": 2, "node_seconds": 12, "warehouse_timeseries": 2, "cost_per_million": 0, "slow_executions": 0,
		"baseline_drift": 1} {
		if n := count(t, reader, "SELECT count(*) FROM "+table); n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
	r, _ := oneRun("c", 30)
	put(t, d, r, 3)
	gone := claim("runs", "a", 4)
	if err := errors.Join(d.Begin(t.Context(), gone), d.DropRun(t.Context(), gone)); err != nil {
		t.Fatal(err)
	}
	before := count(t, owner, "SELECT min(xmin::text::bigint) FROM tables.run_seconds WHERE run_id = 'b'")
	refreshed(refresh.Incremental, false)
	if n := count(t, owner, "SELECT min(xmin::text::bigint) FROM tables.run_seconds WHERE run_id = 'b'"); n != before {
		t.Error("the rows of a run that did not change were written anew")
	}
	if n := count(t, reader, "SELECT count(*) FROM run_seconds WHERE run_id IN ('b', 'c')"); n != 6 {
		t.Errorf("%d seconds of b and c", n)
	}
	if n := count(t, reader, "SELECT count(*) FROM run_seconds WHERE run_id = 'a'"); n != 0 {
		t.Errorf("%d seconds of a run that is gone", n)
	}
	if n := count(t, owner, "SELECT count(*) FROM pg_tables WHERE tablename LIKE '~%'"); n != 0 {
		t.Errorf("%d tables of refreshes were left", n)
	}
}

// TestReadersSeeOneState: a reader who asks all the time sees all rows of one refresh, never a mixture.
func TestReadersSeeOneState(t *testing.T) {
	d, _, reader := open(t)
	table := refresh.Table{Name: `a "strange" näme; DROP`, Kind: refresh.SQL, Mode: refresh.Full}
	put := func(n int64) {
		table.Version = n
		table.Definition = fmt.Sprintf("SELECT %d AS n FROM pg_catalog.generate_series(1, 500)", n)
		if _, err := d.Materialize(t.Context(), table, claim(table.Name, "", n), held); err != nil {
			t.Error(err)
		}
	}
	put(1)
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			var states, rows int
			if err := reader.QueryRow(context.Background(), "SELECT count(DISTINCT n), count(*) FROM "+
				pgx.Identifier{"tables", table.Name}.Sanitize()).Scan(&states, &rows); err != nil || states != 1 || rows != 500 {
				t.Errorf("a reader sees %d states in %d rows, %v", states, rows, err)
				return
			}
		}
	})
	for n := int64(2); n < 12; n++ {
		put(n)
	}
	close(stop)
	group.Wait()
}

func TestDefinitionsThatAreRefused(t *testing.T) {
	d, owner, _ := open(t)
	d.Settings.Definition.Rows = 50_000
	wide := make([]string, 2000)
	for i := range wide {
		wide[i] = fmt.Sprintf("%d AS c%d", i, i)
	}
	for i, definition := range []string{
		"INSERT INTO rollup.runs DEFAULT VALUES", "WITH x AS (DELETE FROM rollup.runs RETURNING 1) SELECT * FROM x",
		"SELECT 1; DROP TABLE rollup.runs", "SELECT 1) TO STDOUT; DROP TABLE rollup.runs; --",
		"SELECT 1 AS one INTO tables.other", "SELECT pg_sleep(1)", `SELECT "pg_sleep"(1)`, `SELECT U&"pg\005fsleep"(1)`,
		"SELECT set_config('role', 'results', false)", "SELECT pg_read_file('/etc/passwd')", "SELECT pg_notify('a', 'b')",
		"SELECT dblink('dbname=loadstone', 'SELECT 1')", "SELECT pg_advisory_lock(1)",
		"SELECT nextval('staging.run_versions')",
		"SELECT query_to_xml('SELECT 1', true, true, '')", "SELECT lo_creat(-1)", "SELECT * FROM staging.fences",
		"SELECT 1 AS a, 2 AS a", "SELECT " + strings.Join(wide, ", "), "COPY rollup.runs TO PROGRAM 'id'", "",
		"SELECT $1::int",
		"SELECT pg_terminate_backend(pg_backend_pid())", "SELECT pg_logical_emit_message(true, 'a', 'b')",
		"SELECT * FROM rollup.runs FOR UPDATE", "DO $$ BEGIN END $$", "SELECT 1 / 0 AS boom",
		"SELECT i FROM pg_catalog.generate_series(1, 60000) AS i",
	} {
		table := refresh.Table{Name: "bad", Kind: refresh.SQL, Definition: definition, Version: 1, Mode: refresh.Auto}
		_, err := d.Materialize(t.Context(), table, claim("bad", "", int64(i+1)), held)
		if !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%.60s: %v", definition, err)
		}
	}
	if n := count(t, owner, "SELECT count(*) FROM pg_tables WHERE schemaname = 'tables' OR tablename LIKE '~%'"); n != 0 {
		t.Errorf("%d tables were made", n)
	}
}

func TestWhatADefinitionReads(t *testing.T) {
	d, _, _ := open(t)
	base := refresh.Table{Name: "base", Kind: refresh.SQL, Definition: "SELECT 1 AS one", Version: 1, Mode: refresh.Full}
	if _, err := d.Materialize(t.Context(), base, claim("base", "", 1), held); err != nil {
		t.Fatal(err)
	}
	for definition, want := range map[string]string{
		"SELECT 1 AS one": "", "SELECT * FROM base": "base", "SELECT * FROM run_seconds, tables.base": "base runs",
		`WITH "base" AS (SELECT count(*) FROM rollup.runs) SELECT * FROM "base"`: "runs",
		"SELECT 'FROM base' AS text -- FROM base":                                "",
	} {
		if got, err := d.Sources(t.Context(), definition, "runs"); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s reads %q, want %q: %v", definition, got, want, err)
		}
	}
	if _, err := d.Sources(t.Context(), "SELECT * FROM staging.fences", "runs"); !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("a definition that reads what no reader may: %v", err)
	}
	if err := d.Drop(t.Context(), "base"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Sources(t.Context(), "SELECT * FROM base", "runs"); !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("a table that was dropped: %v", err)
	}
}

// TestReadersReachResultsOnly: the reader's login connects to no other database, and writes nothing in this one,
// whatever the session says of itself.
func TestReadersReachResultsOnly(t *testing.T) {
	_, owner, reader := open(t)
	rows, err := owner.Query(t.Context(), "SELECT datname FROM pg_database WHERE datname <> 'results'")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) < 4 {
		t.Fatal(names, err)
	}
	for _, role := range []*pgx.Conn{reader, owner} {
		for _, name := range names {
			config := role.Config().Copy()
			config.Database = name
			if conn, err := pgx.ConnectConfig(t.Context(), config); err == nil {
				t.Errorf("%s connects to %s", config.User, name)
				conn.Close(t.Context())
			}
		}
	}
	if _, err := reader.Exec(t.Context(), "SET default_transaction_read_only = off"); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"CREATE TABLE tables.x (a int)", "CREATE TABLE x (a int)", "CREATE TEMP TABLE x (a int)",
		"DELETE FROM rollup.runs", "TRUNCATE rollup.runs", "SELECT * FROM staging.fences", "SET ROLE results",
		"SELECT pg_sleep(0)", "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "DO $$ BEGIN END $$",
		"SELECT pg_read_file('PG_VERSION')", "SELECT * FROM pg_catalog.pg_authid", "CREATE SCHEMA mine",
		"COPY (SELECT 1) TO PROGRAM 'id'", "COPY rollup.runs TO '/tmp/runs'", "SET temp_file_limit = -1"} {
		if _, err := reader.Exec(t.Context(), sql); err == nil {
			t.Errorf("a reader may: %s", sql)
		}
	}
}
