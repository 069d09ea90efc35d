package metrics

import "github.com/prometheus/client_golang/prometheus"

// Live is the metrics of the seconds of live runs that go into the results database, read when they are scraped.
type Live struct {
	counts func() (written, dropped int64)
}

// NewLive returns them.
func NewLive(counts func() (written, dropped int64)) Live { return Live{counts} }

var (
	liveWrittenDesc = prometheus.NewDesc("loadstone_live_seconds_written_total",
		"Seconds of live runs written to the results database.", nil, nil)
	liveDroppedDesc = prometheus.NewDesc(
		"loadstone_live_seconds_dropped_total",
		"Seconds of live runs not written because the results database was unavailable or slow; ingestion adds them later.",
		nil,
		nil,
	)
)

// Describe implements prometheus.Collector.
func (l Live) Describe(ch chan<- *prometheus.Desc) {
	ch <- liveWrittenDesc
	ch <- liveDroppedDesc
}

// Collect implements prometheus.Collector.
func (l Live) Collect(ch chan<- prometheus.Metric) {
	written, dropped := l.counts()
	ch <- prometheus.MustNewConstMetric(liveWrittenDesc, prometheus.CounterValue, float64(written))
	ch <- prometheus.MustNewConstMetric(liveDroppedDesc, prometheus.CounterValue, float64(dropped))
}
