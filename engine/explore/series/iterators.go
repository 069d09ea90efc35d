package series

import (
	"math"
	"slices"
	"sort"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/loadstone-db/loadstone/engine/explore/native"
	"github.com/loadstone-db/loadstone/engine/segment"
)

// floatIterator goes over the samples of a series of numbers, and the marker after them.
type floatIterator struct {
	of   *one
	i, n int
}

func (f *floatIterator) Next() chunkenc.ValueType {
	if f.i++; f.i > f.n {
		f.i = f.n + 1
		return chunkenc.ValNone
	}
	return chunkenc.ValFloat
}

// Seek implements chunkenc.Iterator.
func (f *floatIterator) Seek(t int64) chunkenc.ValueType { //nolint:govet // the interface is not that of io.Seeker
	f.i = max(f.i, f.of.first(t))
	if f.i > f.n {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloat
}

// first is the first sample, or marker, that is not before t.
func (o *one) first(t int64) int {
	n := o.samples()
	if o.times != nil {
		i := sort.Search(n, func(i int) bool { return o.times[i] >= t })
		if i == n && o.at(n) < t {
			i++
		}
		return i
	}
	if t <= o.start {
		return 0
	}
	if i := (t - o.start + 999) / 1000; i < int64(n) {
		return int(i)
	}
	if t <= o.at(n) {
		return n
	}
	return n + 1
}

func (f *floatIterator) At() (int64, float64) {
	if f.i == f.n {
		return f.of.at(f.i), stale
	}
	return f.of.at(f.i), f.of.floats[f.i]
}

func (f *floatIterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	panic("a number is asked for as a histogram")
}

func (f *floatIterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	panic("a number is asked for as a histogram")
}

func (f *floatIterator) AtT() int64  { return f.of.at(f.i) }
func (f *floatIterator) AtST() int64 { return 0 }
func (f *floatIterator) Err() error  { return nil }

// histograms are what was added to one in each second in which there was something.
type histograms struct {
	// schema is the coarsest of the seconds; all are of that one.
	schema int32
	// Of each second: where its buckets end in counts, the index of its first bucket, its sum in nanoseconds.
	second []int32
	ends   []int
	offset []int32
	sums   []int64
	counts []uint32
	// first and last are the lowest and the highest index of a bucket.
	first, last int32
	// low is the first second of the run, seconds how many samples there are.
	low     int32
	seconds int
}

func (h *histograms) bytes() int64 { return int64(4*len(h.counts) + 24*len(h.ends)) }

func (h *histograms) add(row *segment.Row, counts []int64) {
	if len(h.ends) == 0 {
		h.schema, h.first, h.last = row.LatencySchema, math.MaxInt32, math.MinInt32
	}
	if row.LatencySchema < h.schema {
		h.coarsen(row.LatencySchema)
	}
	shift := uint(row.LatencySchema - h.schema)
	offset := coarser(row.LatencyOffset, shift)
	begin := len(h.counts)
	for i, c := range counts {
		at := begin + int(coarser(row.LatencyOffset+int32(i), shift)-offset)
		for len(h.counts) <= at {
			h.counts = append(h.counts, 0)
		}
		h.counts[at] += uint32(c)
	}
	h.ends, h.offset = append(h.ends, len(h.counts)), append(h.offset, offset)
	h.sums = append(h.sums, row.LatencySumNs)
	if n := len(h.counts) - begin; n > 0 {
		h.first, h.last = min(h.first, offset), max(h.last, offset+int32(n)-1)
	}
}

// coarser is the bucket of a schema that is shift steps coarser.
func coarser(i int32, shift uint) int32 { return (i + 1<<shift - 1) >> shift }

// coarsen makes what is there already of a coarser schema.
func (h *histograms) coarsen(schema int32) {
	shift := uint(h.schema - schema)
	old, begin := *h, 0
	h.schema, h.counts, h.first, h.last = schema, nil, math.MaxInt32, math.MinInt32
	h.ends, h.offset = slices.Clone(old.ends), slices.Clone(old.offset)
	for s, end := range old.ends {
		h.offset[s] = coarser(old.offset[s], shift)
		at := len(h.counts)
		for i, c := range old.counts[begin:end] {
			j := at + int(coarser(old.offset[s]+int32(i), shift)-h.offset[s])
			for len(h.counts) <= j {
				h.counts = append(h.counts, 0)
			}
			h.counts[j] += c
		}
		begin, h.ends[s] = end, len(h.counts)
		if n := len(h.counts) - at; n > 0 {
			h.first, h.last = min(h.first, h.offset[s]), max(h.last, h.offset[s]+int32(n)-1)
		}
	}
}

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
		begin := 0
		if it.done > 0 {
			begin = h.ends[it.done-1]
		}
		at := h.offset[it.done] - h.first
		for j, c := range h.counts[begin:h.ends[it.done]] {
			it.counts[int(at)+j] += float64(c)
			it.total += float64(c)
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
