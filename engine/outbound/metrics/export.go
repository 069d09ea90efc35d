package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
)

// Export is the metrics of what is sent of live runs to other systems, read when they are scraped.
type Export struct {
	counts  map[string]func() delivery.Counts
	seconds func() (written, dropped int64)
}

// NewExport returns those of destinations by name.
func NewExport(counts map[string]func() delivery.Counts, seconds func() (written, dropped int64)) Export {
	return Export{counts, seconds}
}

var (
	exportSentDesc = prometheus.NewDesc("loadstone_out_sent_total",
		"Samples and annotations delivered, by destination.", []string{"destination"}, nil)
	exportLostDesc = prometheus.NewDesc("loadstone_out_lost_total",
		"Samples and annotations lost, by destination and reason: refused, given_up (retries expired), queue_full, shutdown.",
		[]string{"destination", "reason"}, nil)
	exportRetriesDesc = prometheus.NewDesc("loadstone_out_retries_total",
		"Retried deliveries, by destination.", []string{"destination"}, nil)
	exportWaitingDesc = prometheus.NewDesc(
		"loadstone_out_waiting",
		"Samples and annotations waiting for delivery, by destination.",
		[]string{"destination"},
		nil,
	)
	exportBytesDesc = prometheus.NewDesc(
		"loadstone_out_waiting_bytes",
		"Approximate memory of waiting samples and annotations in bytes, by destination.",
		[]string{"destination"},
		nil,
	)
	exportFailingDesc = prometheus.NewDesc("loadstone_out_failing",
		"1 if the last delivery failed, by destination.", []string{"destination"}, nil)
	exportDroppedDesc = prometheus.NewDesc("loadstone_out_seconds_dropped_total",
		"Seconds of live runs dropped before they became samples, because the server was too slow.", nil, nil)
)

// Describe implements prometheus.Collector.
func (o Export) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{exportSentDesc, exportLostDesc, exportRetriesDesc, exportWaitingDesc,
		exportBytesDesc, exportFailingDesc, exportDroppedDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (o Export) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	for name, counts := range o.counts {
		c := counts()
		counter(exportSentDesc, c.Sent, name)
		counter(exportRetriesDesc, c.Retries, name)
		for why, n := range c.Lost {
			counter(exportLostDesc, n, name, why)
		}
		gauge(exportWaitingDesc, float64(c.Waiting), name)
		gauge(exportBytesDesc, float64(c.Bytes), name)
		failing := 0.0
		if c.Failing {
			failing = 1
		}
		gauge(exportFailingDesc, failing, name)
	}
	_, dropped := o.seconds()
	counter(exportDroppedDesc, dropped)
}
