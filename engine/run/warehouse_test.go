package run_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
	"github.com/loadstone-db/loadstone/snowsim"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestASuspendedWarehouseIsSuspendedAgain: it is resumed for a run, and suspended
// after the run was cancelled, and after it failed.
func TestASuspendedWarehouseIsSuspendedAgain(t *testing.T) {
	t.Parallel()
	account, err := snowsim.Start(t.Context(),
		snowsim.Options{Postgres: pgtest.Start(t).NewDatabase(t), TimeScale: 1000, Seed: 1, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(account.Close)
	dsn := "snowflake://" + account.DSN()
	db, err := snowflake.NewDriver().Open(target.Config{DSN: secret.New(dsn)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Exec(t.Context(),
		"CREATE WAREHOUSE measured WAREHOUSE_SIZE = SMALL AUTO_SUSPEND = 0 INITIALLY_SUSPENDED = TRUE"); err != nil {
		t.Fatal(err)
	}
	state := func() string {
		t.Helper()
		set, err := db.Query(t.Context(), "SHOW WAREHOUSES LIKE 'MEASURED'")
		if err != nil || len(set.Rows) != 1 {
			t.Fatalf("%v, %v", set, err)
		}
		return fmt.Sprint(set.Rows[0][slices.Index(set.Columns, "state")])
	}
	f, none := newFixture(t), 0.0
	f.driver = snowflake.NewDriver()
	f.start()
	for _, c := range []struct {
		name string
		end  func(runID string)
		want engine.Status
	}{
		{"cancelled", func(id string) {
			if _, err := f.svc.Stop(t.Context(), id, "tester"); err != nil {
				t.Fatal(err)
			}
		}, engine.StatusCancelled},
		{"failed", func(string) {
			if err := db.Exec(t.Context(), "DROP TABLE orders"); err != nil {
				t.Fatal(err)
			}
		}, engine.StatusFailed},
	} {
		if got := state(); got != "SUSPENDED" {
			t.Fatalf("before the run that is %s the warehouse is %s", c.name, got)
		}
		run := f.run(func(sc *engine.Scenario) {
			sc.Guardrails = engine.Guardrails{MaxErrorRatePct: &none, HoldSeconds: 1}
			sc.Target = engine.Target{Connection: engine.ConnectionRef{Driver: "snowflake", DSN: dsn},
				Adapter: "snowflake_standard", TableName: "orders", Warehouse: "MEASURED",
				Prepare: &engine.Prepare{Rows: 500, IfExists: engine.IfExistsUse}}
			sc.Workload.Params = json.RawMessage(`{"weights":{"POINT_LOOKUP":1}}`)
			sc.Workload.DurationSeconds, sc.Workload.WarmupSeconds = 60, 0
		})
		f.until(run.RunID, phase(engine.PhaseMeasurement))
		if got := state(); got != "STARTED" {
			t.Errorf("while the run goes on the warehouse is %s", got)
		}
		c.end(run.RunID)
		f.wait(run.RunID)
		if d := f.settled(run.RunID); d.Status != c.want {
			t.Fatalf("%s, not %s\n%s", d.Status, c.want, f.logs(run.RunID))
		}
		// It is set back when the enrichment is over, too.
		for deadline := time.Now().Add(time.Minute); state() != "SUSPENDED"; time.Sleep(100 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("after the run that is %s the warehouse is %s", c.name, state())
			}
		}
	}
}

// TestAWaitedForRunKnowsItsCost: who waits for a run in the same process learns
// what it cost as who asks for it later.
func TestAWaitedForRunKnowsItsCost(t *testing.T) {
	t.Parallel()
	f, a := newAccount(t)
	a.queue = func(int) bool { return false }
	f.start()
	run := f.run(onAccount)
	sum := f.wait(run.RunID)
	d := f.settled(run.RunID)
	if sum.Cost == nil || d.Summary.Cost == nil {
		t.Fatalf("the one that was waited for costs %+v, the stored one %+v", sum.Cost, d.Summary.Cost)
	}
	// The store keeps microseconds.
	if far := sum.Cost.Credits - d.Summary.Cost.Credits; sum.Cost.Credits <= 0 || math.Abs(far) > 1e-5*sum.Cost.Credits ||
		sum.Cost.PricePerMillion == nil {
		t.Errorf("%+v is not %+v", sum.Cost, d.Summary.Cost)
	}
}

// TestAFallbackWarehouseDegradesTheRun: only when something took so long that it may
// have been executed there.
func TestAFallbackWarehouseDegradesTheRun(t *testing.T) {
	t.Parallel()
	const measured, unused, unknown = "two warehouses were measured: what", "took no part", "is not known"
	for _, c := range []struct {
		limit    time.Duration
		fallback *string
		says     string
	}{{time.Hour, new("SLOW_WH"), unused}, {time.Nanosecond, new("SLOW_WH"), measured}, {time.Nanosecond, nil, unknown}} {
		f, a := newAccount(t)
		a.queue, a.fallback, a.kind = func(int) bool { return false }, c.fallback, "INTERACTIVE"
		f.start()
		f.svc.SetInteractiveLimit(c.limit)
		run := f.run(onAccount)
		sum := f.wait(run.RunID)
		said := ""
		for _, n := range sum.ValidityDetail.Notes {
			if strings.Contains(n, "fallback warehouse") {
				said += n
			}
		}
		for _, cause := range sum.ValidityDetail.Causes {
			if cause.Cause == engine.CauseFallback {
				said += cause.Detail
			}
		}
		if !strings.Contains(said, c.says) || strings.Contains(said, measured) != (c.says == measured) {
			t.Errorf("with a limit of %v it is %s: %s", c.limit, sum.Validity, said)
		}
		d := f.settled(run.RunID)
		if d.Summary.Cost == nil || d.Summary.Cost.WarehouseGeneration != "2" {
			t.Errorf("the cost has lost the generation on its way through the store: %+v", d.Summary.Cost)
		}
		f.stop()
	}
}
