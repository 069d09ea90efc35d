package prepare

import (
	"encoding/json"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// TestHousekeepingHasAWarehouseOfItsOwn where one is named, and otherwise the one that loads the table, which is a
// standard one.
func TestHousekeepingHasAWarehouseOfItsOwn(t *testing.T) {
	loads := json.RawMessage(`{"load_warehouse": "LOAD_WH", "key_sample": 7}`)
	for want, target := range map[string]engine.Target{
		"KEEP_WH": {Warehouse: "WH", HousekeepingWarehouse: "KEEP_WH", Params: loads},
		"LOAD_WH": {Warehouse: "WH", Params: loads},
		"WH":      {Warehouse: "WH"},
		"":        {Params: loads}, // the session's own warehouse is the one that is polled
	} {
		if got := housekeeping(target); got != want {
			t.Errorf("%+v is asked on %q, not on %q", target, got, want)
		}
	}
}
