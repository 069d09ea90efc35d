package run_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/stream/rules"
)

// begun begins rules as a server does, and says of which runs.
func begun(run engine.Run) *rules.Set {
	return rules.Start(run.Scenario.Rules, run.Rules, rules.Options{})
}

const working = "SELECT runId, recordsProcessed FROM worker_statistics WHERE phase = 'MEASUREMENT' AND " +
	"recordsProcessed > 0"

// TestARuleStopsItsOwnRun: of two runs at once, whose rules have the same name, one ends with the row as its reason;
// what the rules of both gave is kept.
func TestARuleStopsItsOwnRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.rules = begun
	f.start()
	begin := func(table, when string, seconds float64) engine.Run {
		return f.run(func(sc *engine.Scenario) {
			steady(sc)
			sc.Workload.DurationSeconds, sc.Target.TableName = seconds, table
			sc.Rules = []engine.Rule{{Name: "mine", When: when, Do: engine.RuleStop}}
		})
	}
	calm := begin("calm", strings.Replace(working, "> 0", "> 100000", 1), 5)
	other := begin("busy", working, 100)
	s := f.wait(other.RunID)
	if s.Status != engine.StatusFailed || s.CancellationReason == nil || !s.Accounting.Balanced ||
		!strings.HasPrefix(*s.CancellationReason, "Rule 'mine' triggered: runId "+other.RunID+", recordsProcessed ") {
		t.Errorf("%s, %v, %+v", s.Status, s.CancellationReason, s.Accounting)
	}
	d := f.ruled(other.RunID)
	if d.StopReason != engine.StopGuardrail || len(d.Rules) != 1 || d.Rules[0].Status != engine.RuleTriggered ||
		d.Rules[0].Out == 0 || !strings.Contains(d.Rules[0].Row, other.RunID) {
		t.Errorf("%s, %+v", d.StopReason, d.Rules)
	}
	if !strings.Contains(f.logs(other.RunID), "The rule 'mine' gave: runId "+other.RunID) {
		t.Error(f.logs(other.RunID))
	}
	d = f.ruled(calm.RunID)
	if d.Status != engine.StatusCompleted || len(d.Rules) != 1 || d.Rules[0].Status != engine.RuleEnded ||
		d.Rules[0].Out != 0 || d.Rules[0].In < 5 {
		t.Errorf("%s, %+v", d.Status, d.Rules)
	}
}

// ruled waits until a run and its rules are over: what these gave is kept a moment after the run's last phase.
func (f *fixture) ruled(runID string) engine.RunDetail {
	f.t.Helper()
	for range 200 {
		d := f.settled(runID)
		if len(d.Rules) == 0 || d.Rules[0].Status != engine.RuleRunning {
			return d
		}
		time.Sleep(50 * time.Millisecond)
	}
	f.t.Fatalf("the rules of run %s go on after it", runID)
	return engine.RunDetail{}
}

// TestASearchIsStoppedByARule: as any other run.
func TestASearchIsStoppedByARule(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.rules = begun
	f.start()
	run := f.run(func(sc *engine.Scenario) {
		sc.Workload.LoadMode = engine.LoadFindMax
		sc.FindMax = engine.FindMax{Enabled: true, Unit: engine.FindMaxConnections, StartConcurrency: 1,
			ConcurrencyIncrement: 1, StepDurationSeconds: 60, MaxDurationSeconds: 600}
		sc.Rules = []engine.Rule{{Name: "stops", When: working, Do: engine.RuleStop}}
	})
	if s := f.wait(run.RunID); s.Status != engine.StatusFailed || s.CancellationReason == nil ||
		!strings.HasPrefix(*s.CancellationReason, "Rule 'stops' triggered: ") {
		t.Errorf("%s, %v", s.Status, s.CancellationReason)
	}
}

// TestRulesGoOnWithWhoGoesOn: a server that is killed takes its rules along; the next one begins them anew, and they
// stop the run. What they had counted is not lost.
func TestRulesGoOnWithWhoGoesOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.rules = begun
	link := protocol.NewMemory()
	f.outliving(link)
	f.svc = f.server("a", link)
	run := f.run(func(sc *engine.Scenario) {
		steady(sc)
		sc.Workload.DurationSeconds = 100
		sc.Rules = []engine.Rule{{Name: "resumed", Do: engine.RuleStop,
			When: "SELECT phase, COUNT(*) AS n FROM heartbeats GROUP BY phase WINDOW TUMBLING(timestamp, SIZE 1 SEC) " +
				"HAVING COUNT(*) > 1000"},
			{Name: "all", When: working + " AND runId = 'none'", Do: engine.RuleStop}}
	})
	stored := func() []engine.RuleState {
		r, err := f.store.Run(t.Context(), run.RunID)
		if err != nil {
			t.Fatal(err)
		}
		return r.Rules
	}
	f.until(run.RunID, func(p *engine.LiveState) bool {
		return phase(engine.PhaseMeasurement)(p) && len(p.Rules) == 2 && p.Rules[0].In > 6
	})
	f.svc.Kill()
	was := stored()
	if len(was) != 2 || was[0].In == 0 {
		t.Fatalf("%+v", was)
	}
	f.svc = f.server("a", link)
	f.until(run.RunID, func(p *engine.LiveState) bool { return len(p.Rules) == 2 && p.Rules[0].In > was[0].In+4 })
	if _, err := f.svc.Stop(t.Context(), run.RunID, "t"); err != nil {
		t.Fatal(err)
	}
	d := f.ruled(run.RunID)
	if d.Rules[0].In <= was[0].In || slices.ContainsFunc(d.Rules, func(r engine.RuleState) bool {
		return r.Status != engine.RuleEnded || r.Failure != ""
	}) {
		t.Errorf("%+v after %+v", d.Rules, was)
	}
}
