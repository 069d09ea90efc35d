// This part sends the metrics of live runs to a collector as OpenTelemetry says: OTLP over HTTP. Counters and
// exponential histograms are cumulative.

package otlp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/rs/zerolog"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
	"github.com/loadstone-db/loadstone/engine/outbound/metricpush"
	"github.com/loadstone-db/loadstone/engine/results/metric"
)

// MetricSender sends points to a collector. It implements metricpush.Sink.
type MetricSender struct {
	delivery.Sink[metricpush.Point]
	resource *resource.Resource
	version  string
}

// OpenMetrics begins to send to an endpoint, which is the collector's address with or without /v1/metrics. Instance
// names this process.
func OpenMetrics(e delivery.Endpoint, instance, version string, log zerolog.Logger) (*MetricSender, error) {
	if base, query, _ := strings.Cut(e.URL.Reveal(), "?"); !strings.HasSuffix(base, "/v1/metrics") {
		at := strings.TrimSuffix(base, "/") + "/v1/metrics"
		if query != "" {
			at += "?" + query
		}
		e.URL = secret.New(at)
	}
	client, err := delivery.NewClient(e)
	if err != nil {
		return nil, err
	}
	s := &MetricSender{version: version, resource: &resource.Resource{Attributes: []*common.KeyValue{
		text("service.name", "loadstone-server"), text("service.version", version),
		text("service.instance.id", instance)}}}
	s.Sink = delivery.OpenSink(client, delivery.SampleLimits, s.send, log)
	return s, nil
}

const protobuf = "application/x-protobuf"

func (s *MetricSender) send(ctx context.Context, points []metricpush.Point, _ int) delivery.Outcome {
	message, err := proto.Marshal(s.request(points))
	if err != nil {
		return delivery.Outcome{Err: fmt.Errorf("writing metrics: %w", err)}
	}
	answer, err := s.Client.Post(ctx, "", protobuf, message)
	out := delivery.OutcomeOf(answer, err, len(points))
	var said collector.ExportMetricsServiceResponse
	if out.Err != nil || proto.Unmarshal(answer.Body, &said) != nil {
		return out // where it has taken them it says nothing more that can be read
	}
	if rejected := said.GetPartialSuccess().GetRejectedDataPoints(); rejected > 0 {
		out.Delivered -= int(min(rejected, int64(len(points))))
		out.Err = errors.New("the collector has refused a part: " +
			s.Client.LogText(said.GetPartialSuccess().GetErrorMessage()))
	}
	return out
}

func (s *MetricSender) request(points []metricpush.Point) *collector.ExportMetricsServiceRequest {
	known := map[*metric.Metric]*metrics.Metric{}
	scope := &metrics.ScopeMetrics{Scope: &common.InstrumentationScope{Name: "loadstone", Version: s.version}}
	attributes := map[*metricpush.Series][]*common.KeyValue{}
	for i := range points {
		p := &points[i]
		m := known[p.Series.Metric]
		if m == nil {
			m = empty(p.Series.Metric)
			known[p.Series.Metric], scope.Metrics = m, append(scope.Metrics, m)
		}
		about := attributes[p.Series]
		if about == nil {
			p.Series.Labels.Range(func(l labels.Label) {
				if l.Name != model.MetricNameLabel {
					about = append(about, text(l.Name, l.Value))
				}
			})
			attributes[p.Series] = about
		}
		add(m, p, about)
	}
	return &collector.ExportMetricsServiceRequest{ResourceMetrics: []*metrics.ResourceMetrics{
		{Resource: s.resource, ScopeMetrics: []*metrics.ScopeMetrics{scope}}}}
}

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{
		StringValue: strings.ToValidUTF8(value, "?")}}}
}

// empty is a metric without points.
func empty(m *metric.Metric) *metrics.Metric {
	of := &metrics.Metric{Name: m.Name, Description: m.Help}
	const since = metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	switch m.Type {
	case metric.Counter:
		of.Data = &metrics.Metric_Sum{Sum: &metrics.Sum{AggregationTemporality: since, IsMonotonic: true}}
	case metric.Histogram:
		of.Unit = "s"
		of.Data = &metrics.Metric_ExponentialHistogram{
			ExponentialHistogram: &metrics.ExponentialHistogram{AggregationTemporality: since}}
	default:
		of.Data = &metrics.Metric_Gauge{Gauge: &metrics.Gauge{}}
	}
	return of
}

func add(m *metrics.Metric, p *metricpush.Point, about []*common.KeyValue) {
	at, start, flags := uint64(p.AtMs)*1e6, uint64(p.StartMs)*1e6, uint32(0)
	if p.Stale {
		flags = uint32(metrics.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)
	}
	if h := m.GetExponentialHistogram(); h != nil {
		d := &metrics.ExponentialHistogramDataPoint{Attributes: about, StartTimeUnixNano: start, TimeUnixNano: at,
			Flags: flags}
		if !p.Stale {
			fillHistogram(d, p.Latency)
		}
		h.DataPoints = append(h.DataPoints, d)
		return
	}
	d := &metrics.NumberDataPoint{Attributes: about, StartTimeUnixNano: start, TimeUnixNano: at, Flags: flags}
	if !p.Stale {
		d.Value = &metrics.NumberDataPoint_AsDouble{AsDouble: p.Value}
	}
	if sum := m.GetSum(); sum != nil {
		sum.DataPoints = append(sum.DataPoints, d)
		return
	}
	m.GetGauge().DataPoints = append(m.GetGauge().DataPoints, d)
}

// fillHistogram puts the buckets of nanoseconds into those of seconds. Each is divided between the two that it touches,
// in whole numbers of which none ever falls and which add up. A bucket i here is i-1 there.
func fillHistogram(d *metrics.ExponentialHistogramDataPoint, l *metricpush.Latency) {
	sum := float64(l.SumNs) / 1e9
	scale := metric.ScaleOf(l.Schema)
	d.Scale, d.Count, d.Sum = l.Schema, uint64(l.Count), &sum
	if len(l.Counts) == 0 {
		return
	}
	counts := make([]uint64, len(l.Counts)+1)
	for i, c := range l.Counts {
		below := uint64(float64(c) * scale.Share)
		counts[i] += below
		counts[i+1] += uint64(c) - below
	}
	d.Positive = &metrics.ExponentialHistogramDataPoint_Buckets{Offset: l.Offset - scale.Shift - 1, BucketCounts: counts}
}
