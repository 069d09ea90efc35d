package run

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// LifecyclePlan is what a run is to do, as far as its life depends on it.
func LifecyclePlan(run engine.Run, workers []string) lifecycle.Plan {
	w, sc := run.Scenario.Workload, run.Scenario
	p := lifecycle.Plan{Workers: workers, Warmup: w.Warmup(), Duration: w.Duration(), Stages: w.Stages,
		Elastic: sc.Scaling.Elastic(), StartLimit: protocol.StartTimeout,
		Drain: func(r engine.StopReason) time.Duration { return protocol.DrainTimeoutOf(w, r) }}
	if w.IsSearch() {
		p.Duration = sc.MaxSearchDuration()
		p.Search = lifecycle.NewSearch(sc.FindMax, w.Repeat,
			func(number int) string { return scaling.StepID(run.RunID, number) })
	}
	return p
}
