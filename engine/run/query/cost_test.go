package query

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/cost"
)

type listed struct{}

func (listed) Prices() cost.Prices { return cost.Default() }

// TestEnrichmentCostsWhereItRan: what ran on another warehouse is not charged at the rate of the run's, and tables that
// are taken away from it afterwards do not suspend it.
func TestEnrichmentCostsWhereItRan(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	end := start.Add(10 * time.Second)
	polls := []engine.WarehousePoint{
		{Timestamp: engine.At(start), Warehouse: engine.Warehouse{Name: "WH", Type: "INTERACTIVE",
			Size: "X-Small", State: "STARTED", AutoSuspendSeconds: 60}},
	}
	enriched := &engine.Enrichment{EndedAt: engine.At(end.Add(200 * time.Second))}
	for name, c := range map[string]struct {
		target  engine.Target
		plan    engine.Plan
		seconds float64
	}{
		"on the run's own": {engine.Target{Warehouse: "WH"}, engine.Plan{}, 270},
		"on the run's own, which loads elsewhere": {engine.Target{Warehouse: "WH",
			Params: json.RawMessage(`{"load_warehouse": "LOAD_WH"}`)}, engine.Plan{}, 270},
		"on the session's own":       {engine.Target{}, engine.Plan{}, 270},
		"on that of the adapter":     {engine.Target{Warehouse: "WH"}, engine.Plan{HousekeepingWarehouse: "LOAD_WH"}, 70},
		"on the template's":          {engine.Target{Warehouse: "WH", HousekeepingWarehouse: "K"}, engine.Plan{}, 70},
		"named, and it is the run's": {engine.Target{Warehouse: "WH", HousekeepingWarehouse: "WH"}, engine.Plan{}, 270},
		"tables are taken away": {engine.Target{Warehouse: "WH"},
			engine.Plan{Restore: []string{`ALTER WAREHOUSE "WH" DROP TABLES ("T")`}}, 270},
	} {
		run := engine.Run{StartTime: engine.At(start), EndTime: engine.At(end), Scenario: engine.Scenario{Target: c.target}}
		got := New(Options{Prices: listed{}}).Cost(polls, run, engine.Figures{}, &c.plan, enriched)
		if got == nil || got.CausedSeconds != c.seconds {
			t.Errorf("%s: %+v, not %g s", name, got, c.seconds)
		}
	}
}
