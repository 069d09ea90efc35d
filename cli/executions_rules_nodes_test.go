package cli

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// allExecutionsRules are rules that read all that run workers record, one execution after the other and in windows, and
// stop nothing.
const allExecutionsRules = `rules:
  - {name: all, when: SELECT runId FROM executions WHERE latencyMs < 0}
  - name: added up
    when: SELECT nodeId, SUM(rows) AS n FROM executions GROUP BY nodeId WINDOW TUMBLING(timestamp, SIZE 1 SEC) HAVING n < 0
  - {name: statements, when: SELECT runId FROM statement_statistics WHERE recordsProcessed < 0}
`

// rulesOver are the rules of a run once they have ended with it.
func (s streamsServer) rulesOver(runID string) (d engine.RunDetail) {
	s.T.Helper()
	clitest.WaitFor(s.T, time.Minute, "the end of its rules", func() bool {
		d = s.AwaitEnd(runID)
		for _, r := range d.Rules {
			if r.Status == engine.RuleRunning {
				return false
			}
		}
		return true
	})
	return d
}

// TestRulesReadExecutionsOfNodes: rules of a run on two nodes and on the server's own have every execution of it, and
// none of another run that goes on beside it there; one that a row of a node breaks stops the run; when a node is
// killed the rules go on with the others.
func TestRulesReadExecutionsOfNodes(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	load := pgtest.Start(t).NewDatabase(t)
	s, nodes, _ := streamNodes(t, 2, "--local-capacity", "4")
	other := s.StartRun(clitest.TemplateOnNodes(load, "other", 2, 60))
	clitest.WaitFor(t, time.Minute, "load", func() bool {
		var d engine.RunDetail
		s.GetJSON("/api/runs/"+other.RunID, &d)
		return d.Phase == engine.PhaseMeasurement
	})
	d := s.rulesOver(s.StartRun(clitest.TemplateOnNodes(load, "ruled", 3, 4) + allExecutionsRules).RunID)
	started := s.complete(d)
	for i, r := range d.Rules {
		if r.Status != engine.RuleEnded || i < 2 && r.In != started || r.In == 0 {
			t.Errorf("%+v, of %d", r, started)
		}
	}

	d = s.rulesOver(s.StartRun(clitest.TemplateOnNodes(load, "stopped", 3, 60) + `rules:
  - name: far
    when: |
      SELECT end, nodeId, QUANTILE(latencyMs, 0.99) AS p99, COUNT(*) AS n FROM executions
      WHERE nodeId = '` + nodes[1].id + `' AND phase = 'MEASUREMENT'
      GROUP BY nodeId WINDOW TUMBLING(timestamp, SIZE 1 SEC); -- each second
`).RunID)
	if d.Status != engine.StatusFailed || d.CancellationReason == nil || d.Rules[0].Status != engine.RuleTriggered ||
		!strings.HasPrefix(*d.CancellationReason, "Rule 'far' triggered: end ") ||
		!strings.Contains(*d.CancellationReason, "nodeId "+nodes[1].id+", p99 ") {
		t.Fatalf("%s %v %+v", d.Status, d.CancellationReason, d.Rules)
	}
	_, after, _ := strings.Cut(*d.CancellationReason, "end ")
	end, err := time.Parse(time.RFC3339, after[:strings.IndexByte(after, ',')])
	if took := d.EndTime.Sub(end); err != nil || took < 0 || took > 2*time.Second {
		t.Errorf("it ended %v after the row: %s, %v", took, *d.CancellationReason, err)
	} else {
		t.Logf("it ended %v after the row", took)
	}
	s.Send("POST", "/api/runs/"+other.RunID+"/stop", "{}")
	s.AwaitEnd(other.RunID)

	last := s.StartRun(clitest.TemplateOnNodes(load, "last", 3, 60) + allExecutionsRules)
	read := func() (n int64) {
		var d engine.RunDetail
		s.GetJSON("/api/runs/"+last.RunID, &d)
		if len(d.Rules) == 3 {
			n = d.Rules[0].In
		}
		return n
	}
	clitest.WaitFor(t, time.Minute, "rows of the last run", func() bool { return read() > 500 })
	nodes[1].signal(t, syscall.SIGKILL)
	<-nodes[1].Done
	time.Sleep(3 * time.Second) // until it is known to be lost
	before := read()
	clitest.WaitFor(t, time.Minute, "more rows of the last run", func() bool { return read() > before+600 })
	s.Send("POST", "/api/runs/"+last.RunID+"/stop", "{}")
	for _, r := range s.rulesOver(last.RunID).Rules {
		if r.Status != engine.RuleEnded || r.Failure != "" {
			t.Errorf("%+v", r)
		}
	}
	s.Stop()
}
