package metric

import (
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// OfLoad is a metric with its value in what a run worker reported; rollup.Unknown is none.
type OfLoad struct {
	*Metric
	Of func(*rollup.Load) float64
}

// Arrivals are counters, OfWorker gauges of a run worker, and OfNode of its node.
var (
	Arrivals = []OfLoad{
		{Named("loadstone_scheduled_operations_total"), func(l *rollup.Load) float64 { return float64(l.Scheduled) }},
		{Named("loadstone_dropped_operations_total"), func(l *rollup.Load) float64 { return float64(l.Dropped) }},
		{Named("loadstone_retries_total"), func(l *rollup.Load) float64 { return float64(l.Retries) }},
	}
	OfWorker = []OfLoad{
		{Named("loadstone_connections"), func(l *rollup.Load) float64 { return float64(l.Connections) }},
		{Named("loadstone_target_connections"), func(l *rollup.Load) float64 { return float64(l.TargetConnections) }},
		{Named("loadstone_waiting_operations"), func(l *rollup.Load) float64 { return float64(l.Waiting) }},
		{Named("loadstone_target_operations_per_second"), func(l *rollup.Load) float64 { return l.TargetRate }},
	}
	OfNode = []OfLoad{
		{Named("loadstone_node_cpu_ratio"), func(l *rollup.Load) float64 { return l.CPU }},
		{Named("loadstone_node_memory_ratio"), func(l *rollup.Load) float64 { return l.Memory }},
		{Named("loadstone_node_memory_bytes"), func(l *rollup.Load) float64 { return float64(l.MemoryBytes) }},
		{Named("loadstone_node_host_cpu_ratio"), func(l *rollup.Load) float64 { return l.HostCPU }},
		{Named("loadstone_node_host_memory_ratio"), func(l *rollup.Load) float64 { return l.HostMemory }},
	}
)
