package live

import (
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// buckets is how many buckets a histogram of the finest schema can have.
const buckets = 63<<histogram.Schema + 1

// adder adds up the histograms of many run workers: a plain addition of arrays
// for those of the finest schema, which is what workers send, and
// histogram.Histogram for all others. A tick over a thousand workers spends most
// of its time here.
type adder struct {
	counts        [buckets]int64
	low, high     int // low ≤ i < high are in use
	sum, min, max int64
	others        *histogram.Histogram
	out           *histogram.Histogram
}

func newAdder() *adder { return &adder{others: histogram.New(), out: histogram.New()} }

func (a *adder) reset() {
	clear(a.counts[a.low:a.high])
	a.low, a.high, a.sum = 0, 0, 0
	a.others.Reset()
}

// add adds d and reports whether it could be used: one that is not well-formed
// changes nothing and counts as one that was not sent.
func (a *adder) add(d *engine.HistogramData) bool {
	if d == nil || len(d.Counts) == 0 {
		return true
	}
	if d.Schema != histogram.Schema || d.Min > d.Max || d.Offset < 0 || d.Offset > buckets-len(d.Counts) {
		return merge(a.others, d)
	}
	into := a.counts[d.Offset : d.Offset+len(d.Counts)]
	var n, signs int64
	for i, c := range d.Counts {
		into[i] += c
		n += c
		signs |= c
	}
	switch {
	case signs < 0 || n < 0:
		for i, c := range d.Counts {
			into[i] -= c
		}
		return false
	case n == 0:
		return true
	}
	if a.low == a.high {
		a.low, a.high, a.min, a.max = d.Offset, d.Offset+len(d.Counts), d.Min, d.Max
	}
	a.low, a.high = min(a.low, d.Offset), max(a.high, d.Offset+len(d.Counts))
	a.sum += d.Sum
	a.min, a.max = min(a.min, d.Min), max(a.max, d.Max)
	return true
}

// total returns everything added since reset; it is valid until the next call.
func (a *adder) total() *histogram.Histogram {
	a.out.Reset()
	a.out.Merge(a.others)
	if a.low < a.high {
		// It was checked part by part; an overflow of the whole shows as empty.
		merge(a.out, &engine.HistogramData{Schema: histogram.Schema, Offset: a.low, Counts: a.counts[a.low:a.high],
			Sum: a.sum, Min: a.min, Max: a.max})
	}
	return a.out
}
