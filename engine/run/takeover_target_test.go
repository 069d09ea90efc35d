package run

import (
	"reflect"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/target"
)

// TestWhoTakesARunOverKnowsItsTarget: how many connections it takes, among the rest. A run over the rate
// would grow beyond that otherwise.
func TestWhoTakesARunOverKnowsItsTarget(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		server := target.ServerInfo{Version: "17.2", MaxConnections: 16, Local: true, Simulated: true, Emulated: true}
		v.planned(func(p *prepare.Prepared) { p.Server = server })
		v.start(overRate(engine.ScalingAuto, 0))
		v.wait(5 * time.Second)
		rows, err := v.store.Results(t.Context(), "run-1")
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if row.ResultID == "run-1" && (row.Environment == nil ||
				!reflect.DeepEqual(prepare.ServerOf(*row.Environment), server)) {
				t.Errorf("%+v is stored of %+v", row.Environment, server)
			}
		}
		if len(rows) < 2 {
			t.Errorf("%d rows", len(rows))
		}
	})
}
