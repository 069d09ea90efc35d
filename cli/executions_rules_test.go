package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
)

// quickAndSlowRun is a run of two statements, one of which takes 0.2 s, with rules.
func quickAndSlowRun(target, rules string) string {
	return fmt.Sprintf(`name: quick and slow
target: {connection: %s, adapter: postgres, table_name: orders, prepare: {rows: 1000, if_exists: use}}
workload:
  plugin: sql
  params:
    statements:
      - {id: quick, sql: SELECT 1, weight: 95}
      - {id: slow, sql: SELECT pg_sleep(0.2), weight: 5}
  load_mode: QPS
  target_qps: 100
  concurrent_connections: 8
  warmup_seconds: 1
  duration_seconds: 60
scaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 4}
rules:
%s`, target, rules)
}

// slowStatement is a rule that stops a run whose statement slow had a P99 above 150 ms in a second.
const slowStatement = `  - name: slow
    when: |
      SELECT start, end, statement, QUANTILE(latencyMs, 0.99) AS p99 FROM executions
      WHERE statement = 'slow' AND phase = 'MEASUREMENT'
      GROUP BY statement WINDOW TUMBLING(timestamp, SIZE 1 SEC)
      HAVING p99 > 150
  - name: quick
    when: |
      SELECT statement, QUANTILE(latencyMs, 0.99) AS p99 FROM executions WHERE statement = 'quick' AND latencyMs < 0
      GROUP BY statement WINDOW TUMBLING(timestamp, SIZE 1 SEC)
  - name: statements
    when: SELECT SUM(recordsProcessed) AS n FROM statement_statistics WINDOW TUMBLING(timestamp, SIZE 1 SEC) HAVING n < 0
`

var triggeredLine = regexp.MustCompile(`^Rule 'slow' triggered: start (\S+), end (\S+), statement slow, p99 (\d+)`)

// stopDelay is how long after the end of the window that the reason names a run has ended.
func stopDelay(t *testing.T, reason *string, end engine.Time) time.Duration {
	t.Helper()
	if reason == nil {
		t.Fatal("the run has no reason")
	}
	m := triggeredLine.FindStringSubmatch(*reason)
	if m == nil {
		t.Fatalf("the reason is %q", *reason)
	}
	row, err := time.Parse(time.RFC3339, strings.TrimSuffix(m[2], ","))
	if err != nil {
		t.Fatal(err)
	}
	took := end.Sub(row)
	if took < 0 || took > 2*time.Second {
		t.Errorf("it ended %v after the row: %s", took, *reason)
	}
	return took
}

// TestARunIsStoppedByARuleOverItsExecutions: loadstone run, and a run of a server: within two seconds, with the row as
// its reason in the result, the log and what the page shows; rules that nothing breaks end with the run.
func TestARunIsStoppedByARuleOverItsExecutions(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	code, text, summary := p.Run(p.Write("rules.yaml", quickAndSlowRun("playground", slowStatement)))
	if code != 2 || summary == nil || summary.Status != engine.StatusFailed ||
		!strings.Contains(text, "Rule 'slow' triggered: ") {
		t.Fatalf("%d %s", code, text)
	}
	t.Logf("it ended %v after the row", stopDelay(t, summary.CancellationReason, summary.EndTime))
	s := streamsServer{p.Serve()}
	// Queries of the server over the same executions go on beside the rules, and have all of them.
	s.done(bySecond)
	s.until("counted", "RUNNING")
	d := s.AwaitEnd(s.StartRun(quickAndSlowRun("playground", slowStatement)).RunID)
	if d.Status != engine.StatusFailed || d.StopReason != engine.StopGuardrail {
		t.Fatalf("%s %s", d.Status, d.StopReason)
	}
	t.Logf("it ended %v after the row", stopDelay(t, d.CancellationReason, d.EndTime))
	clitest.WaitFor(t, time.Minute, "the end of its rules", func() bool {
		d = s.AwaitEnd(d.RunID)
		return len(d.Rules) == 3 && d.Rules[1].Status == engine.RuleEnded && d.Rules[2].Status == engine.RuleEnded
	})
	if slow := d.Rules[0]; slow.Status != engine.RuleTriggered || slow.Row == "" || d.Rules[1].In != slow.In ||
		slow.In != d.Summary.Accounting.Started || d.Rules[2].In == 0 {
		t.Errorf("%+v, of %+v", d.Rules, d.Summary.Accounting)
	}
	s.exact(p, d, nil)
	s.Stop()
}

// TestRulesOverExecutionsAreCheckedBefore: a template whose rule is wrong is refused with its place; nothing begins.
func TestRulesOverExecutionsAreCheckedBefore(t *testing.T) {
	t.Parallel()
	p := clitest.NewProgram(t)
	bad := strings.Replace(
		quickAndSlowRun("playground", slowStatement),
		"QUANTILE(latencyMs, 0.99) AS p99 FROM executions\n",
		"QUANTILE(latncyMs, 0.99) AS p99 FROM executions\n",
		1,
	)
	code, text, summary := p.Run(p.Write("rules.yaml", bad))
	if code == 0 || summary != nil || !strings.Contains(text, "there is no column latncyMs") ||
		!strings.Contains(text, "did you mean latencyMs?") || !strings.Contains(text, "line 18") {
		t.Errorf("%d %s", code, text)
	}
}
