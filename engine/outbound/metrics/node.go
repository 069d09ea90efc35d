package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/loadstone-db/loadstone/engine/outbound/trace"
	"github.com/loadstone-db/loadstone/engine/worker"
)

// Node takes what happens on a node. It implements worker.Meter.
type Node struct {
	set
	traces       *trace.Tracer
	life, cancel prometheus.Histogram
	deleted      *prometheus.CounterVec
	work         workMetrics
}

// NewNode returns the metrics of a node, which reads its state anew for each figure; traces makes spans, nil makes
// none.
func NewNode(traces *trace.Tracer, read func() worker.NodeState) *Node {
	m := &Node{traces: traces}
	m.life = m.histogram("loadstone_node_run_worker_seconds", "Lives of run workers, from their assignment to their end.",
		longBuckets...)
	m.cancel = m.histogram(
		"loadstone_node_cancel_seconds",
		"From hearing STOP to the end of the run worker.",
		humanBuckets...)
	m.deleted = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "loadstone_node_artifacts_deleted_total",
		Help: "Files of the spool that were deleted, by why."}, []string{"reason"})
	for _, reason := range []string{"CACHE", "ACKNOWLEDGED", "EXPIRED", "OLDEST"} {
		m.deleted.WithLabelValues(reason)
	}
	m.set = append(m.set, m.deleted)
	m.makeWorkMetrics()
	for _, g := range []struct {
		name, help string
		of         func(worker.NodeState) float64
	}{
		{"loadstone_node_run_workers", "Run workers on the node.",
			func(s worker.NodeState) float64 { return float64(s.RunWorkers) }},
		{"loadstone_node_connections", "Connections that its run workers were given.",
			func(s worker.NodeState) float64 { return float64(s.Connections) }},
		{"loadstone_node_capacity_connections", "Most connections of all runs together; 0 is no limit.",
			func(s worker.NodeState) float64 { return float64(s.Capacity) }},
		{"loadstone_node_draining", "1 while the node takes no new work.",
			func(s worker.NodeState) float64 { return boolValue(s.Draining) }},
		{"loadstone_node_accepting_work", "1 while the node takes new run workers: it does not drain, and has room on its disk.",
			func(s worker.NodeState) float64 { return boolValue(s.Accepting) }},
		{"loadstone_node_control_streams", "Servers that hold a stream to the node.",
			func(s worker.NodeState) float64 { return float64(s.Servers) }},
		{"loadstone_node_artifacts_waiting", "Artifacts that no server has acknowledged.",
			func(s worker.NodeState) float64 { return float64(s.Parts) }},
		{"loadstone_node_spool_bytes", "Bytes of artifacts that no server has acknowledged.",
			func(s worker.NodeState) float64 { return float64(s.SpoolBytes) }},
		{"loadstone_node_spool_used_bytes", "Bytes of all files of the spool: being written, waiting, and kept for a while.",
			func(s worker.NodeState) float64 { return float64(s.DiskBytes) }},
		{"loadstone_node_promql_cache_bytes", "Bytes of segments that servers have brought and that are kept on disk.",
			func(s worker.NodeState) float64 { return float64(s.CacheBytes) }},
		{"loadstone_node_spool_budget_bytes", "Most bytes that the spool may hold.",
			func(s worker.NodeState) float64 { return float64(s.BudgetBytes) }},
		{"loadstone_node_disk_free_bytes", "Free space of the spool's disk; -1 when unknown.",
			func(s worker.NodeState) float64 { return float64(s.FreeBytes) }},
	} {
		m.gauge(g.name, g.help, func() float64 { return g.of(read()) })
	}
	return m
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Deleted implements worker.Meter.
func (m *Node) Deleted(reason string) { m.deleted.WithLabelValues(reason).Inc() }

// Ended implements worker.Meter.
func (m *Node) Ended(w worker.EndedWorker) {
	observe(m.life, w.Ended.Sub(w.Assigned), w.RunID, m.traces)
	if !w.Stopped.IsZero() {
		observe(m.cancel, max(w.Ended.Sub(w.Stopped), 0), w.RunID, m.traces)
	}
	if !m.traces.Enabled() {
		return
	}
	about := []trace.Field{trace.String("run_id", w.RunID), trace.String("worker_id", w.WorkerID),
		trace.String("node_id", w.NodeID)}
	key := "run worker " + w.WorkerID + " " + w.NodeID
	part := func(name string, from, to time.Time) {
		if from.IsZero() {
			return
		}
		if to.IsZero() || to.Before(from) {
			to = w.Ended
		}
		m.traces.Record(
			trace.Span{Name: name, Trace: w.RunID, ParentKey: key, Parent: m.traces.ContextBelow(w.TraceParent, w.RunID, key),
				Begin: runTime(w, from), End: runTime(w, to), Fields: about},
		)
	}
	part("set-up", w.Assigned, earliestTime(w.Ready, w.Stopped))
	part("wait for START", w.Ready, earliestTime(w.LoadStarted, w.Stopped))
	part("load", w.LoadStarted, w.Stopped)
	part("drain", w.Stopped, w.Drained)
	part("finish record", w.Drained, w.Ended)
	m.traces.Record(
		trace.Span{Name: "run worker", Trace: w.RunID, Key: key, Parent: w.TraceParent, Begin: runTime(w, w.Assigned),
			End: runTime(w, w.Ended), Failed: w.Failed, Fields: about},
	)
}

// runTime is a time of the node's clock by that of the run: spans of several machines lie beside each other.
func runTime(w worker.EndedWorker, t time.Time) time.Time { return t.Round(0).Add(w.Ahead) }

// earliestTime is the first of two times that came.
func earliestTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
