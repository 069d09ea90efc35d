package results

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/loadstone-db/loadstone/engine"
)

// distribution is a set of latencies, kept as sorted pieces: one piece per row
// group and kind. Order statistics of any union of pieces are found by bisection
// over the values, so that nothing is ever merged or copied, and a piece serves
// its kind, its worker and the whole run alike.
type distribution struct {
	pieces []sortedPiece
}

type sortedPiece struct {
	keys []uint64 // ascending; see key
	mean float64
	m2   float64 // sum of squared differences from the mean
	// part and group tell where the piece is from. Sums are taken in that order,
	// so that figures do not depend, in their last bits, on who read what first.
	part, group int
}

// key maps a float onto an integer with the same order.
func key(v float64) uint64 {
	b := math.Float64bits(v)
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}

func value(k uint64) float64 {
	if k>>63 == 1 {
		return math.Float64frombits(k &^ (1 << 63))
	}
	return math.Float64frombits(^k)
}

// newPiece takes over keys.
func newPiece(keys []uint64, part, group int) sortedPiece {
	slices.Sort(keys)
	var sum float64
	for _, k := range keys {
		sum += value(k)
	}
	p := sortedPiece{keys: keys, mean: sum / float64(len(keys)), part: part, group: group}
	for _, k := range keys {
		d := value(k) - p.mean
		p.m2 += d * d
	}
	return p
}

// order sorts the pieces by their place.
func (d *distribution) order() {
	slices.SortStableFunc(d.pieces,
		func(a, b sortedPiece) int { return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.group, b.group)) })
}

func (d *distribution) count() (n int64) {
	for _, p := range d.pieces {
		n += int64(len(p.keys))
	}
	return n
}

// atMost counts the values whose key is at most k.
func (d *distribution) atMost(k uint64) (n int64) {
	if k == math.MaxUint64 {
		return d.count()
	}
	for _, p := range d.pieces {
		i, _ := slices.BinarySearch(p.keys, k+1)
		n += int64(i)
	}
	return n
}

func (d *distribution) bounds() (lo, hi uint64) {
	lo = math.MaxUint64
	for _, p := range d.pieces {
		lo, hi = min(lo, p.keys[0]), max(hi, p.keys[len(p.keys)-1])
	}
	return lo, hi
}

// nth returns the value at index n (from 0) of the ascending order, and the one after it.
func (d *distribution) nth(n int64) (float64, float64) {
	lo, hi := d.bounds()
	last := hi
	for lo < hi {
		mid := lo + (hi-lo)/2
		if d.atMost(mid) > n {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if d.atMost(lo) > n+1 || lo == last {
		return value(lo), value(lo)
	}
	next := last
	for _, p := range d.pieces {
		if i, _ := slices.BinarySearch(p.keys, lo+1); i < len(p.keys) {
			next = min(next, p.keys[i])
		}
	}
	return value(lo), value(next)
}

// percentile is PERCENTILE_CONT(q): linear interpolation between the two values
// around row 1 + q·(n − 1) of the ascending order. d must not be empty.
func (d *distribution) percentile(q float64) float64 {
	row := q * float64(d.count()-1)
	below := math.Floor(row)
	a, b := d.nth(int64(below))
	if row == below {
		return a
	}
	return a + (b-a)*(row-below)
}

// latency returns the figures, nil when there are no values. The standard
// deviation is that of a sample (n − 1), as SQL's STDDEV.
func (d *distribution) latency() *engine.LatencyMs {
	if len(d.pieces) == 0 {
		return nil
	}
	lo, hi := d.bounds()
	l := &engine.LatencyMs{
		P50: d.percentile(0.5), P90: d.percentile(0.9), P95: d.percentile(0.95),
		P99: d.percentile(0.99), P999: d.percentile(0.999), Min: value(lo), Max: value(hi),
	}
	var n, mean, m2 float64
	for _, p := range d.pieces {
		k := float64(len(p.keys))
		delta := p.mean - mean
		n += k
		mean += delta * k / n
		m2 += p.m2 + delta*delta*(n-k)*k/n
	}
	l.Avg = mean
	if n > 1 {
		l.StdDev = math.Sqrt(m2 / (n - 1))
	}
	return l
}

// bucketsPerDecade gives buckets that are 10 % wide: fine enough to show two
// modes apart, few enough for a page (about 75 over three decades).
const (
	bucketsPerDecade = 24
	maxBuckets       = 100
)

// histogram counts the values in log-spaced buckets that cover them, without
// empty ones at either end. Bounds are fixed by the scale, not by the data, so
// that the buckets of two runs line up, unless the data spans so much that
// maxBuckets asks for wider ones.
func (d *distribution) histogram() []engine.HistogramBucket {
	buckets := []engine.HistogramBucket{}
	if len(d.pieces) == 0 {
		return buckets
	}
	loKey, hiKey := d.bounds()
	lo, hi := max(value(loKey), 1e-6), max(value(hiKey), 1e-6)
	per := float64(bucketsPerDecade)
	var first, last float64
	for {
		first, last = math.Ceil(math.Log10(lo)*per-1e-9)-1, math.Ceil(math.Log10(hi)*per-1e-9)
		if last-first <= maxBuckets {
			break
		}
		per /= 2
	}
	bound := func(i float64) float64 { return math.Pow(10, i/per) }
	// Rounding may put the extremes just outside.
	for bound(first) >= lo && first > -1e6 {
		first--
	}
	for bound(last) < hi {
		last++
	}
	total := d.count()
	below := int64(0)
	for i := first; i < last; i++ {
		n := d.atMost(key(bound(i + 1)))
		if i+1 == last {
			n = total
		}
		buckets = append(buckets, engine.HistogramBucket{FromMs: bound(i), ToMs: bound(i + 1), Count: n - below})
		below = n
	}
	if value(loKey) <= bound(first) {
		buckets[0].FromMs = min(0, value(loKey))
	}
	return buckets
}

// slowExecution is a candidate for the slowest executions, by its place in the parts.
type slowExecution struct {
	ms               float64
	part, group, row int
}

// slower orders by latency, then by place, so that the choice among equals
// does not depend on the order of reading.
func slower(a, b slowExecution) bool {
	if a.ms != b.ms {
		return a.ms > b.ms
	}
	if a.part != b.part {
		return a.part < b.part
	}
	if a.group != b.group {
		return a.group < b.group
	}
	return a.row < b.row
}

// numSlowest bounds engine.Figures.Slowest.
const numSlowest = 20

// slowestList keeps the numSlowest slowest, ordered.
type slowestList []slowExecution

// threshold is the latency that a candidate must reach.
func (s slowestList) threshold() float64 {
	if len(s) < numSlowest {
		return math.Inf(-1)
	}
	return s[len(s)-1].ms
}

func (s *slowestList) add(c slowExecution) {
	i := sort.Search(len(*s), func(i int) bool { return slower(c, (*s)[i]) })
	if i == numSlowest {
		return
	}
	*s = slices.Insert(*s, i, c)
	*s = (*s)[:min(len(*s), numSlowest)]
}
