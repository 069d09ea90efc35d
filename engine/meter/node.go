package meter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// NodeState is what a node reads of itself when it is scraped.
type NodeState struct {
	// RunWorkers are alive and bear Connections of at most Capacity, 0 without a limit.
	RunWorkers, Connections, Capacity int
	// Servers hold a stream to the node.
	Draining bool
	Servers  int
	// SpoolBytes lie in Parts that no server has acknowledged; FreeBytes are left on that disk, -1
	// when that is not known.
	Parts      int
	SpoolBytes int64
	FreeBytes  int64
}

// Node takes what happens on a node. It implements worker.Meter.
type Node struct {
	set
	life, cancel prometheus.Histogram
}

// NewNode returns the metrics of a node, which reads its state anew for each figure.
func NewNode(read func() NodeState) *Node {
	m := &Node{}
	m.life = m.histogram("loadstone_node_run_worker_seconds", "Lives of run workers, from their assignment to their end.",
		long...)
	m.cancel = m.histogram("loadstone_node_cancel_seconds", "From hearing STOP to the end of the run worker.", human...)
	for _, g := range []struct {
		name, help string
		of         func(NodeState) float64
	}{
		{"loadstone_node_run_workers", "Run workers on the node.",
			func(s NodeState) float64 { return float64(s.RunWorkers) }},
		{"loadstone_node_connections", "Connections that its run workers were given.",
			func(s NodeState) float64 { return float64(s.Connections) }},
		{"loadstone_node_capacity_connections", "Most connections of all runs together; 0 is no limit.",
			func(s NodeState) float64 { return float64(s.Capacity) }},
		{"loadstone_node_draining", "1 while the node takes no new work.",
			func(s NodeState) float64 { return truth(s.Draining) }},
		{"loadstone_node_control_streams", "Servers that hold a stream to the node.",
			func(s NodeState) float64 { return float64(s.Servers) }},
		{"loadstone_node_artifacts_waiting", "Artifacts that no server has acknowledged.",
			func(s NodeState) float64 { return float64(s.Parts) }},
		{"loadstone_node_spool_bytes", "Bytes of artifacts that no server has acknowledged.",
			func(s NodeState) float64 { return float64(s.SpoolBytes) }},
		{"loadstone_node_disk_free_bytes", "Free space of the spool's disk; -1 when unknown.",
			func(s NodeState) float64 { return float64(s.FreeBytes) }},
	} {
		m.gauge(g.name, g.help, func() float64 { return g.of(read()) })
	}
	return m
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Ended implements worker.Meter.
func (m *Node) Ended(life, sinceStop time.Duration) {
	m.life.Observe(life.Seconds())
	if sinceStop > 0 {
		m.cancel.Observe(sinceStop.Seconds())
	}
}
