// Package metrics is the metrics of Prometheus that the engine takes: between a server and its
// nodes, and on a node. Nothing that grows without bound (a run, a work, a node) is a
// label; which run it was is in the logs.
package metrics

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/outbound/trace"
)

// set is a group of metrics that are registered together.
type set []prometheus.Collector

// Describe implements prometheus.Collector.
func (s set) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range s {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (s set) Collect(ch chan<- prometheus.Metric) {
	for _, c := range s {
		c.Collect(ch)
	}
}

func (s *set) histogram(name, help string, buckets ...float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	*s = append(*s, h)
	return h
}

func (s *set) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	*s = append(*s, c)
	return c
}

func (s *set) gauge(name, help string, read func() float64) {
	*s = append(*s, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// Buckets in seconds: of what takes a round trip, of what is noticed, and of work.
var (
	fastBuckets  = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .2, .3, .5, 1, 2.5, 5, 10}
	humanBuckets = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	longBuckets  = []float64{1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400}
)

// Server takes what happens between a server and its nodes. It implements nodes.Meter.
type Server struct {
	set
	traces                                             *trace.Tracer
	tick, rtt, reconnect, assignment, ready, fetch     prometheus.Histogram
	disconnects, accepted, rejected, assigned          prometheus.Counter
	reassigned, affinity, mismatches, failed, fetchedB prometheus.Counter
	query                                              prometheus.Histogram
	queryErrors                                        *prometheus.CounterVec
	works                                              queryWorkMetrics
}

// NewServer returns the metrics of a server, all 0; traces makes spans of what they measure, nil makes none.
func NewServer(traces *trace.Tracer) *Server {
	m := &Server{traces: traces}
	m.tick = m.histogram("loadstone_run_tick_seconds",
		"Delay from the end of a run's second until it was aggregated and shown.", fastBuckets...)
	m.rtt = m.histogram("loadstone_heartbeat_rtt_seconds", "Round-trip time of heartbeats, of all nodes.", fastBuckets...)
	m.disconnects = m.counter("loadstone_control_disconnects_total", "Control streams to nodes that broke.")
	m.reconnect = m.histogram("loadstone_control_reconnect_seconds",
		"Time from a lost control stream to the next one.", humanBuckets...)
	m.assigned = m.counter("loadstone_work_assigned_total", "Work items (run workers) assigned to nodes.")
	m.reassigned = m.counter("loadstone_work_reassigned_total", "Work items reassigned after a node was lost.")
	m.affinity = m.counter("loadstone_work_affinity_hits_total",
		"Work items assigned to their preferred node.")
	m.assignment = m.histogram("loadstone_work_assignment_seconds",
		"Time from assigning a work item to the node's answer.", fastBuckets...)
	m.accepted = m.counter("loadstone_work_accepted_total", "Work items accepted by nodes.")
	m.rejected = m.counter("loadstone_work_rejected_total", "Work items rejected by nodes.")
	m.ready = m.histogram("loadstone_artifact_ready_to_fetch_seconds",
		"Time from the announcement of an artifact to its fetch.", humanBuckets...)
	m.fetch = m.histogram(
		"loadstone_artifact_fetch_seconds",
		"Duration of artifact fetches, from the first byte to the last.",
		humanBuckets...)
	m.fetchedB = m.counter("loadstone_artifact_fetched_bytes_total", "Bytes of artifacts fetched.")
	m.mismatches = m.counter("loadstone_artifact_mismatches_total",
		"Artifacts whose checksum or size differed from the announcement.")
	m.failed = m.counter(
		"loadstone_artifact_fetch_failures_total",
		"Artifact fetches that failed, other than by a mismatch.",
	)
	m.queries()
	m.makeQueryWorkMetrics()
	return m
}

// Ticked takes how long after its time the second of a run was aggregated and shown.
func (m *Server) Ticked(runID string, after time.Duration) { observe(m.tick, after, runID, m.traces) }

// RoundTrip implements nodes.Meter.
func (m *Server) RoundTrip(took time.Duration) { m.rtt.Observe(took.Seconds()) }

// Connected implements nodes.Meter.
func (m *Server) Connected(after time.Duration) {
	if after > 0 {
		m.reconnect.Observe(after.Seconds())
	}
}

// Disconnected implements nodes.Meter.
func (m *Server) Disconnected() { m.disconnects.Inc() }

// Assigned implements nodes.Meter.
func (m *Server) Assigned(w nodes.Work, preferred, again bool) (traceParent string) {
	if w.QueryID != "" {
		m.workAssigned(preferred, again)
		return m.traces.Context(w.QueryID, assignmentOf(w))
	}
	m.assigned.Inc()
	if preferred {
		m.affinity.Inc()
	}
	if again {
		m.reassigned.Inc()
	}
	return m.traces.Context(w.RunID, assignmentOf(w))
}

// assignmentOf is the key of the span in which a run worker, or a work of a query, was given to a node.
func assignmentOf(w nodes.Work) string {
	return "assign " + cmp.Or(w.WorkerID, w.WorkID) + " " + w.NodeID
}

// Responded implements nodes.Meter.
func (m *Server) Responded(w nodes.Work, accepted bool, after time.Duration) {
	assignment, yes, no := m.assignment, m.accepted, m.rejected
	if w.QueryID != "" {
		assignment, yes, no = m.works.assignment, m.works.accepted, m.works.rejected
	}
	observe(assignment, after, w.RunID, m.traces)
	s := span("assign", w, after)
	s.Key = assignmentOf(w)
	if accepted {
		yes.Inc()
	} else {
		no.Inc()
		s.Failed = "the node does not take it"
	}
	m.traces.Record(s)
}

// FetchStarted implements nodes.Meter.
func (m *Server) FetchStarted(w nodes.Work, after time.Duration) {
	ready := m.ready
	if w.QueryID != "" {
		ready = m.works.ready
	}
	observe(ready, after, w.RunID, m.traces)
	m.traces.Record(span("artifact waits", w, after))
}

// Fetched implements nodes.Meter.
func (m *Server) Fetched(w nodes.Work, bytes int64, took time.Duration, failed, mismatch bool) {
	fetch, size, mismatches, failures := m.fetch, m.fetchedB, m.mismatches, m.failed
	if w.QueryID != "" {
		fetch, size, mismatches, failures = m.works.fetch, m.works.bytes, m.works.mismatches, m.works.failed
	}
	size.Add(float64(bytes))
	s := span("fetch artifact", w, took)
	switch {
	case mismatch:
		mismatches.Inc()
		s.Failed = "it is not what was announced"
	case failed:
		failures.Inc()
		s.Failed = "the fetch failed"
	default:
		observe(fetch, took, w.RunID, m.traces)
	}
	if m.traces.Enabled() {
		s.Fields = append(s.Fields, trace.Number("bytes", bytes))
	}
	m.traces.Record(s)
}
