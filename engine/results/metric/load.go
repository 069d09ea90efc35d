package metric

import (
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// LoadMetric is a metric with its value in what a run worker reported; rollup.Unknown is none.
type LoadMetric struct {
	*Metric
	Value func(*rollup.Load) float64
}

// ArrivalCounters are counters, WorkerGauges gauges of a run worker, and OfNode of its node.
var (
	ArrivalCounters = []LoadMetric{
		{ByName("loadstone_scheduled_operations_total"), func(l *rollup.Load) float64 { return float64(l.Scheduled) }},
		{ByName("loadstone_dropped_operations_total"), func(l *rollup.Load) float64 { return float64(l.Dropped) }},
		{ByName("loadstone_retries_total"), func(l *rollup.Load) float64 { return float64(l.Retries) }},
	}
	WorkerGauges = []LoadMetric{
		{ByName("loadstone_connections"), func(l *rollup.Load) float64 { return float64(l.Connections) }},
		{ByName("loadstone_target_connections"), func(l *rollup.Load) float64 { return float64(l.TargetConnections) }},
		{ByName("loadstone_waiting_operations"), func(l *rollup.Load) float64 { return float64(l.Waiting) }},
		{ByName("loadstone_target_operations_per_second"), func(l *rollup.Load) float64 { return l.TargetRate }},
	}
	NodeGauges = []LoadMetric{
		{ByName("loadstone_node_cpu_ratio"), func(l *rollup.Load) float64 { return l.CPU }},
		{ByName("loadstone_node_memory_ratio"), func(l *rollup.Load) float64 { return l.Memory }},
		{ByName("loadstone_node_memory_bytes"), func(l *rollup.Load) float64 { return float64(l.MemoryBytes) }},
		{ByName("loadstone_node_host_cpu_ratio"), func(l *rollup.Load) float64 { return l.HostCPU }},
		{ByName("loadstone_node_host_memory_ratio"), func(l *rollup.Load) float64 { return l.HostMemory }},
	}
)
