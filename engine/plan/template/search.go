package template

import (
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
)

// A search whose document says no more of them has these bounds, in connections.
const (
	// rateSearchConnections carry a search over the rate.
	rateSearchConnections = 64
	// maxPerWorker is what a FIXED run worker takes in a search without a bound of its own.
	maxPerWorker = 1000
)

// searches reports whether a document that is not read yet asks for a search.
func searches(workload map[string]any) bool {
	return workload["load_mode"] == string(engine.LoadFindMax)
}

// searchesRate reports whether its search is over the rate.
func searchesRate(root map[string]any) bool {
	search, _ := root["find_max"].(map[string]any)
	return search["unit"] == string(engine.FindMaxRate)
}

// translateSearch fills, before the schema's defaults apply, what a search
// over the rate has other defaults for.
func translateSearch(root, workload map[string]any) {
	if searches(workload) && searchesRate(root) && workload["concurrent_connections"] == nil {
		workload["concurrent_connections"] = int64(rateSearchConnections)
	}
}

// deriveSearch fills what follows from a search's own fields: a search over
// connections begins with those of its first step.
func deriveSearch(root, workload map[string]any) {
	search, ok := root["find_max"].(map[string]any)
	if !ok || !searches(workload) {
		return
	}
	search["enabled"] = true
	if !searchesRate(root) {
		workload["concurrent_connections"] = search["start_concurrency"]
		return
	}
	if search["rate_increment"] == nil {
		search["rate_increment"] = search["start_rate"]
	}
}

// maxSearchConnections is how many connections a FIXED run with a search may come to need; 0 without one.
func maxSearchConnections(root, workload map[string]any) float64 {
	if !searches(workload) || searchesRate(root) {
		return 0
	}
	search, _ := root["find_max"].(map[string]any)
	if most, ok := asFloat(normalizeNumbers(search["max_concurrency"])); ok {
		return most
	}
	scaling, _ := root["scaling"].(map[string]any)
	workers, _ := asFloat(normalizeNumbers(scaling["worker_count"]))
	return workers * maxPerWorker
}

// checkSearch judges the fields of a search against each other and the load mode.
func checkSearch(s engine.Scenario, add func(field, message, hint string)) {
	f, w := s.FindMax, s.Workload
	rates := []struct {
		name  string
		value *float64
	}{{"start_rate", f.StartRate}, {"rate_increment", f.RateIncrement}, {"max_rate", f.MaxRate}}
	if slo := f.SLO; slo != nil && slo.P95Ms == nil && slo.P99Ms == nil && slo.ErrorRatePct == nil {
		add("find_max.slo", "names no objective",
			"give p95_ms, p99_ms or error_rate_pct, or remove it: the first step is the measure then")
	}
	if f.Unit != engine.FindMaxRate {
		for _, r := range rates {
			if r.value != nil {
				add("find_max."+r.name, "has no meaning in a search over connections", "set find_max.unit: rate, or remove it")
			}
		}
	}
	if !w.IsSearch() {
		if w.Repeat > 1 {
			add("workload.repeat", "has no meaning in "+string(w.LoadMode)+" mode: only a search is repeated within its run",
				"remove it; to know the noise between runs, start the template several times and give all of them to a comparison")
		}
		return
	}
	if f.MaxDuration() < f.Settle()+f.StepDuration() {
		add("find_max.max_duration_seconds",
			fmt.Sprintf("%.6g s are over before the first step, which takes %.6g s", f.MaxDurationSeconds,
				(f.Settle()+f.StepDuration()).Seconds()),
			"raise it, or shorten find_max.step_duration_seconds")
	}
	if f.Unit == engine.FindMaxRate {
		switch {
		case f.StartRate == nil:
			add("find_max.start_rate", "is required in a search over the rate",
				"operations per second of the first step, for example 500")
		case f.MaxRate != nil && *f.MaxRate < *f.StartRate:
			add("find_max.max_rate", fmt.Sprintf("%.6g is below start_rate %.6g", *f.MaxRate, *f.StartRate),
				"the search begins at start_rate and climbs")
		}
		if f.MaxConcurrency != nil {
			add("find_max.max_concurrency", "has no meaning in a search over the rate",
				"use find_max.max_rate; workload.concurrent_connections says how many connections carry it")
		}
		if w.ThinkTimeMs > 0 {
			add("workload.think_time_ms", "has no meaning in a search over the rate",
				"operations are due on a schedule, whatever the ones before do; remove it")
		}
		return
	}
	if f.MaxConcurrency != nil && *f.MaxConcurrency < f.StartConcurrency {
		add("find_max.max_concurrency",
			fmt.Sprintf("%d is below start_concurrency %d", *f.MaxConcurrency, f.StartConcurrency),
			"the search begins at start_concurrency and climbs")
	}
	if sc := s.Scaling; sc.Mode == engine.ScalingFixed && f.MaxConcurrency != nil &&
		*f.MaxConcurrency > sc.WorkerCount*sc.PerWorkerCapacity {
		add("find_max.max_concurrency",
			fmt.Sprintf("%d connections do not fit: scaling.worker_count %d × scaling.per_worker_capacity %d = %d",
				*f.MaxConcurrency, sc.WorkerCount, sc.PerWorkerCapacity, sc.WorkerCount*sc.PerWorkerCapacity),
			"raise worker_count or per_worker_capacity, or lower it")
	}
}
