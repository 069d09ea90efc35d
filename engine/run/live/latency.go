package live

import (
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

const nsPerMs = 1e6

func ms(ns float64) *float64 {
	v := ns / nsPerMs
	return &v
}

// latency summarises a histogram in milliseconds; all fields are nil when it is empty.
func latency(h *histogram.Histogram) engine.Latency {
	if h.Count() == 0 {
		return engine.Latency{}
	}
	return engine.Latency{P50: ms(h.Quantile(0.50)), P95: ms(h.Quantile(0.95)), P99: ms(h.Quantile(0.99)),
		Avg: ms(h.Mean()), Min: ms(float64(h.Min())), Max: ms(float64(h.Max()))}
}

// merge adds d to h and reports whether d can be used: a histogram that is not
// well-formed counts as one that was not sent.
func merge(h *histogram.Histogram, d *engine.HistogramData) bool { return h.MergeData(d) == nil }

func mean(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	var sum float64
	for _, v := range values {
		sum += v
	}
	sum /= float64(len(values))
	return &sum
}
