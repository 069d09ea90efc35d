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
	m.life = m.histogram("loadstone_node_run_worker_seconds", "Lifetime of run workers, from assignment to end.",
		longBuckets...)
	m.cancel = m.histogram(
		"loadstone_node_cancel_seconds",
		"Time from receiving STOP to the end of the run worker.",
		humanBuckets...)
	m.deleted = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "loadstone_node_artifacts_deleted_total",
		Help: "Spool files deleted, by reason: ACKNOWLEDGED, EXPIRED, OLDEST, CACHE."}, []string{"reason"})
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
		{"loadstone_node_connections", "Connections assigned to the node's run workers.",
			func(s worker.NodeState) float64 { return float64(s.Connections) }},
		{"loadstone_node_capacity_connections", "Maximum connections of all runs; 0 = unlimited.",
			func(s worker.NodeState) float64 { return float64(s.Capacity) }},
		{"loadstone_node_draining", "1 while the node drains.",
			func(s worker.NodeState) float64 { return boolValue(s.Draining) }},
		{"loadstone_node_accepting_work",
			"1 if the node accepts run workers: not draining, and disk space left.",
			func(s worker.NodeState) float64 { return boolValue(s.Accepting) }},
		{"loadstone_node_control_streams", "Servers with a control stream to the node.",
			func(s worker.NodeState) float64 { return float64(s.Servers) }},
		{"loadstone_node_artifacts_waiting", "Artifacts not yet acknowledged by a server.",
			func(s worker.NodeState) float64 { return float64(s.Parts) }},
		{"loadstone_node_spool_bytes", "Bytes of artifacts not yet acknowledged by a server.",
			func(s worker.NodeState) float64 { return float64(s.SpoolBytes) }},
		{"loadstone_node_spool_used_bytes", "Bytes of all spool files: being written, waiting, or retained.",
			func(s worker.NodeState) float64 { return float64(s.DiskBytes) }},
		{"loadstone_node_promql_cache_bytes", "Bytes of fetched segments cached on disk.",
			func(s worker.NodeState) float64 { return float64(s.CacheBytes) }},
		{"loadstone_node_spool_budget_bytes", "Maximum bytes of the spool.",
			func(s worker.NodeState) float64 { return float64(s.BudgetBytes) }},
		{"loadstone_node_disk_free_bytes", "Free space of the spool's disk in bytes; -1 if unknown.",
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
