package series

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/loadstone-db/loadstone/engine/explore/native"
	"github.com/loadstone-db/loadstone/engine/segment"
)

// histograms are what was added to one in each second in which there was something. Of the buckets between the lowest
// and the highest of a second most are empty: only those with a count are kept, as unsigned varints of how many empty
// ones are before it and of the count.
type histograms struct {
	// schema is the coarsest of the seconds; samples are of that one.
	schema int32
	// Of each second: where its buckets end in packed, its schema, the index of its first bucket, its sum in nanoseconds.
	second  []int32
	ends    []uint32
	schemas []int8
	offset  []int32
	sums    []int64
	packed  []byte
	// first and last are the lowest and the highest index of a bucket, in schema.
	first, last int32
	// low is the first second of the run, seconds how many samples there are.
	low     int32
	seconds int
}

func (h *histograms) bytes() int64 { return int64(len(h.packed) + 21*len(h.ends)) }

func (h *histograms) add(row *segment.Row, counts []int64) {
	if len(h.ends) == 0 {
		h.schema, h.first, h.last = row.LatencySchema, math.MaxInt32, math.MinInt32
	}
	if shift := h.schema - row.LatencySchema; shift > 0 {
		h.schema = row.LatencySchema
		if h.first <= h.last {
			h.first, h.last = coarser(h.first, uint(shift)), coarser(h.last, uint(shift))
		}
	}
	shift := uint(row.LatencySchema - h.schema)
	next := 0 // the bucket after the last that was written
	for i, c := range counts {
		if c == 0 {
			continue
		}
		h.packed = binary.AppendUvarint(binary.AppendUvarint(h.packed, uint64(i-next)), uint64(c))
		next = i + 1
		at := coarser(row.LatencyOffset+int32(i), shift)
		h.first, h.last = min(h.first, at), max(h.last, at)
	}
	h.ends, h.schemas = append(h.ends, uint32(len(h.packed))), append(h.schemas, int8(row.LatencySchema))
	h.offset, h.sums = append(h.offset, row.LatencyOffset), append(h.sums, row.LatencySumNs)
}

// trimmed is the same without the room that growing has left.
func (h *histograms) trimmed() histograms {
	t := *h
	t.ends, t.schemas, t.offset = slices.Clone(h.ends), slices.Clone(h.schemas), slices.Clone(h.offset)
	t.sums, t.packed = slices.Clone(h.sums), slices.Clone(h.packed)
	return t
}

// coarser is the bucket of a schema that is shift steps coarser.
func coarser(i int32, shift uint) int32 { return (i + 1<<shift - 1) >> shift }

// histogramIterator goes over the samples of a series of histograms: each is the sum of all seconds up to it.
type histogramIterator struct {
	of *one
	i  int
	// done is how many seconds are in counts.
	done   int
	counts []float64
	total  float64
	sumNs  int64
	scale  native.Scale
}

func newHistogramIterator(o *one) *histogramIterator {
	h := o.hist
	it := &histogramIterator{of: o, i: -1}
	if h.first <= h.last && len(h.ends) > 0 {
		it.counts = make([]float64, h.last-h.first+1)
	}
	it.scale = native.ScaleOf(h.schema)
	return it
}

func (it *histogramIterator) Next() chunkenc.ValueType {
	n := it.of.samples()
	if it.i++; it.i > n {
		it.i = n + 1
		return chunkenc.ValNone
	}
	return chunkenc.ValFloatHistogram
}

// Seek implements chunkenc.Iterator.
func (it *histogramIterator) Seek(t int64) chunkenc.ValueType { //nolint:govet // as above
	it.i = max(it.i, it.of.first(t))
	if it.i > it.of.samples() {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloatHistogram
}

// catchUp adds the seconds before the sample.
func (it *histogramIterator) catchUp() {
	h := it.of.hist
	for it.done < len(h.ends) && h.second[it.done] < h.low+int32(it.i) {
		begin := uint32(0)
		if it.done > 0 {
			begin = h.ends[it.done-1]
		}
		shift, at := uint(int32(h.schemas[it.done])-h.schema), h.offset[it.done]
		for b := h.packed[begin:h.ends[it.done]]; len(b) > 0; at++ {
			empty, n := binary.Uvarint(b)
			count, m := binary.Uvarint(b[n:])
			b, at = b[n+m:], at+int32(empty)
			it.counts[coarser(at, shift)-h.first] += float64(count)
			it.total += float64(count)
		}
		it.sumNs += h.sums[it.done]
		it.done++
	}
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
	*h = histogram.FloatHistogram{Schema: it.of.hist.schema, PositiveSpans: h.PositiveSpans[:0],
		PositiveBuckets: h.PositiveBuckets[:0]}
	if it.i == it.of.samples() {
		h.Sum = stale
		return it.AtT(), h
	}
	it.catchUp()
	if it.i > 0 {
		h.CounterResetHint = histogram.NotCounterReset
	}
	h.Count, h.Sum = it.total, float64(it.sumNs)/1e9
	native.Fill(h, it.scale, it.of.hist.first, it.counts)
	return it.AtT(), h
}

func (it *histogramIterator) AtT() int64  { return it.of.at(it.i) }
func (it *histogramIterator) AtST() int64 { return 0 }
func (it *histogramIterator) Err() error  { return nil }
