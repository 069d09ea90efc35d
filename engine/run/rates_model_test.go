package run_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestARateBeyondTheTargetEndsWithItsReason: the tables are real, and a target serves four at once for
// 20 ms each, 200/s. The first run worker's two connections get half of that; those that join get the
// rest, and once more of them bring nothing, the run says so.
func TestARateBeyondTheTargetEndsWithItsReason(t *testing.T) {
	if testing.Short() {
		t.Skip("make check-ci: it takes many seconds")
	}
	f := newFixture(t)
	f.model(4, 20*time.Millisecond)
	f.start()
	run := f.run(func(sc *engine.Scenario) {
		rate := 400.0
		sc.Workload.LoadMode, sc.Workload.TargetQPS, sc.Workload.Arrival = engine.LoadQPS, &rate, engine.ArrivalConstant
		sc.Workload.MaxInFlight = 200
		sc.Workload.Params = json.RawMessage(`{"weights": {"POINT_LOOKUP": 100}}`)
		sc.Workload.ConcurrentConnections, sc.Workload.WarmupSeconds, sc.Workload.DurationSeconds = 2, 0, 120
		sc.Scaling = engine.Scaling{Mode: engine.ScalingAuto, WorkerCount: 1, PerWorkerCapacity: 2, MinWorkers: 1}
	})
	const why = "did not serve more than"
	deadline := time.Now().Add(90 * time.Second)
	for !strings.Contains(f.logs(run.RunID), why) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not say why it stopped\n%s", f.logs(run.RunID))
		}
		time.Sleep(200 * time.Millisecond)
	}
	live := f.until(run.RunID, func(p *engine.LiveState) bool { return p.Ops.CurrentPerSec > 120 })
	if n := len(live.Workers); n < 2 {
		t.Errorf("%d run workers", n)
	}
	if _, err := f.svc.Stop(t.Context(), run.RunID, "tester"); err != nil {
		t.Fatal(err)
	}
	sum := f.wait(run.RunID)
	noted := false
	for _, n := range sum.ValidityDetail.Notes {
		noted = noted || strings.Contains(n, why)
	}
	if !noted || !sum.Accounting.Balanced {
		t.Errorf("notes %q, %+v", sum.ValidityDetail.Notes, sum.Accounting)
	}
	d := f.detail(run.RunID)
	if len(d.WorkerTargets) < 2 {
		t.Errorf("%d run workers in all\n%s", len(d.WorkerTargets), f.logs(run.RunID))
	}
}
