package histogram

import (
	"math"

	"github.com/loadstone-db/loadstone/engine"
)

// Compact counts values as a Histogram of schema 6 does, in as much memory as their range takes: for those who need
// thousands at a time. One goroutine at a time may use it; the zero value is empty.
type Compact struct {
	counts          []int64
	offset          int
	count, sum      int64
	lowest, highest int64
}

// Record counts one value. Values below 1 ns are counted in the lowest bucket.
func (n *Compact) Record(ns int64) { n.RecordBucket(BucketIndex(ns), ns) }

// BucketIndex is the bucket of a value, for who records it more than once.
func BucketIndex(ns int64) int {
	if ns <= 1 {
		return 0
	}
	return bucketOf(ns)
}

// RecordBucket is Record of a value whose bucket is known.
func (n *Compact) RecordBucket(bucket int, ns int64) {
	if n.count == 0 {
		n.offset, n.lowest, n.highest = bucket, math.MaxInt64, math.MinInt64
	}
	at := bucket - n.offset
	if uint(at) >= uint(len(n.counts)) {
		n.grow(bucket, bucket)
		at = bucket - n.offset
	}
	n.counts[at]++
	n.count++
	n.sum += ns
	n.lowest, n.highest = min(n.lowest, ns), max(n.highest, ns)
}

// grow makes room for the buckets from low to high.
func (n *Compact) grow(low, high int) {
	if low < n.offset {
		wider := make([]int64, n.offset-low+len(n.counts))
		copy(wider[n.offset-low:], n.counts)
		n.counts, n.offset = wider, low
	}
	if more := high - n.offset + 1 - len(n.counts); more > 0 {
		n.counts = append(n.counts, make([]int64, more)...)
	}
}

// Merge adds the values of o.
func (n *Compact) Merge(o *Compact) {
	if o.count == 0 {
		return
	}
	if n.count == 0 {
		n.offset, n.lowest, n.highest = o.offset, math.MaxInt64, math.MinInt64
	}
	n.grow(o.offset, o.offset+len(o.counts)-1)
	into := n.counts[o.offset-n.offset:]
	for i, c := range o.counts {
		into[i] += c
	}
	n.count += o.count
	n.sum += o.sum
	n.lowest, n.highest = min(n.lowest, o.lowest), max(n.highest, o.highest)
}

// MergeData adds what d describes, which is whole as Data of a Histogram is. A bucket of a coarser schema is counted in
// the middle one of those that it is made of.
func (n *Compact) MergeData(d *engine.HistogramData) {
	var o Compact
	shift := uint(Schema - d.Schema)
	for i, c := range d.Counts {
		if c <= 0 {
			continue
		}
		bucket := max(0, (d.Offset+i)<<shift-(1<<shift)/2)
		if o.count == 0 {
			o.offset = bucket
		}
		o.grow(bucket, bucket)
		o.counts[bucket-o.offset] += c
		o.count += c
	}
	o.sum, o.lowest, o.highest = d.Sum, d.Min, d.Max
	n.Merge(&o)
}

// Data returns the values in mergeable form; it shares memory with n.
func (n *Compact) Data() engine.HistogramData {
	return engine.HistogramData{Schema: Schema, Offset: n.offset, Counts: n.counts, Sum: n.sum, Min: n.lowest,
		Max: n.highest}
}
