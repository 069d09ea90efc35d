package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/parquet-go/parquet-go"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/storage/derived/derivedtest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestBundledTablesOfRealRuns: what the tables hold of runs as they are, of several kinds and run workers, with errors,
// drops, stages, transactions, a warehouse and a crash, is what whoever reads their Parquet files computes.
func TestBundledTablesOfRealRuns(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("runs load for half a minute; make soak sets " + clitest.Soak)
	}
	p := clitest.NewProgram(t)
	account := p.StandIn("--listen", "127.0.0.1:0", "--time-scale", "10", "--lag", "1s")
	defer account.Stop(t)
	// A node of another process, which outlives the server: what it has recorded of the run that crashes survives.
	n := clitest.StartNode(t, p.Path("node"), "", "--capacity", "2")
	flags := []string{"--refresh-workers", "2", "--ingest", "executions", "--nodes", n.Address, "--calibrate", "off",
		"--local-capacity", "4"}
	server := p.Serve(flags...) // tests have no refresh workers of themselves
	const local = "target: {connection: playground, adapter: postgres, table_name: orders, prepare: {rows: 1000, " +
		"if_exists: use}}\n"
	mix := "name: mix\n" + local + "workload: {plugin: mix, params: {weights: {POINT_LOOKUP: 60, RANGE_SCAN: 10, " +
		"INSERT: 15, UPDATE: 15}}, concurrent_connections: 4, warmup_seconds: 1, duration_seconds: 2}\n" +
		"scaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 2}\n"
	saved, err := json.Marshal(map[string]string{"source": mix})
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := server.Send("POST", "/api/templates", string(saved)); status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	runs := []engine.Run{}
	// Two valid runs of a saved template have a baseline, which a busy machine does not give at once; and one that costs
	// something a price.
	valid, priced := 0, 0
	kept := func(begun engine.Run) {
		d := server.AwaitEnd(begun.RunID)
		if s := d.Summary; s != nil && strings.HasPrefix(s.Verdict, "VALID") {
			if d.Scenario.TemplateName != "" {
				valid++
			}
			if s.Cost != nil && s.Cost.PricePerMillion != nil {
				priced++
			}
		}
		runs = append(runs, d.Run)
	}
	for tries := 0; tries < 2 || valid < 2 && tries < 6; tries++ {
		kept(server.StartRunAs(map[string]any{"template_name": "mix", "start": true}))
	}
	for _, source := range []string{
		"name: drops\n" + local + "workload: {plugin: mix, load_mode: QPS, target_qps: 300, max_in_flight: 2, " +
			"concurrent_connections: 2, warmup_seconds: 0, stages: [{duration_seconds: 1, target_qps: 300}, " +
			"{duration_seconds: 2, target_qps: 6000}]}\n",
		"name: errors\n" + local + "workload:\n  plugin: sql\n  params:\n    statements:\n" +
			"    - {id: fine, weight: 80, sql: 'SELECT id FROM {table} LIMIT 3'}\n" +
			"    - {id: fails_often, weight: 20, sql: 'SELECT 1 / (id - id) FROM {table} LIMIT 1'}\n" +
			"  concurrent_connections: 2\n  warmup_seconds: 0\n  duration_seconds: 2\n",
		"name: tpcb\ntarget: {connection: playground, adapter: postgres, prepare: {if_exists: use}}\n" +
			"workload: {plugin: tpcb, params: {scale: 1, script: tpcb-like}, concurrent_connections: 2, " +
			"warmup_seconds: 1, duration_seconds: 2}\n",
	} {
		kept(server.StartRun(source))
	}
	paid := fmt.Sprintf("name: account\ntarget: {connection: {driver: snowflake, dsn: %q}, adapter: snowflake_standard, "+
		"table_name: orders, prepare: {rows: 1000, if_exists: use}}\n"+
		"workload: {plugin: mix, concurrent_connections: 2, warmup_seconds: 1, duration_seconds: 11}\n", account.Dsn)
	for tries := 0; tries < 1 || priced < 1 && tries < 3; tries++ {
		kept(server.StartRun(paid))
	}
	// One of its three run workers is on the node: there is no other room. The playground is the server's own.
	crash := server.StartRun(strings.NewReplacer("connection: playground", fmt.Sprintf(
		"connection: {driver: postgres, dsn: %q}", pgtest.Start(t).NewDatabase(t)),
		"duration_seconds: 2}", "duration_seconds: 60}", "concurrent_connections: 4",
		"concurrent_connections: 6", "worker_count: 2", "worker_count: 3").Replace(mix))
	clitest.WaitFor(t, clitest.StartTimeout, "measurement", func() bool {
		var d engine.RunDetail
		server.GetJSON("/api/runs/"+crash.RunID, &d)
		return d.Phase == engine.PhaseMeasurement
	})
	time.Sleep(2 * time.Second)
	_ = server.Cmd.Process.Signal(syscall.SIGKILL)
	<-server.Done
	// The session that is there goes on, so that it prints no link again.
	second := clitest.Launch(t, append([]string{"serve", "--data-dir", p.Path("data"), "--listen",
		strings.TrimPrefix(server.Base, "http://")}, flags...)...)
	server = &clitest.LiveServer{Process: second, T: t, Base: server.Base, HTTP: server.HTTP}
	defer server.Stop()
	clitest.WaitFor(t, clitest.StartTimeout, "the server's return", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.Base+"/api/v1/tables", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.HTTP.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	})
	runs = append(runs, server.AwaitEnd(crash.RunID).Run)
	var all []derivedtest.Run
	read := func() {
		all = nil
		for _, run := range runs {
			var d engine.RunDetail
			server.GetJSON("/api/runs/"+run.RunID, &d)
			one := derivedtest.Run{Single: true, Run: d.Run, Adapter: d.Scenario.Target.Adapter, Summary: d.Summary}
			var polls struct{ Points []engine.WarehousePoint }
			server.GetJSON("/api/runs/"+run.RunID+"/warehouse", &polls)
			one.Warehouse = polls.Points
			parts, _ := filepath.Glob(filepath.Join(p.Path("data"), "results", run.RunID, "executions-*.parquet"))
			for _, part := range parts {
				rows, err := parquet.ReadFile[derivedtest.Execution](part)
				if err != nil {
					t.Fatal(err)
				}
				one.Executions = append(one.Executions, rows...)
			}
			all = append(all, one)
		}
	}
	code, message := p.Command("query-user", "byhand", "--data-dir", p.Path("data"))
	i := strings.Index(message, "host=")
	if code != 0 || i < 0 {
		t.Fatalf("exit %d: %s", code, message)
	}
	conn, err := pgx.Connect(t.Context(), strings.TrimSpace(message[i:]))
	if err != nil {
		t.Fatalf("%v: %s", err, message)
	}
	defer conn.Close(t.Context())
	var awaited string
	var differences []string
	clitest.Until(t, clitest.StartTimeout, func() bool {
		var list struct {
			Tables  []refresh.Table
			Pending []refresh.Pending
		}
		server.GetJSON("/api/v1/tables", &list)
		var there int
		err := conn.QueryRow(t.Context(), "SELECT count(*) FROM tables.run_summary").Scan(&there)
		awaited = fmt.Sprintf("%d of %d runs are there (%v), pending: %+v", there, len(runs), err, list.Pending)
		for _, table := range list.Tables {
			if !table.BehindSince.IsZero() || table.AsOf.IsZero() && table.Kind == refresh.SQL {
				awaited += fmt.Sprintf(", %s is behind since %v, as of %v", table.Name, table.BehindSince, table.AsOf)
				err = errors.New("behind")
			}
		}
		return err == nil && there == len(runs) && len(list.Pending) == 0
	}, func() string { return awaited + "\n" + server.Out.String() })
	// What a run's enrichment brings in late is taken in after it: then the tables are looked at again.
	clitest.Until(t, clitest.StartTimeout, func() bool {
		read()
		withSubMilliseconds(t, conn, all)
		if differences, err = derivedtest.Differences(t.Context(), conn, all); err != nil {
			t.Fatal(err)
		}
		// What the node has of the run that crashed comes once it has ended there.
		return len(differences) == 0 && len(all[len(all)-1].Executions) > 0
	}, func() string { return strings.Join(differences, "\n") + "\n" + server.Out.String() })
	blind, err := derivedtest.InsensitiveTables(t.Context(), conn, all)
	// These two have rows of valid runs alone, and a machine that is too busy gives none.
	blind = slices.DeleteFunc(blind, func(name string) bool {
		return name == "cost_per_million" && priced == 0 || name == "baseline_drift" && valid < 2
	})
	t.Logf("%d valid runs of a saved template, %d with a price", valid, priced)
	if err != nil || len(blind) > 0 {
		t.Errorf("other runs would have these tables, too: %v, %v", blind, err)
	}
	for _, run := range all {
		// Single executions, put into seconds as the documentation says, are the roll-ups.
		if apart, err := derivedtest.CompareSeconds(t.Context(), conn, run.RunID); err != nil || len(apart) > 0 {
			t.Errorf("%s: %v, %s", run.RunName, err, strings.Join(apart, "\n"))
		}
		t.Logf("%s: %s, %d executions, %d polls", run.RunName, run.Status, len(run.Executions), len(run.Warehouse))
	}
}

// withSubMilliseconds gives instants the digits below a millisecond that answers of the API do not have: those of the
// tables, where they are the same to the millisecond. One that is another stays as it is, and is a difference.
func withSubMilliseconds(t *testing.T, conn *pgx.Conn, runs []derivedtest.Run) {
	t.Helper()
	known := func(id, sql string) map[int64]time.Time {
		rows, err := conn.Query(t.Context(), sql, id)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowTo[*time.Time])
		if err != nil {
			t.Fatal(err)
		}
		instants := map[int64]time.Time{}
		for _, at := range list {
			if at != nil {
				instants[at.UnixMilli()] = *at
			}
		}
		return instants
	}
	put := func(at *engine.Time, instants map[int64]time.Time) {
		if is, ok := instants[at.UnixMilli()]; ok && !at.IsZero() {
			at.Time = is
		}
	}
	for i := range runs {
		run := &runs[i]
		put(&run.StartTime, known(run.RunID, "SELECT started_at FROM tables.run_summary WHERE run_id = $1"))
		put(&run.EndTime, known(run.RunID, "SELECT ended_at FROM tables.run_summary WHERE run_id = $1"))
		polls := known(run.RunID, "SELECT polled_at FROM tables.warehouse_timeseries WHERE run_id = $1")
		for j := range run.Warehouse {
			put(&run.Warehouse[j].Timestamp, polls)
		}
	}
}
