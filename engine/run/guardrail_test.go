package run_test

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// A limit of what the target does stops the run, with the reason and a whole account.
func TestALimitOfTheTargetStopsTheRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	low, none := 0.000001, 0.0
	for name, guards := range map[string]engine.Guardrails{
		"P99 latency": {MaxP99Ms: &low, HoldSeconds: 1},
		"error rate":  {MaxErrorRatePct: &none, HoldSeconds: 1},
	} {
		run := f.run(func(sc *engine.Scenario) {
			sc.Guardrails = guards
			sc.Workload.DurationSeconds = 100
			sc.Target.TableName = strings.ReplaceAll("of "+name, " ", "_")
		})
		if name == "error rate" {
			f.until(run.RunID, phase(engine.PhaseMeasurement))
			f.sql("ALTER TABLE " + "of_error_rate RENAME TO elsewhere")
		}
		sum := f.wait(run.RunID)
		if sum.Status != engine.StatusFailed || sum.CancellationReason == nil ||
			!strings.HasPrefix(*sum.CancellationReason, "Guardrail triggered: "+name+" at ") || !sum.Accounting.Balanced {
			t.Errorf("%s: %s, %v, %+v", name, sum.Status, sum.CancellationReason, sum.Accounting)
		}
		p := f.detail(run.RunID)
		if p.StopReason != engine.StopGuardrail {
			t.Errorf("%s: %s", name, p.StopReason)
		}
	}
}
