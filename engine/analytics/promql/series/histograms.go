package series

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/loadstone-db/loadstone/engine/results/metric"
	"github.com/loadstone-db/loadstone/engine/results/segment"
)

// histograms are what was added to one in each second in which there was something. Of the buckets between the lowest
// and the highest of a second most are empty: only those with a count are kept, as unsigned varints of how many empty
// ones are before it and of the count. They are read from the first second on, for samples add up.
type histograms struct {
	// schema is the coarsest of the seconds; samples are of that one.
	schema int32
	// packed has of each second, as varints: how many seconds it is after the one before, its schema, the index of its
	// first bucket, its sum in nanoseconds, how many buckets have a count, and those.
	packed []byte
	// before is the last second that was added, n how many were.
	before int32
	n      int
	// first and last are the lowest and the highest index of a bucket, in schema.
	first, last int32
	// low is the first second of the run, seconds how many samples there are.
	low     int32
	seconds int
}

func (h *histograms) bytes() int64 { return int64(len(h.packed)) + 80 }

func (h *histograms) add(row *segment.Row, buckets []segment.Bucket) {
	if h.n == 0 {
		h.schema, h.first, h.last = row.LatencySchema, math.MaxInt32, math.MinInt32
	}
	if shift := h.schema - row.LatencySchema; shift > 0 {
		h.schema = row.LatencySchema
		if h.first <= h.last {
			h.first, h.last = coarser(h.first, uint(shift)), coarser(h.last, uint(shift))
		}
	}
	shift := uint(row.LatencySchema - h.schema)
	h.packed = binary.AppendVarint(h.packed, int64(row.Second)-int64(h.before))
	h.packed = binary.AppendVarint(h.packed, int64(row.LatencySchema))
	h.packed = binary.AppendVarint(h.packed, int64(row.LatencyOffset))
	h.packed = binary.AppendVarint(h.packed, row.LatencySumNs)
	h.packed = binary.AppendUvarint(h.packed, uint64(len(buckets)))
	h.before, h.n = row.Second, h.n+1
	next := int32(0) // the bucket after the last that was written
	for _, b := range buckets {
		h.packed = binary.AppendUvarint(binary.AppendUvarint(h.packed, uint64(b.At-next)), uint64(b.Count))
		next = b.At + 1
	}
	if len(buckets) > 0 {
		h.first = min(h.first, coarser(row.LatencyOffset+buckets[0].At, shift))
		h.last = max(h.last, coarser(row.LatencyOffset+buckets[len(buckets)-1].At, shift))
	}
}

// trimmed is the same without the room that growing has left.
func (h *histograms) trimmed() histograms {
	t := *h
	t.packed = slices.Clone(h.packed)
	return t
}

// coarser is the bucket of a schema that is shift steps coarser.
func coarser(i int32, shift uint) int32 { return (i + 1<<shift - 1) >> shift }

// histogramIterator goes over the samples of a series of histograms: each is the sum of all seconds up to it.
type histogramIterator struct {
	series *seriesData
	i      int
	// rest is what is packed of the seconds that are not in counts, without when the first of them is, which is next.
	rest   []byte
	next   int32
	counts []float64
	total  float64
	sumNs  int64
	scale  metric.Scale
	edges  *Edges
}

func newHistogramIterator(o *seriesData) *histogramIterator {
	h := o.hist
	it := &histogramIterator{series: o, i: -1}
	if h.n > 0 {
		it.rest = h.packed
		it.next = int32(it.varint())
		if h.first <= h.last {
			it.counts = make([]float64, h.last-h.first+1)
		}
	}
	it.scale = metric.ScaleOf(h.schema)
	return it
}

func (it *histogramIterator) Next() chunkenc.ValueType {
	n := it.series.samples()
	if it.i++; it.i > n {
		it.i = n + 1
		return chunkenc.ValNone
	}
	return chunkenc.ValFloatHistogram
}

// Seek implements chunkenc.Iterator.
func (it *histogramIterator) Seek(t int64) chunkenc.ValueType { //nolint:govet // as above
	it.i = max(it.i, it.series.first(t))
	if it.i > it.series.samples() {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloatHistogram
}

// accumulate adds the seconds before the sample.
func (it *histogramIterator) accumulate() {
	h := it.series.hist
	for len(it.rest) > 0 && it.next < h.low+int32(it.i) {
		shift := uint(int32(it.varint()) - h.schema)
		at := int32(it.varint())
		it.sumNs += it.varint()
		for range it.uvarint() {
			at += int32(it.uvarint())
			count := float64(it.uvarint())
			it.counts[coarser(at, shift)-h.first] += count
			it.total += count
			at++
		}
		if len(it.rest) > 0 {
			it.next += int32(it.varint())
		}
	}
}

func (it *histogramIterator) varint() int64 {
	v, n := binary.Varint(it.rest)
	it.rest = it.rest[n:]
	return v
}

func (it *histogramIterator) uvarint() uint64 {
	v, n := binary.Uvarint(it.rest)
	it.rest = it.rest[n:]
	return v
}

func (it *histogramIterator) At() (int64, float64) { panic("a histogram is asked for as a number") }

func (it *histogramIterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	panic("a histogram of numbers is asked for as one of integers")
}

// AtFloatHistogram implements chunkenc.Iterator.
func (it *histogramIterator) AtFloatHistogram(h *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	if h == nil {
		h = &histogram.FloatHistogram{}
	}
	*h = histogram.FloatHistogram{Schema: it.series.hist.schema, PositiveSpans: h.PositiveSpans[:0],
		PositiveBuckets: h.PositiveBuckets[:0]}
	if it.i == it.series.samples() {
		h.Sum = stale
		return it.AtT(), h
	}
	if it.i > 0 {
		h.CounterResetHint = histogram.NotCounterReset
	}
	if !it.edge() {
		return it.AtT(), h
	}
	it.accumulate()
	h.Count, h.Sum = it.total, float64(it.sumNs)/1e9
	metric.FillBuckets(h, it.scale, it.series.hist.first, it.counts)
	return it.AtT(), h
}

func (it *histogramIterator) AtT() int64  { return it.series.at(it.i) }
func (it *histogramIterator) AtST() int64 { return 0 }
func (it *histogramIterator) Err() error  { return nil }
