package admission

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	waitingDesc = prometheus.NewDesc("loadstone_runs_waiting", "Runs queued for capacity on nodes.", nil, nil)
	oldestDesc  = prometheus.NewDesc("loadstone_runs_oldest_wait_seconds", "Waiting time of the oldest queued run.",
		nil, nil)
	reservedDesc = prometheus.NewDesc("loadstone_nodes_reserved_connections",
		"Connections reserved on nodes by the runs of all servers.", nil, nil)
	wantedDesc = prometheus.NewDesc("loadstone_nodes_wanted", "Nodes needed for the demand, for autoscalers.", nil, nil)
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
