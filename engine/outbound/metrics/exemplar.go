package metrics

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/outbound/trace"
)

// observe takes a duration, with the run that it is of as its exemplar: a run is no label, of which there would be ever
// more, and an example of each bucket is enough to find one.
func observe(h prometheus.Observer, took time.Duration, runID string, traces *trace.Tracer) {
	// An exemplar whose names and values have more than 128 characters is refused with a panic.
	e, ok := h.(prometheus.ExemplarObserver)
	if !ok || runID == "" || len(runID) > maxIDLength {
		h.Observe(took.Seconds())
		return
	}
	labels := prometheus.Labels{"run_id": runID}
	if traces.Sampled(runID) {
		labels["trace_id"] = trace.ID(runID)
	}
	e.ObserveWithExemplar(took.Seconds(), labels)
}

// maxIDLength leaves room for the rest of an exemplar.
const maxIDLength = 64

// span is what has just ended on or with a node, after so long.
func span(name string, w nodes.Work, took time.Duration) trace.Span {
	now := time.Now()
	s := trace.Span{Name: name, Trace: cmp.Or(w.RunID, w.QueryID), Begin: now.Add(-took), End: now}
	for _, f := range []struct{ key, value string }{{"run_id", w.RunID}, {"worker_id", w.WorkerID},
		{"query_id", w.QueryID}, {"leaf_id", w.LeafID}, {"work_id", w.WorkID},
		{"node_id", w.NodeID}} {
		if f.value != "" {
			s.Fields = append(s.Fields, trace.String(f.key, f.value))
		}
	}
	return s
}
