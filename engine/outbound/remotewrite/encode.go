package remotewrite

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/loadstone-db/loadstone/engine/outbound/metricpush"
	"github.com/loadstone-db/loadstone/engine/results/metric"
)

// The numbers of fields, as the two messages have them.
const (
	v2Symbols, v2Series                            = 4, 5
	v2Labels, v2Samples, v2Histograms, v2Metadata  = 1, 2, 3, 5
	v1Series                                       = 1
	v1Labels, v1Samples, v1Histograms              = 1, 2, 4
	sampleValue, sampleAt, sampleStart             = 1, 2, 3
	metadataType, metadataHelp, metadataUnit       = 1, 3, 4
	histogramCount, histogramSum, histogramSchema  = 2, 3, 4
	histogramZero, histogramSpans, histogramCounts = 7, 11, 13
	histogramAt, histogramStart                    = 15, 17
	spanOffset, spanLength                         = 1, 2
)

// metadataTypes are those of the second version.
var metadataTypes = map[string]uint64{metric.Counter: 1, metric.Gauge: 2, metric.Histogram: 3}

var stale = math.Float64frombits(value.StaleNaN)

// encoder writes requests. Its memory is used again.
type encoder struct {
	symbols map[string]uint64
	names   []string
	order   []*metricpush.Series
	points  map[*metricpush.Series][]int
	body    []byte // of the series
	one     []byte // a series
	part    []byte // a sample, histogram or label
	inner   []byte // a packed field
	hist    histogram.FloatHistogram
}

func newEncoder() *encoder {
	return &encoder{symbols: map[string]uint64{}, points: map[*metricpush.Series][]int{}}
}

// encode writes a request with the points, in the first or the second version of the message.
func (e *encoder) encode(points []metricpush.Point, first bool) []byte {
	clear(e.symbols)
	clear(e.points)
	e.order, e.body = e.order[:0], e.body[:0]
	e.names = append(e.names[:0], "")
	e.symbols[""] = 0
	for i, p := range points {
		if len(e.points[p.Series]) == 0 {
			e.order = append(e.order, p.Series)
		}
		e.points[p.Series] = append(e.points[p.Series], i)
	}
	number := protowire.Number(v2Series)
	if first {
		number = v1Series
	}
	for _, s := range e.order {
		e.one = e.one[:0]
		if first {
			e.labelsV1(s.Labels)
		} else {
			e.labelsV2(s.Labels)
		}
		for _, i := range e.points[s] {
			e.point(&points[i], first)
		}
		if !first {
			e.part = varint(e.part[:0], metadataType, metadataTypes[s.Metric.Type])
			e.part = varint(e.part, metadataHelp, e.symbol(s.Metric.Help))
			e.part = varint(e.part, metadataUnit, e.symbol(s.Metric.Unit))
			e.one = field(e.one, v2Metadata, e.part)
		}
		e.body = field(e.body, number, e.one)
	}
	if first {
		return e.body
	}
	// Some receivers want to know the symbols before they are used.
	var whole []byte
	for _, s := range e.names {
		whole = field(whole, v2Symbols, []byte(s))
	}
	return append(whole, e.body...)
}

func (e *encoder) symbol(s string) uint64 {
	n, ok := e.symbols[s]
	if !ok {
		n = uint64(len(e.names))
		e.symbols[s], e.names = n, append(e.names, s)
	}
	return n
}

func (e *encoder) labelsV2(all labels.Labels) {
	e.inner = e.inner[:0]
	all.Range(func(l labels.Label) {
		e.inner = protowire.AppendVarint(e.inner, e.symbol(l.Name))
		e.inner = protowire.AppendVarint(e.inner, e.symbol(l.Value))
	})
	e.one = field(e.one, v2Labels, e.inner)
}

func (e *encoder) labelsV1(all labels.Labels) {
	all.Range(func(l labels.Label) {
		e.part = field(e.part[:0], 1, []byte(l.Name))
		e.part = field(e.part, 2, []byte(l.Value))
		e.one = field(e.one, v1Labels, e.part)
	})
}

func (e *encoder) point(p *metricpush.Point, first bool) {
	if p.Latency != nil {
		e.histogram(p, first)
		return
	}
	v := p.Value
	if p.Stale {
		v = stale
	}
	e.part = double(e.part[:0], sampleValue, v)
	e.part = varint(e.part, sampleAt, uint64(p.AtMs))
	if !first && p.StartMs != 0 {
		e.part = varint(e.part, sampleStart, uint64(p.StartMs))
	}
	number := protowire.Number(v2Samples)
	if first {
		number = v1Samples
	}
	e.one = field(e.one, number, e.part)
}

func (e *encoder) histogram(p *metricpush.Point, first bool) {
	l := p.Latency
	h := &e.hist
	*h = histogram.FloatHistogram{PositiveSpans: h.PositiveSpans[:0], PositiveBuckets: h.PositiveBuckets[:0]}
	h.Schema, h.Count, h.Sum = l.Schema, float64(l.Count), float64(l.SumNs)/1e9
	if p.Stale {
		h.Count, h.Sum = 0, stale
	} else {
		metric.FillBuckets(h, metric.ScaleOf(l.Schema), l.Offset, l.Counts)
	}
	b := double(e.part[:0], histogramCount, h.Count)
	b = double(b, histogramSum, h.Sum)
	b = varint(b, histogramSchema, protowire.EncodeZigZag(int64(h.Schema)))
	b = double(b, histogramZero, 0)
	for _, s := range h.PositiveSpans {
		e.inner = varint(e.inner[:0], spanOffset, protowire.EncodeZigZag(int64(s.Offset)))
		e.inner = varint(e.inner, spanLength, uint64(s.Length))
		b = field(b, histogramSpans, e.inner)
	}
	e.inner = e.inner[:0]
	for _, c := range h.PositiveBuckets {
		e.inner = protowire.AppendFixed64(e.inner, math.Float64bits(c))
	}
	b = field(b, histogramCounts, e.inner)
	b = varint(b, histogramAt, uint64(p.AtMs))
	if !first && p.StartMs != 0 {
		b = varint(b, histogramStart, uint64(p.StartMs))
	}
	e.part = b
	number := protowire.Number(v2Histograms)
	if first {
		number = v1Histograms
	}
	e.one = field(e.one, number, b)
}

func varint(b []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func double(b []byte, n protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), math.Float64bits(v))
}

func field(b []byte, n protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}
