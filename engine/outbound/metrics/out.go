package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
)

// Out is the metrics of what is sent of live runs to other systems, read when they are scraped.
type Out struct {
	counts  map[string]func() delivery.Counts
	seconds func() (written, dropped int64)
}

// NewOut returns those of destinations by name.
func NewOut(counts map[string]func() delivery.Counts, seconds func() (written, dropped int64)) Out {
	return Out{counts, seconds}
}

var (
	outSentDesc = prometheus.NewDesc("loadstone_out_sent_total",
		"Samples and annotations of live runs that another system has taken.", []string{"destination"}, nil)
	outLostDesc = prometheus.NewDesc("loadstone_out_lost_total",
		"Samples and annotations of live runs that another system has refused (refused) or not taken for as long as was "+
			"tried (given_up), for which there was no room (queue_full), and that were left at the end of the server "+
			"(shutdown).",
		[]string{"destination", "reason"}, nil)
	outRetriesDesc = prometheus.NewDesc("loadstone_out_retries_total",
		"Deliveries to another system that did not arrive and were made again.", []string{"destination"}, nil)
	outWaitingDesc = prometheus.NewDesc("loadstone_out_waiting", "Samples and annotations that wait to be delivered.",
		[]string{"destination"}, nil)
	outBytesDesc = prometheus.NewDesc("loadstone_out_waiting_bytes", "About how much memory they take.",
		[]string{"destination"}, nil)
	outFailingDesc = prometheus.NewDesc("loadstone_out_failing",
		"1 while the last delivery to another system has not arrived.", []string{"destination"}, nil)
	outDroppedDesc = prometheus.NewDesc("loadstone_out_seconds_dropped_total",
		"Seconds of live runs that were left out before they were samples, because the server was too slow.", nil, nil)
)

// Describe implements prometheus.Collector.
func (o Out) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{outSentDesc, outLostDesc, outRetriesDesc, outWaitingDesc, outBytesDesc,
		outFailingDesc, outDroppedDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (o Out) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	for name, counts := range o.counts {
		c := counts()
		counter(outSentDesc, c.Sent, name)
		counter(outRetriesDesc, c.Retries, name)
		for why, n := range c.Lost {
			counter(outLostDesc, n, name, why)
		}
		gauge(outWaitingDesc, float64(c.Waiting), name)
		gauge(outBytesDesc, float64(c.Bytes), name)
		failing := 0.0
		if c.Failing {
			failing = 1
		}
		gauge(outFailingDesc, failing, name)
	}
	_, dropped := o.seconds()
	counter(outDroppedDesc, dropped)
}
