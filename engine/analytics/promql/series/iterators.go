package series

import (
	"sort"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// floatIterator goes over the samples of a series of numbers, and the marker after them.
type floatIterator struct {
	series *seriesData
	i, n   int
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
	f.i = max(f.i, f.series.first(t))
	if f.i > f.n {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloat
}

// first is the first sample, or marker, that is not before t.
func (o *seriesData) first(t int64) int {
	n := o.samples()
	if o.times != nil {
		i := sort.Search(n, func(i int) bool { return o.times.at(i) >= float64(t) })
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
		return f.series.at(f.i), stale
	}
	return f.series.at(f.i), f.series.floats.at(f.i)
}

func (f *floatIterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	panic("a number is asked for as a histogram")
}

func (f *floatIterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	panic("a number is asked for as a histogram")
}

func (f *floatIterator) AtT() int64  { return f.series.at(f.i) }
func (f *floatIterator) AtST() int64 { return 0 }
func (f *floatIterator) Err() error  { return nil }
