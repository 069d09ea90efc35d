package gen

// Zipf draws ranks 0 … n-1 with probability proportional to 1/(rank+1)^theta,
// exactly, for any theta ≥ 0. A draw costs two random numbers and, rarely, a
// power: the first ranks stand in an alias table each for itself, the rest in
// buckets whose ends differ by an eighth, within which a draw is accepted or rejected.
type Zipf struct {
	theta float64
	// cells of the alias table; the count is a power of two.
	cells []cell
	mask  uint64
	shift uint
}

type cell struct {
	// lo and width of the bucket, in ranks counted from 1.
	lo    int64
	width int64
	// sure is the probability with which any rank of the bucket is accepted.
	sure float64
	// keep is the share of the cell that is the bucket's own; the rest is alias's.
	keep  uint64
	alias int32
}

const exactRanks = 64

// NewZipf prepares a distribution over n ranks. n below 1 counts as 1; theta below 0 as 0.
func NewZipf(n int64, theta float64) *Zipf {
	n = max(n, 1)
	if !(theta >= 0) {
		theta = 0
	}
	z := &Zipf{theta: theta}
	var weights []float64
	for lo := int64(1); lo <= n; {
		width := int64(1)
		if lo > exactRanks {
			width = max(1, min(lo/8, n-lo+1))
		}
		z.cells = append(z.cells, cell{lo: lo, width: width, sure: pow(float64(lo)/float64(lo+width-1), theta)})
		// Proposals are uniform over the bucket at the height of its first rank;
		// a rejected proposal draws everything anew, so heights, not masses, are the weights.
		weights = append(weights, float64(width)*pow(float64(lo), -theta))
		if lo > n-width {
			break // lo + width might not fit an int64
		}
		lo += width
	}
	z.alias(weights)
	return z
}

// alias builds Vose's table over the buckets.
func (z *Zipf) alias(weights []float64) {
	size := 1
	for size < len(weights) {
		size *= 2
		z.shift++
	}
	for len(weights) < size {
		weights = append(weights, 0)
		z.cells = append(z.cells, cell{lo: 1, width: 1, sure: 1})
	}
	z.mask = uint64(size - 1)
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	var small, large []int
	for i := range weights {
		weights[i] *= float64(size) / sum
		if weights[i] < 1 {
			small = append(small, i)
		} else {
			large = append(large, i)
		}
	}
	const full = 1 << 53
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		z.cells[s].keep, z.cells[s].alias = uint64(weights[s]*full), int32(l)
		if weights[l] += weights[s] - 1; weights[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range append(small, large...) {
		z.cells[i].keep, z.cells[i].alias = full, int32(i)
	}
}

// Next draws a rank.
func (z *Zipf) Next(r *Rand) int64 {
	for {
		x := r.Uint64()
		// The low bits choose the cell, the high 53 the side: at most 2^11 cells
		// keep the two independent, and 2^63 ranks need fewer.
		c := &z.cells[x&z.mask]
		if x>>11 >= c.keep {
			c = &z.cells[c.alias]
		}
		if c.width == 1 {
			return c.lo - 1
		}
		rank := c.lo + r.Int64n(c.width)
		if u := r.Float64(); u < c.sure || u < pow(float64(c.lo)/float64(rank), z.theta) {
			return rank - 1
		}
	}
}
