package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// startSteadyRun is a run of so many executions a second, for so many seconds.
func startSteadyRun(target string, rate, seconds int) string {
	return fmt.Sprintf(`name: steady
target: {connection: %s, adapter: postgres, table_name: orders, prepare: {rows: 1000, if_exists: use}}
workload: {plugin: mix, params: {weights: {POINT_LOOKUP: 80, UPDATE: 20}}, load_mode: QPS, target_qps: %d,
  concurrent_connections: 4, warmup_seconds: 1, duration_seconds: %d}
scaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 2}
`, target, rate, seconds)
}

// costly has of each execution a text of half a million letters changed from small to large ones and back: about a
// millisecond of processor time, of which all queries over executions together have 80 a second on two processors.
const costly = `SELECT timestamp, runId FROM (
	SELECT timestamp, runId, CONCAT(c, c, c, c, c, c, c, c) AS d FROM (
	SELECT timestamp, runId, CONCAT(b, b, b, b, b, b, b, b) AS c FROM (
	SELECT timestamp, runId, CONCAT(a, a, a, a, a, a, a, a) AS b FROM (
	SELECT timestamp, runId, CONCAT(a, a, a, a, a, a, a, a) AS a FROM (
	SELECT timestamp, runId, CONCAT(a, a, a, a, a, a, a, a) AS a FROM (
	SELECT timestamp, runId, CONCAT(workerId, workerId) AS a FROM executions))))))
	WHERE LENGTH(UPPER(LOWER(UPPER(d)))) < 0`

// counters are what became of the rows of a query.
type counters struct {
	In, Out, Late, Ahead, Timeless, Dropped, Overflow, Cast int64
	DivisionByZero                                          int64 `json:"division_by_zero"`
}

// counters are those of a query that there is.
func (s streamsServer) counters(name string) (c counters) {
	s.T.Helper()
	var all struct {
		Queries []struct {
			Name string
			Live *counters
		}
	}
	if err := json.Unmarshal([]byte(s.MustGet("/api/v1/streams")), &all); err != nil {
		s.T.Fatal(err)
	}
	for _, q := range all.Queries {
		if q.Name == name && q.Live != nil {
			c = *q.Live
		}
	}
	return c
}

// balanced waits until a query has had so many rows, those that it left out among them, and sees that no more come.
func (s streamsServer) balanced(name string, want int64) counters {
	s.T.Helper()
	var c counters
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if c = s.counters(name); c.In+c.Dropped >= want {
			break
		}
	}
	time.Sleep(1500 * time.Millisecond) // a report is told once a second
	if c = s.counters(name); c.In+c.Dropped != want {
		s.T.Errorf("%s has read %d and left out %d of %d executions", name, c.In, c.Dropped, want)
	}
	return c
}

// complete sees that a run has done what it was asked for, whatever was read beside it.
func (s streamsServer) complete(d engine.RunDetail) int64 {
	s.T.Helper()
	a := d.Summary.Accounting
	if d.Status != engine.StatusCompleted || !a.Balanced || a.Started == 0 || d.Summary.Errors.Count != 0 {
		s.T.Fatalf("%s %v %+v", d.Status, d.CancellationReason, a)
	}
	return a.Started
}

// TestQueriesThatAreTooMuchEndAndTheRunGoesOn: one that takes more of the processors than it may is told so and ended,
// one that may leave rows out does and counts them, one that groups by what is of each execution fails with its limit;
// a query and a rule beside them have every execution.
func TestQueriesThatAreTooMuchEndAndTheRunGoesOn(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	s := streamsServer{p.Serve()}
	var states []string
	for n := range 40 {
		states = append(states, fmt.Sprintf("QUANTILE(latencyMs + %d, 0.99) AS q%d", n, n))
	}
	s.done(bySecond + "; CREATE SINK nowhere TYPE PRINT; CREATE QUERY costly AS " + costly + " INTO nowhere;" +
		"CREATE QUERY drops AS " + costly + " ON OVERFLOW DROP INTO nowhere;" +
		"CREATE QUERY bomb AS SELECT runId, connection, seq, " + strings.Join(states, ", ") +
		" FROM executions GROUP BY runId, connection, seq WINDOW TUMBLING(timestamp, SIZE 1 DAY) INTO nowhere")
	for _, q := range []string{"counted", "costly", "drops", "bomb"} {
		s.until(q, "RUNNING")
	}
	rules := "rules:\n  - {name: all, when: SELECT runId FROM executions WHERE latencyMs < 0}\n" +
		"  - name: costly\n    when: |\n      " + strings.ReplaceAll(costly, "\n", "\n      ") +
		"\n  - name: bomb\n    when: |\n      SELECT connection, seq, " +
		strings.Join(states, ", ") + " FROM executions GROUP BY connection, seq WINDOW TUMBLING(timestamp, SIZE 1 DAY)\n"
	d := s.AwaitEnd(s.StartRun(startSteadyRun("playground", 500, 25) + rules).RunID)
	started := s.complete(d)
	for name, want := range map[string][]string{
		"costly": {"Overloaded: ", "cannot keep up with executions", "of processor time",
			// 4 % of the processors that there are, whatever event loops have been lent.
			fmt.Sprintf("may take %d ms a second", 40*runtime.GOMAXPROCS(0))},
		"bomb": {"StateLimit: ", "would hold more than "}} {
		s.until(name, "FAILED")
		q, rule := s.query(name), engine.RuleState{}
		for _, r := range d.Rules {
			if r.Name == name {
				rule = r
			}
		}
		for _, part := range want {
			if !strings.Contains(q.Failure, part) || rule.Status != engine.RuleFailed ||
				!strings.Contains(rule.Failure, part) {
				t.Errorf("%s: %q is not said by the query (%q), or not by the rule: %+v", name, part, q.Failure, rule)
			}
		}
	}
	if c := s.balanced("drops", started); c.Dropped == 0 || c.In == 0 {
		t.Errorf("%+v", c)
	}
	s.until("drops", "RUNNING")
	clitest.WaitFor(t, time.Minute, "the end of its rules", func() bool {
		d = s.AwaitEnd(d.RunID)
		return d.Rules[0].Status == engine.RuleEnded
	})
	if d.Rules[0].In != started {
		t.Errorf("%+v of %d", d.Rules[0], started)
	}
	s.exact(p, d, nil)
	s.Stop()
}

// TestWhatIsLeftOutOnANodeIsCounted: the same over the wire, at the head that runs there.
func TestWhatIsLeftOutOnANodeIsCounted(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	load := pgtest.Start(t).NewDatabase(t)
	s, nodes, p := streamNodes(t, 1, "--local-capacity", "0")
	s.done(bySecond + "; CREATE SINK nowhere TYPE PRINT; CREATE QUERY drops AS " + costly +
		" ON OVERFLOW DROP INTO nowhere")
	s.until("counted", "RUNNING")
	s.until("drops", "RUNNING")
	d := s.AwaitEnd(s.StartRun(startSteadyRun(fmt.Sprintf("{driver: postgres, dsn: %q}", load), 500, 8)).RunID)
	started := s.complete(d)
	if c := s.balanced("drops", started); c.Dropped == 0 || c.In == 0 {
		t.Errorf("%+v", c)
	}
	s.exact(p, d, nodes)
	s.Stop()
}

// TestOddTimesAndValuesOfExecutions: times of the far future, of the past and none are counted, each; values that
// cannot be computed are NULL and counted, NaN is a value. What is left adds up to the account of the run.
func TestOddTimesAndValuesOfExecutions(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	s := streamsServer{p.Serve()}
	s.done(`CREATE SINK times TYPE FILE SET('times.csv' AS SINK.FILE_PATH);
		CREATE SINK odd TYPE FILE SET('odd.csv' AS SINK.FILE_PATH);
		CREATE QUERY by_time AS SELECT runId, 'all' AS phase, COUNT(*) AS n FROM (SELECT runId, CASE seq % 4 WHEN 0 THEN
			timestamp + 31536000000 WHEN 1 THEN NULL WHEN 2 THEN timestamp - 864000000 ELSE timestamp END AS at
			FROM executions) GROUP BY runId WINDOW TUMBLING(at, SIZE 1 SEC, LATENESS 30 SEC) INTO times;
		CREATE QUERY by_value AS SELECT runId, 'all' AS phase, COUNT(*) AS n, COUNT(1 / (seq % 2)) AS odd,
			COUNT(9223372036854775807 + seq % 2) AS even,
			COUNT(CAST(CASE seq % 2 WHEN 0 THEN 'x' ELSE '1' END AS INT64)) AS numbers,
			MAX(CAST(CASE seq % 2 WHEN 0 THEN 'NaN' ELSE '1' END AS FLOAT64)) AS most,
			COUNT(CAST(CASE seq % 2 WHEN 0 THEN 'NaN' ELSE '1' END AS FLOAT64)) AS floats, COUNT(errorClass) AS failed,
			SUM(9223372036854775807) AS huge
			FROM executions GROUP BY runId WINDOW TUMBLING(timestamp, SIZE 1 DAY) INTO odd`)
	s.until("by_time", "RUNNING")
	s.until("by_value", "RUNNING")
	d := s.AwaitEnd(s.StartRun(startSteadyRun("playground", 200, 4)).RunID)
	started := s.complete(d)
	c := s.balanced("by_time", started)
	v := s.balanced("by_value", started)
	key := [2]string{d.RunID, "all"}
	in := s.sum(s.rowsOf(p, "by_time", "times.csv")[key], 0)
	if c.Ahead == 0 || c.Timeless == 0 || c.Late == 0 || in == 0 || c.Ahead < started/5 ||
		c.Ahead+c.Timeless+c.Late+in < started || c.Timeless < started/5 {
		t.Errorf("%+v, %d in windows, of %d", c, in, started)
	}
	var odd, even int64
	for _, row := range s.rowsOf(p, "by_value", "odd.csv")[key] {
		n := s.sum([][]string{row}, 0)
		odd += s.sum([][]string{row}, 1)
		even += s.sum([][]string{row}, 2)
		numbers, floats := s.sum([][]string{row}, 3), s.sum([][]string{row}, 5)
		if numbers+s.sum([][]string{row}, 2) != n || floats != n || row[4] != "NaN" || row[6] != "0" || row[7] != "" {
			t.Errorf("%v", row)
		}
	}
	if odd == 0 || even == 0 || odd+even != started || v.DivisionByZero != even || v.Overflow < odd || v.Cast != even {
		t.Errorf("%d odd, %d even of %d: %+v", odd, even, started, v)
	}
	s.Stop()
}

// TestFiftyQueriesAtOnce: each has every execution of a run.
func TestFiftyQueriesAtOnce(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	s := streamsServer{p.Serve()}
	var create strings.Builder
	const many = 50
	for n := range many {
		fmt.Fprintf(&create, `CREATE SINK s%d TYPE FILE SET('q%d.csv' AS SINK.FILE_PATH);
			CREATE QUERY q%d AS SELECT runId, COUNT(*) AS n, QUANTILE(latencyMs, 0.99) AS p99 FROM executions GROUP BY runId
			WINDOW TUMBLING(timestamp, SIZE 1 SEC) INTO s%d;`, n, n, n, n)
	}
	s.done(create.String())
	for n := range many {
		s.until(fmt.Sprintf("q%d", n), "RUNNING")
	}
	d := s.AwaitEnd(s.StartRun(startSteadyRun("playground", 400, 5)).RunID)
	started := s.complete(d)
	s.balanced("q0", started)
	var drop strings.Builder
	for n := range many {
		fmt.Fprintf(&drop, "DROP QUERY q%d GRACEFUL;", n)
	}
	s.done(drop.String())
	for n := range many {
		s.until(fmt.Sprintf("q%d", n), "")
		text, err := os.ReadFile(p.Path(fmt.Sprintf("data/streams/q%d.csv", n)))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for _, r := range rows[1:] {
			sum += s.sum([][]string{r}, 1)
		}
		if sum != started {
			t.Errorf("q%d has counted %d of %d", n, sum, started)
		}
	}
	s.Stop()
}
