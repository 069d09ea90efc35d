package template

import (
	"fmt"
	"math"

	"github.com/loadstone-db/loadstone/engine"
)

// Connections of an open loop whose document does not say how many: one for
// each hundred operations per second, which is enough for answers of 10 ms.
const (
	ratePerConnection      = 100
	minOpenLoopConnections = 16
	maxOpenLoopConnections = 64
	maxMeasurementSeconds  = 604800 // seconds; the schema's maximum of duration_seconds
)

// translateLoad fills, before the schema's defaults apply, what follows from
// the stages and the rate.
func translateLoad(workload map[string]any) {
	peak, total := 0.0, 0.0
	if rate, ok := asFloat(normalizeNumbers(workload["target_qps"])); ok {
		peak = rate
	}
	stages, _ := workload["stages"].([]any)
	for _, s := range stages {
		stage, _ := s.(map[string]any)
		seconds, _ := asFloat(normalizeNumbers(stage["duration_seconds"]))
		total += seconds
		if rate, ok := asFloat(normalizeNumbers(stage["target_qps"])); ok {
			peak = max(peak, rate)
		}
	}
	if workload["duration_seconds"] == nil && total > 0 && total <= maxMeasurementSeconds {
		workload["duration_seconds"] = wholeNumber(total)
	}
	if workload["load_mode"] == string(engine.LoadQPS) && workload["concurrent_connections"] == nil {
		workload["concurrent_connections"] = int64(min(max(math.Ceil(peak/ratePerConnection), minOpenLoopConnections),
			maxOpenLoopConnections))
	}
}

// wholeNumber keeps whole numbers whole, as the reader of documents does.
func wholeNumber(v float64) any {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return int64(v)
	}
	return v
}

// maxConnections is peakConnections of a document that is not read yet.
func maxConnections(workload map[string]any) float64 {
	most, _ := asFloat(normalizeNumbers(workload["concurrent_connections"]))
	stages, _ := workload["stages"].([]any)
	for _, s := range stages {
		stage, _ := s.(map[string]any)
		n, _ := asFloat(normalizeNumbers(stage["connections"]))
		most = max(most, n)
	}
	return most
}

// peakConnections is the most connections that the workload ever asks for.
func peakConnections(w engine.Workload) int {
	most := w.ConcurrentConnections
	for _, s := range w.Stages {
		if s.Connections != nil {
			most = max(most, *s.Connections)
		}
	}
	return most
}

// modeWords names a load mode as the form of a template does, and as the document spells it.
func modeWords(m engine.LoadMode) string {
	words := map[engine.LoadMode]string{engine.LoadConcurrency: "a closed loop", engine.LoadQPS: "an open loop",
		engine.LoadFindMax: "a search with Find Max"}
	return words[m] + " (load_mode: " + string(m) + ")"
}

// checkLoad judges the rate, the arrivals and the stages against the load mode.
func checkLoad(w engine.Workload, add func(field, message, hint string)) {
	open, paced := w.LoadMode == engine.LoadQPS, w.Arrival == engine.ArrivalWorkload
	rates := false
	for _, s := range w.Stages {
		rates = rates || s.TargetQPS != nil
	}
	switch {
	case open && paced && w.TargetQPS != nil:
		add("workload.target_qps", "has no meaning with arrival: workload",
			"the workload's delays are the schedule; remove the rate, or choose constant or poisson")
	case open && !paced && w.TargetQPS == nil && !rates:
		add("workload.target_qps", "is required in an open loop (load_mode: QPS)",
			"operations per second, for example 500")
	case !open && w.TargetQPS != nil:
		add("workload.target_qps", "has no meaning in "+modeWords(w.LoadMode),
			"remove it, or choose the open loop (load_mode: QPS)")
	}
	if !open && w.Arrival != engine.ArrivalConstant && (!w.IsSearch() || paced) {
		add("workload.arrival", string(w.Arrival)+" has no meaning in "+modeWords(w.LoadMode),
			"remove it, or choose the open loop (load_mode: QPS)")
	}
	if open && w.ThinkTimeMs > 0 {
		add("workload.think_time_ms", "has no meaning in an open loop (load_mode: QPS)",
			"operations are due on a schedule, whatever the ones before do; remove it")
	}
	if !open && !w.IsSearch() && w.CatchUp != engine.CatchUpSpread {
		add("workload.catch_up", string(w.CatchUp)+" has no meaning in "+modeWords(w.LoadMode),
			"remove it, or choose the open loop (load_mode: QPS)")
	}
	if len(w.Stages) > 0 {
		checkStages(w, add)
	}
	checkReconnect(w, add)
}

// checkReconnect judges what a run does about an outage of its target.
func checkReconnect(w engine.Workload, add func(field, message, hint string)) {
	const hint = "set workload.on_disconnect: reconnect, or remove it"
	if !w.Reconnects() {
		if w.ReconnectForSeconds != nil {
			add("workload.reconnect_for_seconds", "has no meaning with on_disconnect: fail", hint)
		}
		if w.TolerateOutageSeconds != nil {
			add("workload.tolerate_outage_seconds", "has no meaning with on_disconnect: fail", hint)
		}
		return
	}
	if w.IsSearch() {
		add("workload.on_disconnect", "reconnect has no meaning in "+modeWords(w.LoadMode),
			"a step with an outage says nothing of the limit; measure outages with another load_mode")
	}
	if s := w.TolerateOutageSeconds; s != nil && *s > w.ReconnectFor().Seconds() {
		add("workload.tolerate_outage_seconds", fmt.Sprintf("%g is longer than the %g s for which the run reconnects", *s,
			w.ReconnectFor().Seconds()), "lower it, or raise workload.reconnect_for_seconds")
	}
}

func checkStages(w engine.Workload, add func(field, message, hint string)) {
	switch {
	case w.LoadMode == engine.LoadFindMax:
		add("workload.stages", "has no meaning in "+modeWords(w.LoadMode),
			"the search chooses its own steps; remove it")
		return
	case w.LoadMode == engine.LoadQPS && w.Arrival == engine.ArrivalWorkload:
		add("workload.stages", "has no meaning with arrival: workload",
			"the workload's delays are the schedule; remove the stages, or choose constant or poisson")
		return
	}
	total := 0.0
	for i, s := range w.Stages {
		field := fmt.Sprintf("workload.stages[%d]", i)
		total += s.DurationSeconds
		switch {
		case s.TargetQPS != nil && s.Connections != nil:
			add(field, "has both target_qps and connections", "a stage changes one of them")
		case w.LoadMode == engine.LoadQPS && s.TargetQPS == nil:
			add(field+".target_qps", "is required in an open loop (load_mode: QPS)",
				"the operations per second at the end of the stage")
		case w.LoadMode == engine.LoadConcurrency && s.Connections == nil:
			add(field+".connections", "is required in a closed loop (load_mode: CONCURRENCY)",
				"the connections at the end of the stage; for rates choose the open loop (load_mode: QPS)")
		}
	}
	switch {
	case total > maxMeasurementSeconds:
		add("workload.stages", fmt.Sprintf("last %.6g s in all, at most %d are allowed", total, maxMeasurementSeconds),
			"a week is the longest measurement")
	case math.Abs(total-w.DurationSeconds) > 1e-6*total:
		add("workload.duration_seconds", fmt.Sprintf("is %.6g, but the stages last %.6g s in all", w.DurationSeconds, total),
			"leave it out: the stages follow each other and say how long the measurement is")
	}
}
