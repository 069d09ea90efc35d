package metricpush

import (
	"math"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/loadstone-db/loadstone/engine/results/metric"
)

var stale = math.Float64frombits(value.StaleNaN)

// seriesPoints is the points of a series.
type seriesPoints struct {
	series *Series
	points []*Point
}

// bySeries groups points, in the order in which their series come first.
func bySeries(points []Point) []seriesPoints {
	var all []seriesPoints
	known := map[*Series]int{}
	for i := range points {
		p := &points[i]
		at, ok := known[p.Series]
		if !ok {
			at, known[p.Series] = len(all), len(all)
			all = append(all, seriesPoints{series: p.Series})
		}
		all[at].points = append(all[at].points, p)
	}
	return all
}

// encodeV1 writes a request in the first version of the message.
func encodeV1(points []Point) ([]byte, error) {
	var r prompb.WriteRequest
	for _, g := range bySeries(points) {
		s := prompb.TimeSeries{Labels: prompb.FromLabels(g.series.Labels, nil)}
		for _, p := range g.points {
			if p.Latency != nil {
				s.Histograms = append(s.Histograms, prompb.FromFloatHistogram(p.AtMs, latencies(p)))
			} else {
				s.Samples = append(s.Samples, prompb.Sample{Value: valueOf(p), Timestamp: p.AtMs})
			}
		}
		r.Timeseries = append(r.Timeseries, s)
	}
	return r.Marshal()
}

// encodeV2 writes a request in the second version of the message.
func encodeV2(points []Point) ([]byte, error) {
	var r writev2.Request
	symbols := writev2.NewSymbolTable()
	for _, g := range bySeries(points) {
		s := writev2.TimeSeries{LabelsRefs: symbols.SymbolizeLabels(g.series.Labels, nil)}
		for _, p := range g.points {
			if p.Latency != nil {
				s.Histograms = append(s.Histograms, writev2.FromFloatHistogram(p.StartMs, p.AtMs, latencies(p)))
			} else {
				s.Samples = append(s.Samples, writev2.Sample{Value: valueOf(p), Timestamp: p.AtMs, StartTimestamp: p.StartMs})
			}
		}
		m := g.series.Metric
		s.Metadata = writev2.Metadata{Type: writev2.FromMetadataType(model.MetricType(m.Type)),
			HelpRef: symbols.Symbolize(m.Help), UnitRef: symbols.Symbolize(m.Unit)}
		r.Timeseries = append(r.Timeseries, s)
	}
	r.Symbols = symbols.Symbols()
	return r.OptimizedMarshal(nil)
}

func valueOf(p *Point) float64 {
	if p.Stale {
		return stale
	}
	return p.Value
}

// latencies are a point's as a native histogram.
func latencies(p *Point) *histogram.FloatHistogram {
	l := p.Latency
	if p.Stale {
		return &histogram.FloatHistogram{Schema: l.Schema, Sum: stale}
	}
	h := &histogram.FloatHistogram{Schema: l.Schema, Count: float64(l.Count), Sum: float64(l.SumNs) / 1e9}
	metric.FillBuckets(h, metric.ScaleOf(l.Schema), l.Offset, l.Counts)
	return h
}
