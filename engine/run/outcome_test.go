package run_test

import (
	"encoding/json"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// A run whose operations all fail completes, and nobody takes its figures for the table's.
func TestARunOfErrorsIsDegraded(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	run := f.run(func(sc *engine.Scenario) {
		sc.Target.TableName, sc.Target.Prepare = "", nil
		sc.Workload.Plugin = "sql"
		sc.Workload.Params = json.RawMessage(
			`{"statements": [{"id": "broken", "sql": "SELECT 1 / (:n::int - :n::int)", "binds": [{"name": "n", "generator": "uniform", "min": 1, "max": 9}]}]}`,
		)
	})
	sum := f.wait(run.RunID)
	if sum.Status != engine.StatusCompleted || sum.Operations == 0 || sum.Errors.Count != sum.Operations ||
		!sum.Accounting.Balanced {
		t.Fatalf("%s, %d of %d failed, %+v", sum.Status, sum.Errors.Count, sum.Operations, sum.Accounting)
	}
	for _, c := range sum.ValidityDetail.Causes {
		if c.Cause == "errors" && sum.Validity == engine.VerdictDegraded {
			return
		}
	}
	t.Fatalf("%s: %+v", sum.Validity, sum.ValidityDetail)
}
