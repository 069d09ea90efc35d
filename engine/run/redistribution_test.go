package run

import (
	"fmt"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// redistribution is a run in which a second run worker joins, and has some of the load of the first.
type redistribution struct {
	sc engine.Scenario
	// most is the whole load, in connections or as a rate.
	connections int
	rate        float64
}

func redistributions() map[string]redistribution {
	rate := overRate(engine.ScalingAuto, 0)
	rate.Workload.ConcurrentConnections, rate.Scaling.PerWorkerCapacity = 4, 4
	four, five, sixty, hundred := 4, 5, 60.0, 100.0
	ramp := rate
	ramp.Workload.Stages = []engine.Stage{{DurationSeconds: 1, TargetQPS: &sixty, Ramp: engine.RampStep},
		{DurationSeconds: 3600, TargetQPS: &hundred, Ramp: engine.RampLinear}}
	stages := elastic(engine.ScalingAuto, 0)
	stages.Scaling.PerWorkerCapacity, stages.Workload.ConcurrentConnections = 4, 4
	stages.Workload.Stages = []engine.Stage{{DurationSeconds: 30, Connections: &four, Ramp: engine.RampStep},
		{DurationSeconds: 3600, Connections: &five, Ramp: engine.RampStep}}
	search := elastic(engine.ScalingAuto, 0)
	search.Scaling.PerWorkerCapacity, search.Workload.ConcurrentConnections = 4, 4
	search.Workload.LoadMode = engine.LoadFindMax
	most := 6
	search.FindMax = engine.FindMax{Enabled: true, Unit: engine.FindMaxConnections, StartConcurrency: 4,
		ConcurrencyIncrement: 2, MaxConcurrency: &most, StepDurationSeconds: 150, MaxDurationSeconds: 3600,
		QPSStabilityPct: 5, LatencyStabilityPct: 60, MaxErrorRatePct: 1}
	return map[string]redistribution{"growth over a rate": {rate, 0, 100}, "growth while a rate rises": {ramp, 0, 100},
		"a stage of connections": {stages, 5, 0}, "a step of a search": {search, 6, 0}}
}

// TestAShareIsGivenOnceItsBearerHasHeard: the first run worker is cut off just before it is told to bear
// less, and bears what it bore for a minute; the second has no more than what is left, until then. When
// the first one comes back before that, both have their parts.
func TestAShareIsGivenOnceItsBearerHasHeard(t *testing.T) {
	for name, d := range redistributions() {
		for _, back := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, back: %v", name, back), func(t *testing.T) {
				inVirtualTime(t, func(t *testing.T, v *virtualServer) {
					v.served = func(connections int, _ float64) float64 { return 10 * float64(connections) }
					v.mu.Lock()
					v.slowWorker = "worker-1"
					v.mu.Unlock()
					v.start(d.sc)
					v.until("worker-1")
					v.disconnect("worker-0")
					v.mu.Lock()
					v.workers["worker-1"].status = engine.WorkerReady
					v.report(v.workers["worker-1"].report())
					v.mu.Unlock()
					given := 0
					for end := time.Now().Add(protocol.ReassignAfter + 30*time.Second); time.Now().
						Before(end); v.wait(20 * time.Millisecond) {
						_, connections, rate := v.offered()
						if d.rate == 0 && connections > d.connections || rate > d.rate+1e-6 {
							t.Fatalf("%d connections and %v/s are offered\n%s", connections, rate, v.store.text())
						}
						v.mu.Lock()
						if w := v.workers["worker-1"]; w.connections > given && w.status == engine.WorkerRunning {
							given = w.connections
						}
						if w := v.workers["worker-0"]; back && time.Since(w.cutAt) > 20*time.Second && !w.cutAt.IsZero() {
							w.cutAt, w.silent = time.Time{}, false
						}
						v.mu.Unlock()
					}
					if name == "a step of a search" && !back {
						return // the next step shares what the lost one had
					}
					if _, connections, rate := v.offered(); d.rate == 0 && connections != d.connections || d.rate == 100 &&
						name != "growth while a rate rises" && rate < d.rate-1e-6 || given == 0 {
						t.Errorf("%d connections and %v/s are offered in the end, %d were given\n%s", connections, rate, given,
							v.store.text())
					}
				})
			})
		}
	}
}

// until waits for a run worker to be placed.
func (v *virtualServer) until(id string) {
	v.t.Helper()
	for range 60_000 {
		v.mu.Lock()
		w := v.workers[id]
		v.mu.Unlock()
		if w != nil {
			return
		}
		v.wait(10 * time.Millisecond)
	}
	v.t.Fatalf("%s does not join\n%s", id, v.store.text())
}
