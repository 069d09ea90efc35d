// Package metric lists the metrics of runs.
package metric

// Metric is what is known of a metric.
type Metric struct{ Name, Type, Unit, Help string }

// The types of metrics, as Prometheus calls them.
const (
	Counter   = "counter"
	Gauge     = "gauge"
	Histogram = "histogram"
)

// All are those that runs have; docs/guides/dashboards.md says more of each.
var All = []Metric{
	{"loadstone_operations_total", Counter, "", "Operations that ended, also those that failed."},
	{"loadstone_failed_operations_total", Counter, "", "Operations that failed."},
	{"loadstone_rows_total", Counter, "", "Rows that operations read or wrote."},
	{"loadstone_latency_seconds", Histogram, "seconds", "Time from when an operation was due until it ended."},
	{"loadstone_errors_total", Counter, "", "Operations that failed, by class and code of their error."},
	{"loadstone_statement_operations_total", Counter, "", "Executions of a statement, also inside of transactions."},
	{"loadstone_statement_failed_operations_total", Counter, "", "Executions of a statement that failed."},
	{"loadstone_statement_latency_seconds", Histogram, "seconds", "Time of an execution of a statement."},
	{"loadstone_worker_operations_total", Counter, "", "Operations of a run worker."},
	{"loadstone_worker_failed_operations_total", Counter, "", "Operations of a run worker that failed."},
	{"loadstone_worker_latency_seconds", Histogram, "seconds", "Time of the operations of a run worker."},
	{"loadstone_scheduled_operations_total", Counter, "", "Operations that the schedule of an open loop has made due."},
	{"loadstone_dropped_operations_total", Counter, "", "Operations that were due and never begun."},
	{"loadstone_retries_total", Counter, "", "Repetitions of operations that failed."},
	{"loadstone_connections", Gauge, "", "Connections of a run worker that are open."},
	{"loadstone_target_connections", Gauge, "", "Connections that a run worker is to have open."},
	{"loadstone_target_operations_per_second", Gauge, "",
		"Rate that the schedule asks of a run worker, in operations a second."},
	{"loadstone_waiting_operations", Gauge, "", "Operations that are due and wait for a connection."},
	{"loadstone_node_cpu_ratio", Gauge, "ratio", "CPU time that the process of a node uses, of what it may use."},
	{"loadstone_node_memory_ratio", Gauge, "ratio", "Memory that the process of a node takes, of what it may take."},
	{"loadstone_node_memory_bytes", Gauge, "bytes", "Memory that the process of a node takes."},
	{"loadstone_node_host_cpu_ratio", Gauge, "ratio", "CPU time that is used on the machine of a node."},
	{"loadstone_node_host_memory_ratio", Gauge, "ratio", "Memory that is taken on the machine of a node."},
	{"loadstone_warehouse_credits_total", Counter, "",
		"Credits that the started clusters of the warehouse take, by the price list."},
	{"loadstone_warehouse_running_queries", Gauge, "", "Queries that the warehouse works on."},
	{"loadstone_warehouse_queued_queries", Gauge, "", "Queries that wait for the warehouse."},
	{"loadstone_warehouse_started_clusters", Gauge, "", "Clusters of the warehouse that are started."},
	{"loadstone_warehouse_state", Gauge, "",
		"1 for the state that the warehouse is in, 0 for those that it was in before."},
}

// ByName is the one of a name, which is one of them.
func ByName(name string) *Metric {
	for i := range All {
		if All[i].Name == name {
			return &All[i]
		}
	}
	panic("no metric is called " + name)
}
