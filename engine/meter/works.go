package meter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/loadstone-db/loadstone/engine/member"
)

// works are the metrics of the work of PromQL queries, as a server sees it.
type works struct {
	assigned, reassigned, affinity, accepted, rejected, mismatches, failed, bytes prometheus.Counter
	assignment, ready, fetch, cancel                                              prometheus.Histogram
}

func (m *Server) makeWorks() {
	w := &m.works
	w.assigned = m.counter("loadstone_promql_work_assigned_total", "Works of PromQL queries that were given to nodes.")
	w.reassigned = m.counter("loadstone_promql_work_reassigned_total",
		"Works of PromQL queries that were given again, after a node was lost, late or failed.")
	w.affinity = m.counter("loadstone_promql_work_affinity_hits_total",
		"Works of PromQL queries that were given to the node that is to have their segments at hand.")
	w.accepted = m.counter("loadstone_promql_work_accepted_total", "Works of PromQL queries that nodes have accepted.")
	w.rejected = m.counter("loadstone_promql_work_rejected_total", "Works of PromQL queries that nodes have rejected.")
	w.assignment = m.histogram("loadstone_promql_work_assignment_seconds",
		"From giving a node a work of a PromQL query to its answer.", quick...)
	w.ready = m.histogram("loadstone_promql_artifact_ready_to_fetch_seconds",
		"From the announcement of what a work of a PromQL query came to, to the beginning of its fetch.", quick...)
	w.fetch = m.histogram("loadstone_promql_artifact_fetch_seconds", "Fetches of what works of PromQL queries came to.",
		quick...)
	w.bytes = m.counter("loadstone_promql_artifact_fetched_bytes_total", "Bytes of what works of PromQL queries came to.")
	w.mismatches = m.counter("loadstone_promql_artifact_mismatches_total",
		"What works of PromQL queries came to and was not what was announced: another checksum, another size.")
	w.failed = m.counter("loadstone_promql_artifact_fetch_failures_total",
		"Fetches of what works of PromQL queries came to that failed for another reason.")
	w.cancel = m.histogram("loadstone_promql_work_cancel_seconds",
		"From telling a node to end a work of a PromQL query until it has.", quick...)
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

// Cancelled implements fleet.Meter.
func (m *Server) Cancelled(w member.Work, after time.Duration) {
	m.works.cancel.Observe(after.Seconds())
	m.traces.Record(span("cancel", w, after))
}
