package metrics

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
)

// Nodes are gauges of what a server knows of its nodes, read when they are scraped.
type Nodes struct{ read func() []nodes.NodeInfo }

// NewNodes returns them; read is called once for each scrape.
func NewNodes(read func() []nodes.NodeInfo) Nodes { return Nodes{read} }

var (
	statesDesc = prometheus.NewDesc("loadstone_nodes_by_state", "Nodes, by state.",
		[]string{"state"}, nil)
	streamsDesc  = prometheus.NewDesc("loadstone_control_streams", "Nodes with a working control stream.", nil, nil)
	capacityDesc = prometheus.NewDesc("loadstone_nodes_capacity_connections",
		"Connection capacity of the nodes that accept work; unlimited nodes count 0.", nil, nil)
	usedDesc  = prometheus.NewDesc("loadstone_nodes_used_connections", "Connections assigned to nodes.", nil, nil)
	clockDesc = prometheus.NewDesc("loadstone_nodes_clock_offset_max_seconds",
		"Largest clock offset between a node and the server.", nil, nil)
	contactDesc = prometheus.NewDesc("loadstone_nodes_silent",
		"Nodes without contact for 30 s or more that were not removed.", nil, nil)
)

// Describe implements prometheus.Collector.
func (n Nodes) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{statesDesc, streamsDesc, capacityDesc, usedDesc, clockDesc, contactDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (n Nodes) Collect(ch chan<- prometheus.Metric) {
	states := map[nodes.NodeState]int{nodes.NodeConnecting: 0, nodes.NodeActive: 0, nodes.NodeDraining: 0,
		nodes.NodeProbing: 0, nodes.NodeUnreachable: 0, nodes.NodeRemoved: 0}
	var streams, capacity, used, silent int
	var clock float64
	for _, v := range n.read() {
		states[v.State]++
		used += v.Used
		if v.State == nodes.NodeActive || v.State == nodes.NodeDraining {
			streams++
		}
		if v.AcceptingWork {
			capacity += v.Capacity
		}
		if v.ClockOffsetMs != nil {
			clock = max(clock, math.Abs(*v.ClockOffsetMs)/1000)
		}
		if v.State != nodes.NodeRemoved && v.Health != "HEALTHY" {
			silent++
		}
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for state, count := range states {
		gauge(statesDesc, float64(count), string(state))
	}
	gauge(streamsDesc, float64(streams))
	gauge(capacityDesc, float64(capacity))
	gauge(usedDesc, float64(used))
	gauge(clockDesc, clock)
	gauge(contactDesc, float64(silent))
}
