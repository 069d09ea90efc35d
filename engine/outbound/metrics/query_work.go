package metrics

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/outbound/trace"
)

// queryWorkMetrics are the metrics of the work of PromQL queries, as a server sees it.
type queryWorkMetrics struct {
	assigned, reassigned, affinity, accepted, rejected, mismatches, failed, bytes prometheus.Counter
	assignment, ready, fetch, cancel, query, first                                prometheus.Histogram
	errors                                                                        *prometheus.CounterVec
	running                                                                       atomic.Int64
	started                                                                       queryStarts
}

func (m *Server) makeQueryWorkMetrics() {
	w := &m.works
	w.assigned = m.counter("loadstone_promql_work_assigned_total", "PromQL work items assigned to nodes.")
	w.reassigned = m.counter("loadstone_promql_work_reassigned_total",
		"PromQL work items reassigned after a node was lost, slow or failed.")
	w.affinity = m.counter("loadstone_promql_work_affinity_hits_total",
		"PromQL work items assigned to the node preferred for their segments.")
	w.accepted = m.counter("loadstone_promql_work_accepted_total", "PromQL work items accepted by nodes.")
	w.rejected = m.counter("loadstone_promql_work_rejected_total", "PromQL work items rejected by nodes.")
	w.assignment = m.histogram("loadstone_promql_work_assignment_seconds",
		"Time from assigning a PromQL work item to the node's answer.", fastBuckets...)
	w.ready = m.histogram("loadstone_promql_artifact_ready_to_fetch_seconds",
		"Time from the announcement of a PromQL result to its fetch.", fastBuckets...)
	w.fetch = m.histogram("loadstone_promql_artifact_fetch_seconds", "Duration of fetches of PromQL results from nodes.",
		fastBuckets...)
	w.bytes = m.counter("loadstone_promql_artifact_fetched_bytes_total", "Bytes of PromQL results fetched from nodes.")
	w.mismatches = m.counter("loadstone_promql_artifact_mismatches_total",
		"PromQL results whose checksum or size differed from the announcement.")
	w.failed = m.counter("loadstone_promql_artifact_fetch_failures_total",
		"Fetches of PromQL results that failed, other than by a mismatch.")
	w.query = m.histogram(
		"loadstone_promql_query_seconds",
		"Duration of PromQL queries until their leaves were evaluated.",
		fastBuckets...)
	w.first = m.histogram("loadstone_promql_first_result_seconds",
		"Time until the first part of a PromQL query was evaluated.", fastBuckets...)
	w.errors = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "loadstone_promql_query_errors_total",
		Help: "Failed PromQL queries, by reason: cancelled, timeout, unavailable, execution."}, []string{"reason"})
	for _, reason := range []string{"cancelled", "timeout", "unavailable", "execution"} {
		w.errors.WithLabelValues(reason)
	}
	m.set = append(m.set, w.errors)
	m.gauge("loadstone_promql_queries", "Active PromQL queries.",
		func() float64 { return float64(w.running.Load()) })
	m.gauge("loadstone_promql_oldest_query_seconds", "Age of the oldest active PromQL query; 0 without one.",
		func() float64 { return w.started.oldest(time.Now()).Seconds() })
	w.cancel = m.histogram("loadstone_promql_work_cancel_seconds",
		"Time from cancelling a PromQL work item to its end.", fastBuckets...)
}

func (m *Server) workAssigned(preferred, again bool) {
	m.works.assigned.Inc()
	if preferred {
		m.works.affinity.Inc()
	}
	if again {
		m.works.reassigned.Inc()
	}
}

// Cancelled implements nodes.Meter.
func (m *Server) Cancelled(w nodes.Work, after time.Duration) {
	m.works.cancel.Observe(after.Seconds())
	m.traces.Record(span("cancel", w, after))
}

// queryStarts are when queries began that go on.
type queryStarts struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (b *queryStarts) begin(id string) (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at == nil {
		b.at = map[string]time.Time{}
	}
	b.at[id] = time.Now()
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.at, id)
	}
}

func (b *queryStarts) oldest(now time.Time) (age time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, at := range b.at {
		age = max(age, now.Sub(at))
	}
	return age
}

// QueryStarted implements promql.QueryMeter.
func (m *Server) QueryStarted(queryID string) (over func(err error, first time.Duration)) {
	begin, end := time.Now(), m.works.started.begin(queryID)
	m.works.running.Add(1)
	return func(err error, first time.Duration) {
		end()
		m.works.running.Add(-1)
		took := time.Since(begin)
		m.works.query.Observe(took.Seconds())
		if first > 0 {
			m.works.first.Observe(first.Seconds())
		}
		if err != nil {
			m.works.errors.WithLabelValues(reasonOf(err)).Inc()
		}
		if !m.traces.Enabled() {
			return
		}
		s := endedSpan("promql query", queryID, took, err)
		s.Fields = []trace.Field{trace.String("query_id", queryID)}
		m.traces.Record(s)
	}
}

func reasonOf(err error) string {
	var known *engine.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.As(err, &known):
		return "unavailable"
	}
	return "execution"
}
