package live

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// BenchmarkTick is one second of a run with 1 000 run workers on 50 nodes, each
// with the histograms of the tick, the phase and four kinds.
func BenchmarkTick(b *testing.B) {
	const n = 1000
	random := rand.New(rand.NewPCG(1, 2))
	spread := func() *engine.PackedHistogram {
		values := make([]int64, 400)
		for i := range values {
			values[i] = int64(50_000 + random.ExpFloat64()*2_000_000)
		}
		return recorded(values...)
	}
	kinds := engine.Kinds()[:4]
	template := make([]engine.WorkerSnapshot, n)
	workers := make([]Worker, n)
	for i := range template {
		counts, latency := map[engine.Kind]engine.KindCounts{}, map[engine.Kind]*engine.PackedHistogram{}
		for _, k := range kinds {
			counts[k], latency[k] = engine.KindCounts{Count: 100}, spread()
		}
		workers[i] = Worker{WorkerID: fmt.Sprintf("worker-%d", i), WorkerGroupID: i, NodeID: fmt.Sprintf("node-%d", i%50),
			Status: engine.WorkerRunning, Health: engine.HealthHealthy}
		template[i] = engine.WorkerSnapshot{WorkerID: workers[i].WorkerID, WorkerGroupID: i, NodeID: workers[i].NodeID,
			Phase:       engine.PhaseMeasurement,
			TickSeconds: 1, Started: 400, TickStarted: 400, Succeeded: 400, ByKind: counts, TickByKind: counts,
			TickLatency: spread(), PhaseLatency: spread(), KindLatency: latency}
	}
	a := New()
	validity := NewValidity()
	b.ReportAllocs()
	for tick := int64(1); b.Loop(); tick++ {
		for i := range template {
			s := template[i]
			s.Tick = tick
			a.Add(&s)
		}
		s := a.Tick(engine.PhaseMeasurement, workers)
		validity.Observe(epoch, engine.PhaseMeasurement, s)
		var p engine.LiveState
		s.Fill(&p)
	}
}
