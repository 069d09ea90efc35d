package engine_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestHousekeepingHasAWarehouseOfItsOwn where the template or the adapter names one, and otherwise that of the load:
// a warehouse that only loads the table is not kept up for it.
func TestHousekeepingHasAWarehouseOfItsOwn(t *testing.T) {
	loads := []byte(`{"load_warehouse": "LOAD_WH"}`)
	for _, c := range []struct {
		want    string
		adapter string
		target  engine.Target
	}{
		{"KEEP_WH", "LOAD_WH", engine.Target{Warehouse: "WH", HousekeepingWarehouse: "KEEP_WH", Params: loads}},
		{"LOAD_WH", "LOAD_WH", engine.Target{Warehouse: "WH", Params: loads}},
		{"WH", "", engine.Target{Warehouse: "WH", Params: loads}},
		{"WH", "", engine.Target{Warehouse: "WH"}},
		{"", "LOAD_WH", engine.Target{Params: loads}}, // the session's own warehouse is the one that is polled
	} {
		p := engine.Plan{HousekeepingWarehouse: c.adapter}
		if got := p.Housekeeping(c.target); got != c.want {
			t.Errorf("%+v is asked on %q, not on %q", c.target, got, c.want)
		}
	}
}

// TestARunSuspendsWhatItHasResumed, and not a warehouse from which it only takes tables away.
func TestARunSuspendsWhatItHasResumed(t *testing.T) {
	const drop, suspend = `ALTER WAREHOUSE "W" DROP TABLES ("T")`, `ALTER WAREHOUSE "W" SUSPEND`
	for _, c := range []struct {
		restore []string
		want    bool
	}{{nil, false}, {[]string{drop}, false}, {[]string{drop, suspend}, true}} {
		if p := (engine.Plan{Restore: c.restore}); p.Suspends() != c.want {
			t.Errorf("%q: %v", c.restore, !c.want)
		}
	}
}
