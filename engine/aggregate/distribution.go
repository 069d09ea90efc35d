package aggregate

import (
	"math"

	"github.com/loadstone-db/loadstone/engine"
)

// distribution adds up histograms in their wire form. It keeps its memory when
// it is reset, so that a tick over many run workers allocates little. Snapshots
// of different schemas meet at the coarser one.
type distribution struct {
	schema   int
	lo, hi   int // the used bucket indexes, lo ≤ i < hi
	base     int // bucket index of counts[0]
	counts   []int64
	total    int64
	sum      int64
	min, max int64
	used     bool
}

func (d *distribution) reset() {
	clear(d.counts)
	*d = distribution{counts: d.counts}
}

// downscaled is the bucket of a histogram 2^by times coarser that bucket i falls into.
func downscaled(i, by int) int { return ((i - 1) >> by) + 1 }

func (d *distribution) add(h *engine.HistogramData) {
	if h == nil || len(h.Counts) == 0 {
		return
	}
	if !d.used {
		d.used, d.schema, d.min, d.max = true, h.Schema, h.Min, h.Max
		d.lo, d.hi, d.base = 0, 0, 0
	}
	if h.Schema < d.schema {
		d.coarsen(d.schema - h.Schema)
	}
	by := h.Schema - d.schema
	if by == 0 {
		d.reserve(h.Offset, h.Offset+len(h.Counts))
		into := d.counts[h.Offset-d.base:]
		for i, n := range h.Counts {
			into[i] += n
			d.total += n
		}
	} else {
		d.reserve(downscaled(h.Offset, by), downscaled(h.Offset+len(h.Counts)-1, by)+1)
		for i, n := range h.Counts {
			d.counts[downscaled(h.Offset+i, by)-d.base] += n
			d.total += n
		}
	}
	d.sum += h.Sum
	d.min, d.max = min(d.min, h.Min), max(d.max, h.Max)
}

// slack is kept free on both sides, so that later histograms rarely need new memory.
const slack = 128

// reserve makes room for the buckets lo ≤ i < hi.
func (d *distribution) reserve(lo, hi int) {
	if d.lo == d.hi {
		d.base = lo - slack
		d.lo, d.hi = lo, hi
	}
	lo, hi = min(lo, d.lo), max(hi, d.hi)
	if lo >= d.base && hi-d.base <= len(d.counts) {
		d.lo, d.hi = lo, hi
		return
	}
	grown := make([]int64, hi-lo+2*slack)
	if keep := min(d.hi-d.base, len(d.counts)); keep > d.lo-d.base {
		copy(grown[d.lo-lo+slack:], d.counts[d.lo-d.base:keep])
	}
	d.counts, d.base, d.lo, d.hi = grown, lo-slack, lo, hi
}

func (d *distribution) coarsen(by int) {
	data := engine.HistogramData{Schema: d.schema, Offset: d.lo, Counts: append([]int64(nil), d.counts[d.lo-d.base:d.hi-d.base]...), Sum: d.sum, Min: d.min, Max: d.max}
	schema := d.schema - by
	d.reset()
	d.used, d.schema, d.min, d.max = true, schema, data.Min, data.Max
	d.add(&data)
}

// quantiles fills out with the quantiles qs (ascending, 0 … 1) in nanoseconds,
// interpolated within the bucket. It reports false when nothing was added.
func (d *distribution) quantiles(qs []float64, out []float64) bool {
	if d.total == 0 {
		return false
	}
	scale := math.Exp2(-float64(d.schema))
	var seen int64
	next := 0
	for i := d.lo; i < d.hi && next < len(qs); i++ {
		n := d.counts[i-d.base]
		if n == 0 {
			continue
		}
		for next < len(qs) && qs[next]*float64(d.total) <= float64(seen+n) {
			from, to := math.Exp2(float64(i-1)*scale), math.Exp2(float64(i)*scale)
			share := max(0, (qs[next]*float64(d.total)-float64(seen))/float64(n))
			out[next] = min(max(from+(to-from)*share, float64(d.min)), float64(d.max))
			next++
		}
		seen += n
	}
	for ; next < len(qs); next++ {
		out[next] = float64(d.max)
	}
	return true
}

var summaryQuantiles = []float64{0.50, 0.95, 0.99}

const nsPerMs = 1e6

func ms(ns float64) *float64 {
	v := ns / nsPerMs
	return &v
}

// latency summarises the distribution in milliseconds; all fields are nil when it is empty.
func (d *distribution) latency() engine.Latency {
	var q [3]float64
	if !d.quantiles(summaryQuantiles, q[:]) {
		return engine.Latency{}
	}
	return engine.Latency{P50: ms(q[0]), P95: ms(q[1]), P99: ms(q[2]),
		Avg: ms(float64(d.sum) / float64(d.total)), Min: ms(float64(d.min)), Max: ms(float64(d.max))}
}

// data returns the distribution at the given schema, or nil when it is empty.
func (d *distribution) data(schema int) *engine.HistogramData {
	if d.total == 0 {
		return nil
	}
	by := max(0, d.schema-schema)
	first, last := downscaled(d.lo, by), downscaled(d.hi-1, by)
	if by == 0 {
		first, last = d.lo, d.hi-1
	}
	h := &engine.HistogramData{Schema: d.schema - by, Offset: first, Counts: make([]int64, last-first+1), Sum: d.sum, Min: d.min, Max: d.max}
	for i := d.lo; i < d.hi; i++ {
		to := i
		if by > 0 {
			to = downscaled(i, by)
		}
		h.Counts[to-first] += d.counts[i-d.base]
	}
	head, tail := 0, len(h.Counts)
	for head < tail && h.Counts[head] == 0 {
		head++
	}
	for tail > head && h.Counts[tail-1] == 0 {
		tail--
	}
	h.Offset, h.Counts = h.Offset+head, h.Counts[head:tail]
	return h
}
