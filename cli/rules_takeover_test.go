package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
)

// startWithRules starts a run on the node with rules, and waits until the first of them has read a while.
func (c *cluster) startWithRules(server int, rules string) (run engine.Run) {
	c.t.Helper()
	c.awaitNodes(server, 1)
	c.proxies[server].Do(
		"POST",
		"/api/runs",
		map[string]any{"start": true, "source": clitest.TemplateOnNodes(c.load, "ruled", 2,
			100) +
			"rules:\n" + rules},
		&run,
	)
	c.awaitRuleReads(server, run, 0)
	return run
}

// rulesOf are the rules of a run as a server shows them.
func (c *cluster) rulesOf(server int, run engine.Run) []engine.RuleState {
	c.t.Helper()
	var d engine.RunDetail
	c.proxies[server].Do("GET", "/api/runs/"+run.RunID, nil, &d)
	return d.Rules
}

// awaitRuleReads waits until the first rule of a run has read 600 rows more.
func (c *cluster) awaitRuleReads(server int, run engine.Run, from int64) {
	c.t.Helper()
	var rules []engine.RuleState
	clitest.Until(c.t, clitest.StartTimeout, func() bool {
		rules = c.rulesOf(server, run)
		return len(rules) > 0 && rules[0].In > from+600
	}, func() string { return fmt.Sprintf("%+v\n%s", rules, c.servers[server].Out.String()) })
}

// storedRules are the rules of a run as the store has them.
func (c *cluster) storedRules(run engine.Run) (rules []engine.RuleState) {
	c.t.Helper()
	if err := c.control.QueryRow(c.t.Context(), "SELECT rules_state FROM run_status WHERE run_id = $1",
		run.RunID).Scan(&rules); err != nil {
		c.t.Fatal(err)
	}
	return rules
}

// TestRulesOverNodesGoOnWithWhoTakesARunOver: the server that carries a run is killed. The other one begins its rules
// anew on the node: counts go on, a row that comes then stops the run, once, and a window is posted once. A server
// that was killed when it had kept that a rule had triggered, and not yet that the run was to stop, leaves that to the
// other.
func TestRulesOverNodesGoOnWithWhoTakesARunOver(t *testing.T) {
	clitest.Simulated(t)
	t.Parallel()
	clitest.LeasesOf.Store(t.Name(), "1500ms")
	at, posted := clitest.WebhookReceiver(t)
	c := newCluster(t)
	const all = "  - {name: all, when: SELECT runId FROM executions WHERE latencyMs < 0}\n"
	run := c.startWithRules(0, all+fmt.Sprintf(`  - name: told
    when: |
      SELECT start, nodeId, COUNT(*) AS n FROM executions WHERE NOT success
      GROUP BY nodeId WINDOW TUMBLING(timestamp, SIZE 1 SEC)
    do: webhook
    url: %s/told
  - name: broken
    when: |
      SELECT start, nodeId, errorClass, COUNT(*) AS n FROM executions WHERE NOT success
      GROUP BY nodeId, errorClass WINDOW TUMBLING(timestamp, SIZE 1 SEC) HAVING n >= 20
`, at))
	epoch, before := c.epoch(run), c.rulesOf(0, run)
	c.kill(c.servers[0])
	c.awaitTakeover(run, epoch, time.Now())
	c.serve(0)
	c.awaitRuleReads(1, run, before[0].In)
	if rules := c.rulesOf(1, run); rules[1].Out+rules[2].Out != 0 || rules[2].Status != engine.RuleRunning {
		t.Fatalf("before anything has failed: %+v", rules)
	}
	if _, err := c.target.Exec(t.Context(), "ALTER TABLE orders RENAME TO gone"); err != nil {
		t.Fatal(err)
	}
	renamed := time.Now()
	d := c.proxies[1].AwaitEnd(run.RunID, c.servers[1])
	if d.Status != engine.StatusFailed || d.StopReason != engine.StopGuardrail || d.CancellationReason == nil ||
		!strings.HasPrefix(*d.CancellationReason, "Rule 'broken' triggered: start ") ||
		!strings.Contains(*d.CancellationReason, ", errorClass ") {
		t.Errorf("%s, %v, %+v", d.Status, d.CancellationReason, d.Rules)
	}
	t.Logf("it ended %v after its table was gone", d.EndTime.Sub(renamed))
	clitest.Until(t, time.Minute, func() bool {
		d.Rules = c.rulesOf(1, run)
		return d.Rules[0].Status == engine.RuleEnded && d.Rules[1].Status == engine.RuleEnded
	}, func() string { return fmt.Sprintf("%+v", d.Rules) })
	if d.Rules[2].Status != engine.RuleTriggered || d.Rules[0].In <= before[0].In ||
		d.Rules[0].In > d.Summary.Accounting.Started {
		t.Errorf("%+v, of %d", d.Rules, d.Summary.Accounting.Started)
	}
	var logs struct{ Logs []engine.LogEntry }
	c.proxies[1].Do("GET", "/api/runs/"+run.RunID+"/logs?limit=1000", nil, &logs)
	stops := 0
	for _, l := range logs.Logs {
		if strings.Contains(l.Message, "The rule 'broken' stops the run") {
			stops++
		}
	}
	if stops != 1 {
		t.Errorf("it stopped the run %d times: %+v", stops, logs.Logs)
	}
	close(posted)
	seen := map[string]bool{}
	for body := range posted {
		for row := range strings.Lines(body) {
			window, _, _ := strings.Cut(row, `,"n":`)
			if seen[window] {
				t.Errorf("%s was posted twice", window)
			}
			seen[window] = true
		}
	}
	if len(seen) == 0 {
		t.Error("nothing was posted")
	}
	if _, err := c.target.Exec(t.Context(), "ALTER TABLE gone RENAME TO orders"); err != nil {
		t.Fatal(err)
	}

	run = c.startWithRules(1, all)
	epoch = c.epoch(run)
	c.kill(c.servers[1])
	// As if it had been killed between the two.
	if _, err := c.control.Exec(context.Background(), "UPDATE run_status SET rules_state = "+
		`jsonb_set(jsonb_set(rules_state, '{0,status}', '"TRIGGERED"'), '{0,last_row}', '"runId r"') WHERE run_id = $1`,
		run.RunID); err != nil {
		t.Fatal(err)
	}
	c.awaitTakeover(run, epoch, time.Now())
	c.serve(1)
	c.reach(0)
	d = c.proxies[0].AwaitEnd(run.RunID, c.servers[0])
	if d.Status != engine.StatusFailed || d.CancellationReason == nil ||
		*d.CancellationReason != "Rule 'all' triggered: runId r" {
		reason := "no reason"
		if d.CancellationReason != nil {
			reason = *d.CancellationReason
		}
		t.Errorf("%s, %s, %+v", d.Status, reason, c.storedRules(run))
	}
	c.reach(1)
}
