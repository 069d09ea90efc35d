package run

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestASearchHoldsTheRoomOfItsSteps: its run workers take more connections with each step, and
// other runs are not let in where these are.
func TestASearchHoldsTheRoomOfItsSteps(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.served = func(connections int, _ float64) float64 { return min(10*float64(connections), 150) }
		sc := overRate(engine.ScalingFixed, 0)
		most, slo := 40, 1000.0
		sc.Scaling.PerWorkerCapacity = 40
		sc.Workload.LoadMode, sc.Workload.TargetQPS = engine.LoadFindMax, nil
		sc.FindMax = engine.FindMax{Enabled: true, Unit: engine.FindMaxConnections, StartConcurrency: 2,
			ConcurrencyIncrement: 4, MaxConcurrency: &most, StepDurationSeconds: 10, MaxDurationSeconds: 3000,
			QPSStabilityPct: 5, LatencyStabilityPct: 50, MaxErrorRatePct: 1, SLO: &engine.SLO{P95Ms: &slo}}
		v.start(sc)
		level, seen := 0, 0
		for range 15 {
			v.wait(2 * time.Second)
			p := v.live()
			if p.FindMax == nil || p.FindMax.TargetWorkers == level {
				continue
			}
			level, seen = p.FindMax.TargetWorkers, seen+1
			v.wait(2 * time.Second)
			l, err := v.store.Ledger(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			held := 0
			for _, h := range l.Reserved {
				held += h.Connections
			}
			if held != level {
				t.Errorf("a step of %d connections holds %d", level, held)
			}
		}
		if seen < 3 {
			t.Errorf("%d steps were seen\n%s", seen, v.store.text())
		}
		if _, err := v.svc.Stop(t.Context(), "run-1", "tester"); err != nil {
			t.Error(err)
		}
		v.figures()
	})
}
