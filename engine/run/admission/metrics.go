package admission

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	waitingDesc = prometheus.NewDesc("loadstone_runs_waiting", "Runs that wait for room on the nodes.", nil, nil)
	oldestDesc  = prometheus.NewDesc("loadstone_runs_oldest_wait_seconds", "How long the first of them has waited.",
		nil, nil)
	reservedDesc = prometheus.NewDesc("loadstone_nodes_reserved_connections",
		"Connections that the runs of all servers on the control store hold on nodes.", nil, nil)
	wantedDesc = prometheus.NewDesc("loadstone_nodes_wanted", "How many nodes the demand needs, for a scaler.", nil, nil)
)

var _ prometheus.Collector = (*Controller)(nil)

// Describe implements prometheus.Collector.
func (d *Controller) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{waitingDesc, oldestDesc, reservedDesc, wantedDesc} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector, of the ledger as last read: a scrape asks no store.
func (d *Controller) Collect(ch chan<- prometheus.Metric) {
	l, nodes := d.snapshot()
	s := computeNeeds(l, nodes, time.Now())
	for desc, v := range map[*prometheus.Desc]float64{waitingDesc: float64(s.QueueDepth), oldestDesc: s.OldestSeconds,
		reservedDesc: float64(s.ReservedConnections), wantedDesc: float64(s.WantedNodes)} {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v)
	}
}
