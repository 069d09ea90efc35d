package run_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
	"github.com/loadstone-db/loadstone/snowsim"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestASearchFindsTheSlotsOfAWarehouse: with the driver, the adapter and the
// polls as they are, a search ends where the stand-in's warehouse begins to queue.
func TestASearchFindsTheSlotsOfAWarehouse(t *testing.T) {
	if testing.Short() {
		t.Skip("make check-ci: it takes many seconds")
	}
	t.Parallel()
	const slots = 4
	account, err := snowsim.Start(t.Context(),
		snowsim.Options{Postgres: pgtest.Start(t).NewDatabase(t), TimeScale: 4, Seed: 1, Log: testLog(),
			Warehouses: []warehouse.Spec{{Name: "W", MaxConcurrency: slots, AutoResume: true, AutoSuspend: 10 * time.Minute}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(account.Close)
	f := newFixture(t)
	f.driver = snowflake.NewDriver()
	f.pollEvery = 100 * time.Millisecond
	f.start()
	run := f.run(func(sc *engine.Scenario) {
		searching(sc)
		sc.Target.Connection = engine.ConnectionRef{Driver: "snowflake", DSN: "snowflake://" + account.DSN()}
		sc.Target.Adapter, sc.Target.Warehouse = "snowflake_standard", "W"
		sc.Target.Prepare.Rows = 200
		sc.Workload.Params = json.RawMessage(`{"weights": {"RANGE_SCAN": 1}, "scan_length": 5}`)
		// Neither latency nor throughput decides, whatever else the machine does: the queue does.
		sc.FindMax.ConcurrencyIncrement, sc.FindMax.LatencyStabilityPct, sc.FindMax.QPSStabilityPct, sc.FindMax.SLO = 3,
			100_000, -100, nil
	})
	sum := f.wait(run.RunID)
	r := sum.FindMax
	if sum.Status != engine.StatusCompleted || r == nil || r.MaxConnections == nil {
		t.Fatalf("%s, %+v\n%s", sum.Status, r, f.logs(run.RunID))
	}
	t.Log(r.Reason)
	// As many connections as slots never wait. On a busy machine one more may go
	// unseen, because it spends a part of its time on this side of the network.
	if n := *r.MaxConnections; r.Limit != engine.OutcomeQueueDetected || n < slots || n > slots+1 {
		t.Errorf("%d connections, %s; the warehouse has %d slots: %s\n%s", n, r.Limit, slots, r.Reason, f.logs(run.RunID))
	}
	for _, step := range r.History {
		if step.QueueDetected != (step.Outcome == engine.OutcomeQueueDetected) || step.QueueDetected &&
			step.TotalTargetConnections <= slots {
			t.Errorf("step %+v", step)
		}
	}
	if !sum.Simulated {
		t.Error("the summary does not say that the account was a stand-in")
	}
}
