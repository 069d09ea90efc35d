package findmax_test

import (
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/findmax"
)

// A search says which level is to be measured next, and is told what it gave, until
// it has an answer. The target of this one serves 4 connections at 1 000 a second
// each; more of them wait for one another.
func Example() {
	search := findmax.New(findmax.Config{Unit: engine.FindMaxConnections, Start: 2, Increment: 2, Max: 16,
		QPSStabilityPct: 5, LatencyStabilityPct: 20, MaxErrorRatePct: 1})
	for {
		level, stage, ok := search.Next()
		if !ok {
			break
		}
		qps := min(level, 4) * 1000
		latency := level / qps * 1000
		step, again := search.Observe(findmax.Observation{Operations: int64(10 * qps), QPS: qps, P50: &latency, P95: &latency,
			P99: &latency})
		if again != "" { // the target recovers: that step is not judged
			continue
		}
		fmt.Println(stage, level, step.Outcome)
	}
	fmt.Println(*search.Result().MaxConnections, "connections")
	// Output:
	// STEPPING 2 STABLE
	// STEPPING 4 STABLE
	// STEPPING 6 DEGRADED
	// STEPPING 6 DEGRADED
	// BISECTING 5 DEGRADED
	// BISECTING 5 DEGRADED
	// CONFIRMING 4 STABLE
	// 4 connections
}
