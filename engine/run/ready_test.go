package run

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestWhoBeginsLateHasItsPartOfAStage: one of three run workers hears START seconds after the others. It begins with
// what it was told first, so nobody else has had that meanwhile.
func TestWhoBeginsLateHasItsPartOfAStage(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		seven := 7
		sc := elastic(engine.ScalingAuto, 0)
		sc.Scaling.PerWorkerCapacity, sc.Workload.ConcurrentConnections = 3, seven
		sc.Workload.Stages = []engine.Stage{{DurationSeconds: 3600, Connections: &seven, Ramp: engine.RampStep}}
		v.mu.Lock()
		v.slowWorker = "worker-2"
		v.mu.Unlock()
		v.start(sc)
		v.mu.Lock()
		late := v.workers["worker-2"]
		late.status, late.silent, late.cutAt = engine.WorkerReady, true, time.Now()
		v.report(late.report())
		v.mu.Unlock()
		begin := time.Now()
		for time.Since(begin) < 20*time.Second {
			v.wait(20 * time.Millisecond)
			workers, connections, _ := v.offered()
			if connections > seven {
				t.Fatalf("%d run workers bear %d connections of %d after %v\n%s", workers, connections, seven,
					time.Since(begin), v.store.text())
			}
			if time.Since(begin) > 5*time.Second {
				v.mu.Lock()
				late.silent, late.cutAt = false, time.Time{}
				v.mu.Unlock()
			} else if time.Since(begin) > 4*time.Second && connections != 5 {
				t.Fatalf("%d run workers bear %d connections beside one that has 2\n%s", workers, connections,
					v.store.text())
			}
		}
		if workers, connections, _ := v.offered(); workers != 3 || connections != seven {
			t.Errorf("%d run workers bear %d connections in the end\n%s", workers, connections, v.store.text())
		}
	})
}
