package enrich

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
	"github.com/loadstone-db/loadstone/snowsim"
	"github.com/loadstone-db/loadstone/snowsim/history"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}, targettest.SnowflakeDriverLeak()) }

// pageOfHistory is the page that the Snowflake adapters ask for, shorter by what this package does not read.
const pageOfHistory = `SELECT QUERY_ID, END_TIME, TOTAL_ELAPSED_TIME, COMPILATION_TIME, EXECUTION_TIME, QUEUED_PROVISIONING_TIME, QUEUED_REPAIR_TIME,
  QUEUED_OVERLOAD_TIME, TRANSACTION_BLOCKED_TIME, EXECUTION_STATUS, CLUSTER_NUMBER
FROM TABLE(INFORMATION_SCHEMA.QUERY_HISTORY(END_TIME_RANGE_START => TO_TIMESTAMP_LTZ(?), END_TIME_RANGE_END => TO_TIMESTAMP_LTZ(?), RESULT_LIMIT => 10000))`

// fromStandIn makes the job's history that of a stand-in which executed all n, and is asked through the driver.
func fromStandIn(t testing.TB, n int, j *Job) {
	t.Helper()
	server, err := snowsim.Start(t.Context(), snowsim.Options{Postgres: pgtest.Start(t).NewDatabase(t), TimeScale: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	random := rand.New(rand.NewPCG(1, 2))
	// The account's clock is now, and what ends later is not in its history yet.
	first := time.Now().Add(-time.Duration(n)*time.Millisecond - time.Minute)
	for i := range n {
		compiled, executed := time.Duration(random.IntN(5))*time.Millisecond,
			time.Duration(1+random.IntN(40))*time.Millisecond
		end := first.Add(time.Duration(i) * time.Millisecond)
		server.History().Add(&history.Record{Context: history.Context{SessionID: int64(i % 16), User: "LOADSTONE",
			Warehouse: "LOADSTONE_WH", WarehouseSize: "X-Small", Cluster: 1, Tag: "run-1"},
			QueryID: id(i), Text: `SELECT * FROM "ORDERS" WHERE "ID" = ?`, QueryType: "SELECT", Table: "standard",
			Start: end.Add(-compiled - executed), End: end, Compilation: compiled, Execution: executed, RowsProduced: 1})
	}
	j.From, j.To, j.Clock = first.Add(-time.Minute), time.Now(), nil
	j.Connect = func(context.Context) (History, error) {
		db, err := snowflake.NewDriver().Open(target.Config{DSN: secret.New(server.DSN())})
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = db.Close() })
		return NewHistory(db, plugin.EnrichPlan{Page: pageOfHistory, PageSize: 10_000}), nil
	}
}

// TestThroughTheDriver reads a history of several pages from the stand-in.
func TestThroughTheDriver(t *testing.T) {
	const n = 25_000
	_, _, j := setup(t, n)
	fromStandIn(t, n, &j)
	e := run(t, j)
	if e.Status != engine.EnrichmentCompleted || e.Matched != n || e.Polls != 1 {
		t.Fatalf("%+v", e)
	}
	if s := e.Total.Split; s.Compilation <= 0 || s.Execution <= s.Compilation {
		t.Fatalf("the parts are %+v", s)
	}
}

// BenchmarkEnrichFromStandIn is the enrichment of a million executions as a run has it: driver, protocol, the
// stand-in's SQL.
func BenchmarkEnrichFromStandIn(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		b.StopTimer()
		_, _, j := setup(b, n)
		fromStandIn(b, n, &j)
		runtime.GC()
		var before, most runtime.MemStats
		runtime.ReadMemStats(&before)
		j.Progress = func(engine.Enrichment) {
			var m runtime.MemStats
			if runtime.ReadMemStats(&m); m.HeapInuse > most.HeapInuse {
				most = m
			}
		}
		b.StartTimer()
		e, err := Run(b.Context(), j)
		if err != nil || e.Matched != n {
			b.Fatalf("%v: %+v", err, e)
		}
		// The stand-in's own record is in this process too, and there before.
		b.ReportMetric(float64(most.HeapInuse-min(before.HeapInuse, most.HeapInuse))/(1<<20), "MB-heap-above-the-stand-in")
	}
}
