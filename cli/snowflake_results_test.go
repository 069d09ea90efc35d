package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
)

// TestTheAccountIsTheAuthority: no table is made at run time; once the schema is applied, a run that has ended is in each
// of the tables, with its run workers, its log and what the account's history says of its executions, and the report
// that is read back from there is the original.
func TestTheAccountIsTheAuthority(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	s := p.StandIn("--listen", "127.0.0.1:0", "--password-file", p.Write("password", "hunter2\n"), "--time-scale", "10")
	defer s.Stop(t)
	account, err := snowflake.NewDriver().Open(target.Config{DSN: secret.New(s.Dsn), ConnectTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer account.Close()
	one := func(sql string) string {
		t.Helper()
		rs, err := account.Query(t.Context(), sql)
		if err != nil || len(rs.Rows) != 1 {
			t.Fatalf("%s: %v, %v", sql, rs, err)
		}
		return fmt.Sprint(rs.Rows[0]...)
	}
	server := p.Serve("--refresh-workers", "2", "--results-connection", "lake")
	defer func() { server.Stop() }()
	body, err := json.Marshal(map[string]any{"name": "lake", "driver": "snowflake", "dsn": s.Dsn})
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := server.Send("POST", "/api/connections", string(body)); status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	if err := account.Exec(
		t.Context(),
		"CREATE WAREHOUSE KEEP_WH INITIALLY_SUSPENDED = TRUE AUTO_RESUME = TRUE",
	); err != nil {
		t.Fatal(err)
	}
	id := server.AwaitEnd(server.StartRun(fmt.Sprintf("name: kept\ntarget:\n  connection: {driver: snowflake, dsn: %q}\n"+
		"  adapter: snowflake_standard\n  table_name: orders\n  prepare: {rows: 100, if_exists: use}\n"+
		"  warehouse: LOADSTONE_WH\n  housekeeping_warehouse: KEEP_WH\n"+
		"workload: {plugin: mix, concurrent_connections: 2, warmup_seconds: 1, duration_seconds: 3}\n"+
		"scaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 1}\n", s.Dsn)).RunID).RunID
	clitest.WaitFor(t, time.Minute, "word that the schema is missing", func() bool {
		_, answer := server.Send("POST", "/api/query", `{"sql":"SELECT problem FROM rollup.exports"}`)
		return strings.Contains(answer, "loadstone schema apply --snowflake lake")
	})
	if got := one("SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = 'TEST_RESULTS'"); got != "0" {
		t.Error("a run has made tables")
	}
	code, text := p.Command("schema", "check", "--snowflake", "lake", "--data-dir", p.Path("data"))
	if code == 0 || !strings.Contains(text, "schema apply --snowflake lake") {
		t.Errorf("check of an account without the schema: exit %d, %s", code, text)
	}
	for _, done := range []string{"TEST_LOGS: created", "TEST_LOGS: current"} {
		if code, text := p.Command(
			"schema",
			"apply",
			"--snowflake",
			"lake",
			"--data-dir",
			p.Path("data"),
		); code != 0 ||
			!strings.Contains(text, done) ||
			!strings.Contains(text, "The schema is current") {
			t.Fatalf("exit %d, without %q: %s", code, done, text)
		}
	}
	clitest.WaitFor(t, 2*time.Minute, "run in the account", func() bool {
		return one("SELECT COUNT(*) FROM TEST_RESULTS WHERE FINGERPRINT IS NOT NULL") == "1"
	})
	for sql, want := range map[string]string{
		"SELECT STATUS || ' ' || CONTAINS(SCENARIO_CONFIG:workload::VARCHAR, 'mix') FROM RUN_STATUS":                      "COMPLETED true",
		"SELECT COUNT(*) > 3 FROM RUN_CONTROL_EVENTS":                                                                     "true",
		"SELECT COUNT(*) || ' ' || MIN(STATUS) FROM WORKER_HEARTBEATS":                                                    "2 COMPLETED",
		"SELECT COUNT(DISTINCT WORKER_ID) || ' ' || (COUNT_IF(PHASE = 'MEASUREMENT') >= 6) FROM WORKER_METRICS_SNAPSHOTS": "2 true",
		"SELECT MIN(DATEDIFF('second', r.START_TIME, m.TIMESTAMP)) < 60 AND COUNT(*) > 3 FROM METRICS_SNAPSHOTS m " +
			"JOIN RUN_STATUS r ON r.RUN_ID = m.RUN_ID": "true",
		"SELECT COUNT(*) > 0 AND MIN(RAW_RESULT:name::VARCHAR) = MIN(WAREHOUSE_NAME) FROM WAREHOUSE_POLL_SNAPSHOTS": "true",
		"SELECT COUNT(*) > 3 AND MIN(LOG_ID) <> MAX(LOG_ID) FROM TEST_LOGS":                                         "true",
		"SELECT COUNT_IF(TEST_ID = RUN_ID) || ' ' || COUNT_IF(TEST_ID <> RUN_ID AND WORKER_ID IS NOT NULL) || ' ' || " +
			"MAX(ENRICHMENT_STATUS) FROM TEST_RESULTS": "1 2 COMPLETED",
		"SELECT COUNT(*) > 0 AND COUNT(*) = COUNT(r.TEST_ID) AND COUNT(e.SERVER_MS) / COUNT(*) > 0.9 AND " +
			"MIN(e.OVERHEAD_MS) = MIN(e.APP_ELAPSED_MS - e.SCHEDULE_LAG_MS - e.POOL_WAIT_MS - e.SERVER_MS) " +
			"FROM QUERY_EXECUTIONS e JOIN TEST_RESULTS r ON r.TEST_ID = e.TEST_ID WHERE r.TEST_ID <> r.RUN_ID": "true",
		"SELECT COUNT(*) > 0 FROM V_WAREHOUSE_TIMESERIES": "true",
		// Enrichment ran on the warehouse that is named for it, and the load on its own.
		"SELECT LISTAGG(DISTINCT WAREHOUSE_NAME, ' ') FROM TABLE(INFORMATION_SCHEMA.QUERY_HISTORY(RESULT_LIMIT => 10000)) " +
			"WHERE QUERY_TEXT LIKE '%INFORMATION_SCHEMA.QUERY_HISTORY%' AND QUERY_TEXT NOT LIKE '%LISTAGG%'": "KEEP_WH",
		"SELECT MIN(WAREHOUSE_NAME) FROM WAREHOUSE_POLL_SNAPSHOTS": "LOADSTONE_WH",
	} {
		if got := one(sql); got != want {
			t.Errorf("%s\ngives %s, not %s", sql, got, want)
		}
	}
	// What users note afterwards follows.
	for path, body := range map[string]string{"marks": `{"at":"` + time.Now().UTC().Format(time.RFC3339) +
		`","text":"index made"}`} {
		if status, answer := server.Send("POST", "/api/v1/runs/"+id+"/"+path, body); status/100 != 2 {
			t.Fatalf("%d %s", status, answer)
		}
	}
	if status, answer := server.Send("PUT", "/api/runs/"+id+"/note", `{"text":"nightly","version":0}`); status/100 != 2 {
		t.Fatalf("%d %s", status, answer)
	}
	clitest.WaitFor(t, 2*time.Minute, "mark and note in the account", func() bool {
		return one("SELECT COALESCE((SELECT MAX(MARK_TEXT) FROM RUN_MARKS), '') || ' ' || "+
			"COALESCE((SELECT MAX(NOTE) FROM RUN_NOTES), '') || ' ' || "+
			"(SELECT COUNT(*) FROM TEST_RESULTS WHERE FINGERPRINT IS NOT NULL)") == "index made nightly 1"
	})
	clitest.WaitFor(t, time.Minute, "kinds of the run", func() bool {
		status, _ := server.Send("GET", "/api/v1/runs/"+id+"/kinds", "")
		return status == http.StatusOK
	})
	original, back := p.Path("original.html"), p.Path("back.html")
	if status, page := server.Send("GET", "/api/runs/"+id+"/report", ""); status != http.StatusOK ||
		os.WriteFile(original, []byte(page), 0o600) != nil {
		t.Fatal(status)
	}
	if code, text := p.Command(
		"report",
		id,
		"--from",
		"snowflake",
		"--out",
		back,
		"--data-dir",
		p.Path("data"),
	); code != 0 {
		t.Fatalf("exit %d: %s", code, text)
	}
	var want, got map[string]any
	for path, into := range map[string]*map[string]any{original: &want, back: &got} {
		page, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal([]byte(reportContent(t, string(page))), into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range want {
		if name != "made_at" && !reflect.DeepEqual(want[name], got[name]) {
			t.Errorf("%s of the report is\n%v\nand read back\n%v", name, want[name], got[name])
		}
	}
	other := "00000000-0000-4000-8000-000000000000"
	if code, text := p.Command(
		"report",
		other,
		"--from",
		"snowflake",
		"--out",
		back,
		"--data-dir",
		p.Path("data"),
	); code == 0 ||
		!strings.Contains(text, "does not have run "+other) {
		t.Errorf("a run that is not there: exit %d, %s", code, text)
	}
}

// TestARunIsCopiedToTheAccountWhileItGoesOn: where its template asks for that, and never where results go nowhere. The
// plan says before the load what the run costs at least.
func TestARunIsCopiedToTheAccountWhileItGoesOn(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	s := p.StandIn("--listen", "127.0.0.1:0", "--password-file", p.Write("password", "hunter2\n"), "--time-scale", "10")
	defer s.Stop(t)
	account, err := snowflake.NewDriver().Open(target.Config{DSN: secret.New(s.Dsn), ConnectTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer account.Close()
	source := fmt.Sprintf("name: live\nexport: live\ntarget:\n  connection: {driver: snowflake, dsn: %q}\n"+
		"  adapter: snowflake_standard\n  table_name: orders\n  prepare: {rows: 100, if_exists: use}\n"+
		"workload: {plugin: mix, concurrent_connections: 2, warmup_seconds: 0, duration_seconds: 45}\n"+
		"scaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 1}\n", s.Dsn)
	if code, text := p.Command("run", p.Write("live.yaml", source)); code == 0 ||
		!strings.Contains(text, "--results-connection") {
		t.Errorf("without a place for results: exit %d, %s", code, text)
	}
	if code, text := p.Command("schema", "apply", "--snowflake", "file:"+p.Write("dsn", s.Dsn)); code != 0 {
		t.Fatalf("exit %d: %s", code, text)
	}
	server := p.Serve("--refresh-workers", "2", "--results-connection", "lake")
	defer func() { server.Stop() }()
	body, err := json.Marshal(map[string]any{"name": "lake", "driver": "snowflake", "dsn": s.Dsn})
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := server.Send("POST", "/api/connections", string(body)); status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	id := server.StartRun(source).RunID
	seen := func() string {
		rs, err := account.Query(t.Context(), `SELECT COALESCE(MAX(STATUS), '') || ' ' ||
			(SELECT COUNT(*) > 0 FROM RUN_CONTROL_EVENTS) || ' ' ||
			(SELECT COUNT(DISTINCT WORKER_ID) FROM WORKER_METRICS_SNAPSHOTS) || ' ' || (SELECT COUNT(*) > 0 FROM TEST_LOGS) ||
			' ' || (SELECT COUNT(*) > 0 FROM WAREHOUSE_POLL_SNAPSHOTS) || ' ' ||
			(SELECT COUNT(*) = COUNT(DISTINCT WORKER_ID || '/' || TICK) FROM WORKER_METRICS_SNAPSHOTS) || ' ' ||
			(SELECT COUNT(*) FROM TEST_RESULTS) FROM RUN_STATUS WHERE RUN_ID = ?`, id)
		if err != nil || len(rs.Rows) != 1 {
			t.Fatalf("%v, %v", rs, err)
		}
		return fmt.Sprint(rs.Rows[0]...)
	}
	clitest.WaitFor(t, time.Minute, "a run that goes on in the account", func() bool {
		return seen() == "RUNNING true 2 true true true 0"
	})
	var before struct {
		Plan struct {
			Least *struct {
				Credits *float64 `json:"credits"`
				Seconds float64  `json:"seconds"`
			} `json:"least_cost"`
		} `json:"plan"`
	}
	status, answer := server.Send("GET", "/api/runs/"+id, "")
	if err := json.Unmarshal([]byte(answer), &before); err != nil || status != http.StatusOK || before.Plan.Least == nil ||
		before.Plan.Least.Credits == nil || before.Plan.Least.Seconds < 45 || *before.Plan.Least.Credits <= 0 {
		t.Errorf("the plan does not say what the run costs: %+v, %v", before.Plan.Least, err)
	}
	server.AwaitEnd(id)
	clitest.WaitFor(t, 2*time.Minute, "the whole run in the account", func() bool {
		return seen() == "COMPLETED true 2 true true true 3"
	})
}
