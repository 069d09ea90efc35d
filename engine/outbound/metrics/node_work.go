package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/outbound/trace"
)

// workMetrics are the metrics of the work of PromQL queries on a node.
type workMetrics struct {
	works            *prometheus.CounterVec
	took, wait, read prometheus.Histogram
	segments         *prometheus.CounterVec
	fetchedB         prometheus.Counter
}

func (m *Node) makeWorkMetrics() {
	a := &m.work
	a.works = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "loadstone_node_promql_works_total",
		Help: "PromQL work items finished on the node, by outcome: done, cancelled, failed."}, []string{"outcome"})
	a.segments = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "loadstone_node_promql_segments_total",
		Help: "Segments read for PromQL, by source: memory, disk, server."}, []string{"source"})
	for _, outcome := range []string{"done", "cancelled", "failed"} {
		a.works.WithLabelValues(outcome)
	}
	for _, source := range []string{"memory", "disk", "server"} {
		a.segments.WithLabelValues(source)
	}
	m.set = append(m.set, a.works, a.segments)
	a.took = m.histogram("loadstone_node_promql_work_seconds",
		"Duration of PromQL work items, from assignment to end.",
		fastBuckets...)
	a.wait = m.histogram(
		"loadstone_node_promql_work_wait_seconds",
		"Time that PromQL work items waited for a processor.",
		fastBuckets...)
	a.read = m.histogram("loadstone_node_promql_segments_seconds",
		"Time to read the segments of a PromQL work item, fetching included.", fastBuckets...)
	a.fetchedB = m.counter("loadstone_node_promql_fetched_bytes_total", "Bytes of segments fetched from servers.")
}

// WorkFinished implements promql.WorkMeter.
func (m *Node) WorkFinished(w nodes.Work, traceParent string, took time.Duration, s nodes.WorkCost, err error) {
	outcome, failed := "done", ""
	switch {
	case errors.Is(err, context.Canceled):
		outcome, failed = "cancelled", "cancelled"
	case err != nil:
		outcome, failed = "failed", err.Error()
	}
	a := &m.work
	a.works.WithLabelValues(outcome).Inc()
	a.took.Observe(took.Seconds())
	a.wait.Observe(s.WaitNs.Seconds())
	a.read.Observe(s.ReadNs.Seconds())
	a.segments.WithLabelValues("memory").Add(float64(s.Hits))
	a.segments.WithLabelValues("disk").Add(float64(s.DiskHits))
	a.segments.WithLabelValues("server").Add(float64(s.Fetched))
	a.fetchedB.Add(float64(s.FetchedBytes))
	if !m.traces.Enabled() {
		return
	}
	p := span("query work", w, took)
	p.Parent, p.Failed = traceParent, failed
	p.Fields = append(p.Fields, trace.Number("segments", s.Segments), trace.Number("fetched_bytes", s.FetchedBytes))
	m.traces.Record(p)
}
