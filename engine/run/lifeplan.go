package run

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// LifePlan is what a run is to do, as far as its life depends on it.
func LifePlan(run engine.Run, workers []string) lifecycle.Plan {
	w, sc := run.Scenario.Workload, run.Scenario
	p := lifecycle.Plan{Workers: workers, Warmup: w.Warmup(), Duration: w.Duration(), Stages: w.Stages,
		Elastic: sc.Scaling.Elastic(), StartLimit: protocol.StartLimit,
		Drain: func(r engine.StopReason) time.Duration { return protocol.DrainOf(w, r) }}
	if w.Searches() {
		p.Duration = sc.LongestSearch()
		p.Search = lifecycle.NewSearch(sc.FindMax, w.Repeat,
			func(number int) string { return scaling.StepID(run.RunID, number) })
	}
	return p
}
