package cli

import (
	"encoding/csv"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
)

// rowsOf reads what a query has written to a file, once it is gone: rows by runId and phase.
func (s streamsServer) rowsOf(p *clitest.Program, query, file string) map[[2]string][][]string {
	s.T.Helper()
	s.done("DROP QUERY " + query + " GRACEFUL")
	s.until(query, "")
	text, err := os.Open(p.Path("data/streams/" + file))
	if err != nil {
		s.T.Fatal(err)
	}
	defer text.Close()
	all, err := csv.NewReader(text).ReadAll()
	if err != nil {
		s.T.Fatal(err)
	}
	rows := map[[2]string][][]string{}
	for _, r := range all {
		rows[[2]string{r[0], r[1]}] = append(rows[[2]string{r[0], r[1]}], r[2:])
	}
	return rows
}

// sum adds up a column of rows; there may be several where the test runs at midnight.
func (s streamsServer) sum(rows [][]string, column int) (n int64) {
	s.T.Helper()
	for _, r := range rows {
		v, err := strconv.ParseInt(r[column], 10, 64)
		if err != nil {
			s.T.Fatal(err)
		}
		n += v
	}
	return n
}

// TestExecutionsAreThoseOfTheAccount: of two runs that go on at the same time, one of them of transactions, all
// executions are told and no other, the warm-up apart; quantiles are those of the exact figures, within the error of
// the histogram; kinds and statements add up to them.
func TestExecutionsAreThoseOfTheAccount(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	s := streamsServer{p.Serve()}
	s.done(`CREATE SINK all_of TYPE FILE SET('all.csv' AS SINK.FILE_PATH);
		CREATE SINK kinds TYPE FILE SET('kinds.csv' AS SINK.FILE_PATH);
		CREATE SINK statements TYPE FILE SET('statements.csv' AS SINK.FILE_PATH);
		CREATE QUERY executed AS SELECT runId, phase, COUNT(*) AS n, SUM(CASE WHEN success THEN 0 ELSE 1 END) AS failed,
			QUANTILE(latencyMs, 0.99) AS p99, MAX(latencyMs) AS most, SUM(CASE WHEN warmup THEN 1 ELSE 0 END) AS warm,
			SUM(rows) AS touched
			FROM executions GROUP BY runId, phase WINDOW TUMBLING(timestamp, SIZE 1 DAY) INTO all_of;
		CREATE QUERY by_kind AS SELECT runId, phase, SUM(recordsProcessed) AS n, SUM(errors) AS failed
			FROM kind_statistics GROUP BY runId, phase WINDOW TUMBLING(timestamp, SIZE 1 DAY) INTO kinds;
		CREATE QUERY by_statement AS SELECT runId, phase, SUM(CASE WHEN inTransaction THEN 0 ELSE recordsProcessed END) AS n,
			SUM(CASE WHEN inTransaction THEN recordsProcessed ELSE 0 END) AS inside
			FROM statement_statistics GROUP BY runId, phase WINDOW TUMBLING(timestamp, SIZE 1 DAY) INTO statements`)
	for _, q := range []string{"executed", "by_kind", "by_statement"} {
		s.until(q, "RUNNING")
	}
	runs := []engine.Run{s.StartRun(`name: mix
target: {connection: playground, adapter: postgres, table_name: orders, prepare: {rows: 1000, if_exists: use}}
workload: {plugin: mix, params: {weights: {POINT_LOOKUP: 60, RANGE_SCAN: 10, INSERT: 15, UPDATE: 15}},
  concurrent_connections: 4, warmup_seconds: 1, duration_seconds: 4}
scaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 2}
`), s.StartRun(`name: tpcb
target: {connection: playground, adapter: postgres, prepare: {if_exists: use}}
workload: {plugin: tpcb, params: {scale: 1, script: tpcb-like}, load_mode: QPS, target_qps: 50, warmup_seconds: 1,
  concurrent_connections: 4, duration_seconds: 4}
`)}
	var ends []engine.RunDetail
	for _, r := range runs {
		d := s.AwaitEnd(r.RunID)
		if d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced {
			t.Fatalf("%s %+v", d.Status, d.Summary)
		}
		ends = append(ends, d)
	}
	executed, kinds := s.rowsOf(p, "executed", "all.csv"), s.rowsOf(p, "by_kind", "kinds.csv")
	statements := s.rowsOf(p, "by_statement", "statements.csv")
	for _, d := range ends {
		a, latency := d.Summary.Accounting, d.Summary.LatencyMs
		inside, ofKinds := int64(0), int64(0)
		for phase, want := range map[string]int64{"WARMUP": a.Warmup, "MEASUREMENT": a.Started - a.Warmup} {
			key := [2]string{d.RunID, phase}
			rows := executed[key]
			for what, n := range map[string]int64{"executions": s.sum(rows, 0),
				"statements": s.sum(statements[key], 0)} {
				if n != want || want == 0 {
					t.Errorf("%s %s: %d %s are told of %d", d.RunName, phase, n, what, want)
				}
			}
			warm := int64(0)
			if phase == "WARMUP" {
				warm = want
			}
			if n := s.sum(rows, 4); n != warm {
				t.Errorf("%s %s: %d are of the warm-up", d.RunName, phase, n)
			}
			inside += s.sum(statements[key], 1)
			ofKinds += s.sum(kinds[key], 0)
			if phase == "WARMUP" || len(rows) != 1 {
				continue
			}
			p99, _ := strconv.ParseFloat(rows[0][2], 64)
			limit, _ := strconv.ParseFloat(rows[0][3], 64)
			// The exact one lies between two executions, the told one in the bucket of one of them.
			if exact := latency.P99; p99 < 0.985*exact || p99 > 1.015*exact || limit != latency.Max {
				t.Errorf("%s: P99 %g of %g, the longest %g of %g", d.RunName, p99, exact, limit, latency.Max)
			}
		}
		// Their phase is that of the second: what was under way when it began is of the other one.
		if ofKinds != a.Started {
			t.Errorf("%s: %d of kinds are told of %d", d.RunName, ofKinds, a.Started)
		}
		if inside != a.Statements {
			t.Errorf("%s: %d statements inside transactions are told of %d", d.RunName, inside, a.Statements)
		}
	}
	s.Stop()
}

// TestARuleStopsARunWithinTwoSeconds: from the execution that breaks the rule until the run has ended.
func TestARuleStopsARunWithinTwoSeconds(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	s := streamsServer{clitest.NewProgram(t).Serve()}
	s.done(`CREATE SINK stop_run TYPE GUARDRAIL;
		CREATE QUERY one AS SELECT runId, timestamp FROM executions WHERE connection = 0 AND seq = 20 INTO stop_run`)
	s.until("one", "RUNNING")
	d := s.AwaitEnd(s.StartRun(`name: stopped
target: {connection: playground, adapter: postgres, table_name: orders, prepare: {rows: 1000, if_exists: use}}
workload: {plugin: mix, params: {weights: {POINT_LOOKUP: 100}}, concurrent_connections: 1, think_time_ms: 50,
  duration_seconds: 60}
`).RunID)
	if d.Status != engine.StatusFailed || d.CancellationReason == nil {
		t.Fatalf("%s %v", d.Status, d.CancellationReason)
	}
	_, text, _ := strings.Cut(*d.CancellationReason, "timestamp ")
	row, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatalf("%s: %v", *d.CancellationReason, err)
	}
	if took := d.EndTime.Sub(row); took < 0 || took > 2*time.Second {
		t.Errorf("it ended %v after the row", took)
	} else {
		t.Logf("it ended %v after the row", took)
	}
	s.Stop()
}
