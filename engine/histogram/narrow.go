package histogram

import (
	"math"

	"github.com/loadstone-db/loadstone/engine"
)

// Narrow counts values as a Histogram of schema 6 does, in as much memory as their range takes: for those who need
// thousands at a time. One goroutine at a time may use it; the zero value is empty.
type Narrow struct {
	counts          []int64
	offset          int
	count, sum      int64
	lowest, highest int64
}

// Record counts one value. Values below 1 ns are counted in the lowest bucket.
func (n *Narrow) Record(ns int64) {
	i := 0
	if ns > 1 {
		i = bucketOf(ns)
	}
	if n.count == 0 {
		n.offset, n.lowest, n.highest = i, math.MaxInt64, math.MinInt64
	}
	switch {
	case i < n.offset:
		wider := make([]int64, n.offset-i+len(n.counts))
		copy(wider[n.offset-i:], n.counts)
		n.counts, n.offset = wider, i
	case i-n.offset >= len(n.counts):
		n.counts = append(n.counts, make([]int64, i-n.offset+1-len(n.counts))...)
	}
	n.counts[i-n.offset]++
	n.count++
	n.sum += ns
	n.lowest, n.highest = min(n.lowest, ns), max(n.highest, ns)
}

// Data returns the values in mergeable form; it shares memory with n.
func (n *Narrow) Data() engine.HistogramData {
	return engine.HistogramData{Schema: Schema, Offset: n.offset, Counts: n.counts, Sum: n.sum, Min: n.lowest,
		Max: n.highest}
}
