package metricpush

import (
	"math"
	"reflect"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/loadstone-db/loadstone/engine/results/metric"
)

// mixedPoints are of a counter and a histogram, between each other, with values and without.
func mixedPoints() []Point {
	counter := &Series{Metric: metric.ByName("loadstone_operations_total"),
		Labels: labels.FromStrings("__name__", "loadstone_operations_total", "run", "r-1")}
	latency := &Series{Metric: metric.ByName("loadstone_latency_seconds"),
		Labels: labels.FromStrings("__name__", "loadstone_latency_seconds", "run", "r-1")}
	took := &Latency{
		Schema: 3,
		Offset: -2,
		Counts: []int64{1, 0, 0, 0, 0, 5, 7},
		Count:  13,
		SumNs:  2_500_000_000,
	}
	return []Point{
		{Series: counter, AtMs: 2000, StartMs: 1000, Value: 5},
		{Series: latency, AtMs: 2000, StartMs: 1000, Latency: took},
		{Series: counter, AtMs: 3000, StartMs: 1000, Value: 0},
		{Series: counter, AtMs: 4000, Stale: true},
		{Series: latency, AtMs: 4000, Stale: true, Latency: took},
	}
}

func TestBothVersionsSayThePoints(t *testing.T) {
	t.Parallel()
	text, err := encodeV2(mixedPoints())
	if err != nil {
		t.Fatal(err)
	}
	var two writev2.Request
	if err := two.Unmarshal(text); err != nil || len(two.Timeseries) != 2 {
		t.Fatalf("%v, %d series", err, len(two.Timeseries))
	}
	if text, err = encodeV1(mixedPoints()); err != nil {
		t.Fatal(err)
	}
	var one prompb.WriteRequest
	if err := one.Unmarshal(text); err != nil || len(one.Timeseries) != 2 {
		t.Fatalf("%v, %d series", err, len(one.Timeseries))
	}
	symbol := func(n uint32) string { return two.Symbols[n] }
	counter := two.Timeseries[0]
	if symbol(0) != "" || symbol(counter.LabelsRefs[1]) != "loadstone_operations_total" ||
		counter.Metadata.Type != writev2.Metadata_METRIC_TYPE_COUNTER || symbol(counter.Metadata.HelpRef) == "" {
		t.Errorf("the counter: %v", counter)
	}
	if s := counter.Samples; len(s) != 3 || s[0].Value != 5 || s[0].Timestamp != 2000 || s[0].StartTimestamp != 1000 ||
		math.Float64bits(s[2].Value) != value.StaleNaN {
		t.Errorf("its samples: %v", s)
	}
	histograms := two.Timeseries[1].Histograms
	h := histograms[0].ToFloatHistogram()
	if err := h.Validate(); err != nil || h.Count != 13 || h.Sum != 2.5 || histograms[0].StartTimestamp != 1000 ||
		!value.IsStaleNaN(histograms[1].Sum) || two.Timeseries[1].Metadata.Type != writev2.Metadata_METRIC_TYPE_HISTOGRAM {
		t.Errorf("the latencies: %v, %v", err, histograms)
	}
	first := one.Timeseries[1].Histograms
	if !reflect.DeepEqual(first[0].ToFloatHistogram(), h) || first[1].Timestamp != 4000 ||
		one.Timeseries[0].Labels[0].Value != "loadstone_operations_total" || one.Timeseries[0].Samples[1].Timestamp != 3000 {
		t.Errorf("the first version: %v", one.Timeseries)
	}
}
