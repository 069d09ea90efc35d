package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
)

// TestAnAddressThatTakesNoRows: a query whose rows are not taken says so while it tries again, and can be dropped then,
// whether the address answers or not; so can one that drains. A server with such a query ends at once.
func TestAnAddressThatTakesNoRows(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	at, _ := clitest.WebhookReceiver(t)
	p := clitest.NewProgram(t)
	s := streamsServer{p.Serve()}
	p.Write("data/streams/a.csv", "1,5\n2,6\n")
	s.done(`CREATE LOGICAL SOURCE a(ts INT64, x INT64);
		CREATE PHYSICAL SOURCE FOR a TYPE FILE SET('a.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);
		CREATE SINK hang TYPE WEBHOOK SET('` + at + `/hang?canary' AS SINK.URL);
		CREATE SINK busy TYPE WEBHOOK SET('` + at + `/busy?canary' AS SINK.URL);
		CREATE QUERY hangs AS SELECT x FROM a INTO hang; CREATE QUERY drains AS SELECT x FROM a INTO hang;
		CREATE QUERY stays AS SELECT x FROM a INTO hang; CREATE QUERY tries AS SELECT x FROM a INTO busy`)
	type trouble struct {
		Since    engine.Time
		Attempts int
		Message  string
	}
	waits := func(name string) (found *trouble) {
		var all struct {
			Queries []struct {
				Name, State string
				Trouble     *trouble
			}
		}
		s.GetJSON("/api/v1/streams", &all)
		for _, q := range all.Queries {
			if q.Name == name && q.State == "RUNNING" {
				found = q.Trouble
			}
		}
		return found
	}
	clitest.WaitFor(t, clitest.StartTimeout, "a query that says that it tries again", func() bool {
		w := waits("tries")
		return w != nil && w.Attempts >= 3 && strings.Contains(w.Message, "the endpoint answers 500") &&
			!strings.Contains(w.Message, "canary") && time.Since(w.Since.Time) > time.Second
	})
	for _, name := range []string{"hangs", "drains", "stays"} {
		s.until(name, "RUNNING")
	}
	s.done("DROP QUERY drains GRACEFUL")
	s.until("drains", "STOPPING")
	for name, sql := range map[string]string{"tries": "DROP QUERY tries", "hangs": "DROP QUERY hangs FORCEFUL",
		"drains": "DROP QUERY drains FORCEFUL"} {
		started := time.Now()
		s.done(sql)
		s.until(name, "")
		if took := time.Since(started); took > 10*time.Second {
			t.Errorf("%s took %v", sql, took)
		}
	}
	startedAt := time.Now()
	s.Stop()
	if took := time.Since(startedAt); took > 15*time.Second {
		t.Errorf("the server took %v to end", took)
	}
}

// TestARuleWhoseAddressHangs: a run carries its whole load beside a rule whose rows are not answered and one whose
// address is busy. Both are FAILED when it is over, which its log says; a rule with a good address has posted.
func TestARuleWhoseAddressHangs(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	at, posted := clitest.WebhookReceiver(t)
	s := clitest.NewProgram(t).Serve()
	const each = `SELECT workerId, recordsProcessed FROM worker_statistics WHERE phase = 'MEASUREMENT'`
	rules := ""
	for _, name := range []string{"hang", "busy", "good"} {
		rules += fmt.Sprintf("  - {name: %s, when: %q, do: webhook, url: '%s/%s?canary'}\n", name, each, at, name)
	}
	run := s.StartRun(`name: told
target: {connection: playground, adapter: postgres, table_name: orders, prepare: {rows: 1000, if_exists: use}}
workload: {plugin: mix, params: {weights: {POINT_LOOKUP: 100}}, load_mode: QPS, target_qps: 100, duration_seconds: 6}
rules:
` + rules)
	d := s.AwaitEnd(run.RunID)
	clitest.WaitFor(t, clitest.StartTimeout, "the end of the rules", func() bool {
		s.GetJSON("/api/runs/"+run.RunID, &d)
		return !slices.ContainsFunc(d.Rules, func(r engine.RuleState) bool { return r.Status == engine.RuleRunning })
	})
	if d.Status != engine.StatusCompleted || d.TotalOps < 580 || d.TotalOps > 620 {
		t.Errorf("%s, %d operations of 600", d.Status, d.TotalOps)
	}
	if len(d.Rules) != 3 {
		t.Fatalf("%+v", d.Rules)
	}
	for i, want := range []string{"not all of its rows were posted within 3s", "not all of its rows were posted", ""} {
		r := d.Rules[i]
		if want != "" && (r.Status != engine.RuleFailed || !strings.Contains(r.Failure, want) || r.Out != 0) ||
			want == "" && (r.Status != engine.RuleEnded || r.Failure != "" || r.Out < 5) {
			t.Errorf("%+v", r)
		}
	}
	close(posted)
	rows := int64(0)
	for body := range posted {
		rows += int64(strings.Count(body, "\n"))
	}
	if rows != d.Rules[2].Out {
		t.Errorf("%d rows were posted of %d", rows, d.Rules[2].Out)
	}
	text := s.MustGet("/api/runs/" + run.RunID + "/logs?limit=1000")
	for _, want := range []string{"The rule 'busy' can not post its rows, and tries again", "the endpoint answers 500",
		"The rule 'hang' failed, and the run goes on without it", "The rule 'good' gave"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	if strings.Contains(text, "canary") {
		t.Error("the log has the secret")
	}
	s.Stop()
}
