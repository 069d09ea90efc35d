package compare

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// maxPhi bounds how much neighbouring seconds are taken to resemble each other.
const maxPhi = 0.9

// maxBlocks bounds the blocks of a run: longer runs have longer blocks.
const maxBlocks = 120

// block is a stretch of a run's measurement.
type block struct {
	seconds            float64
	operations, errors int64
	// rated count in the rate.
	rated      int64
	count, sum int64
	// buckets of the distribution that are not empty, at schema 6.
	at     []int32
	counts []int64
}

// side is the runs of one side, cut into blocks.
type side struct {
	runs    [][]block
	seconds float64
	// inflation is by how much the variance of a figure is larger than blocks drawn on
	// their own show, because neighbouring blocks resemble each other; 1 when they do not.
	inflation float64
	width     int // buckets
	whole     draw
	// order is when each run began among those of both sides; timed: that is known.
	order []float64
	timed bool
}

// blockLength is how many seconds a block of the run has: twice the time over
// which its seconds resemble each other, so that blocks are nearly independent, but at
// least minBlocks of them. phi is how much a second resembles the one before.
func blockLength(run Run) (length int, phi float64) {
	n := len(run)
	values, mean := meanLatencies(run)
	covariance := func(lag int) float64 {
		sum := 0.0
		for i := lag; i < n; i++ {
			sum += (values[i] - mean) * (values[i-lag] - mean)
		}
		return sum
	}
	resemble := 1.0
	if variance := covariance(0); variance > 0 {
		for lag := 1; lag < n/4; lag++ {
			rho := covariance(lag) / variance
			if rho < 0.05 {
				break
			}
			resemble += 2 * rho
		}
		phi = autocorrelation(covariance(1)/variance, n)
	}
	length = min(int(math.Ceil(2*resemble)), n/minBlocks)
	return max(length, (n+maxBlocks-1)/maxBlocks, 1), phi
}

// meanLatencies are those of the seconds, in ns, and the mean of them; a second without a latency has that mean.
func meanLatencies(run Run) (values []float64, mean float64) {
	values = make([]float64, len(run))
	known := 0.0
	for i, second := range run {
		values[i] = math.NaN()
		if l := second.Latency; l != nil {
			var count int64
			for _, n := range l.Counts {
				count += n
			}
			if count > 0 {
				values[i] = float64(l.Sum) / float64(count)
				mean, known = mean+values[i], known+1
			}
		}
	}
	mean /= max(known, 1)
	for i, v := range values {
		if math.IsNaN(v) {
			values[i] = mean
		}
	}
	return values, mean
}

// autocorrelation is the correlation of neighbours, of which n values show rho: too little, the
// fewer they are (Marriott and Pope 1954).
func autocorrelation(rho float64, n int) float64 {
	if n <= 3 {
		return 0
	}
	return min(max((float64(n)*rho+1)/float64(n-3), 0), maxPhi)
}

// varianceInflation is by how much the variance of a mean is larger than independent blocks of that
// length show, when a second resembles the one before by phi.
func varianceInflation(length int, phi float64) float64 {
	l := float64(length)
	return 1 / (1 - 2*phi*(1-math.Pow(phi, l))/(l*(1-phi*phi)))
}

func newSide(runs []Run) (*side, error) {
	s := &side{}
	for _, run := range runs {
		if len(run) == 0 {
			return nil, fmt.Errorf("it has no measurement")
		}
		length, phi := blockLength(run)
		s.inflation += varianceInflation(length, phi) / float64(len(runs))
		for _, second := range run {
			s.seconds += second.Length()
		}
		var blocks []block
		for first := 0; first < len(run); first += length {
			b, err := s.block(run[first:min(first+length, len(run))])
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, b)
		}
		s.runs = append(s.runs, blocks)
	}
	if len(s.runs) == 0 {
		return nil, fmt.Errorf("there is none")
	}
	s.whole.reset(s.width)
	for _, run := range s.runs {
		for i := range run {
			s.whole.add(&run[i])
		}
	}
	return s, nil
}

func (s *side) block(seconds []Second) (block, error) {
	var b block
	h := histogram.New()
	for _, second := range seconds {
		b.seconds += second.Length()
		b.operations += second.Operations
		b.rated += second.Rated()
		b.errors += second.Errors
		if second.Latency != nil {
			if err := h.MergeData(second.Latency); err != nil {
				return b, fmt.Errorf("merging a second's latencies: %w", err)
			}
		}
	}
	if h.Count() == 0 {
		return b, nil
	}
	d := h.Downscale(h.Schema())
	if d.Schema != histogram.Schema {
		return b, fmt.Errorf("a second's latencies have schema %d; %d is needed", d.Schema, histogram.Schema)
	}
	b.count, b.sum = h.Count(), d.Sum
	for i, n := range d.Counts {
		if n > 0 {
			at := max(d.Offset+i, 0)
			b.at, b.counts = append(b.at, int32(at)), append(b.counts, n)
			s.width = max(s.width, at+1)
		}
	}
	return b, nil
}

func (s *side) blocks() int {
	n := 0
	for _, run := range s.runs {
		n += len(run)
	}
	return n
}

// smallSampleFactor is by how much an interval from that many blocks is too narrow: the
// bootstrap divides by n where n − 1 is right, and few blocks know little of their own spread (Student's t against
// the normal).
func smallSampleFactor(blocks int) float64 {
	if blocks < 2 {
		return math.Inf(1)
	}
	const z = 2.576
	free := float64(blocks - 1)
	return (z + (z*z*z+z)/(4*free)) / z * math.Sqrt(float64(blocks)/free)
}

func (s *side) pooled() *draw { return &s.whole }

// draw fills d with as many blocks as there are, of each run its own, drawn with replacement. What differs between the
// runs is another matter (between.go).
func (s *side) draw(rng *rand.Rand, d *draw) {
	d.reset(s.width)
	for i := range s.runs {
		run := s.runs[i]
		for range run {
			d.add(&run[rng.IntN(len(run))])
		}
	}
}

// draw is a merged distribution.
type draw struct {
	seconds            float64
	operations, errors int64
	rated, count       int64
	sum                float64
	buckets            []int64
}

func (d *draw) reset(width int) {
	if cap(d.buckets) < width {
		d.buckets = make([]int64, width)
	}
	d.buckets = d.buckets[:width]
	clear(d.buckets)
	d.seconds, d.operations, d.errors, d.rated, d.count, d.sum = 0, 0, 0, 0, 0, 0
}

func (d *draw) add(b *block) {
	d.seconds += b.seconds
	d.operations += b.operations
	d.rated += b.rated
	d.errors += b.errors
	d.count += b.count
	d.sum += float64(b.sum)
	for i, at := range b.at {
		d.buckets[at] += b.counts[i]
	}
}

// quantile is in ns, interpolated within its bucket; NaN without an execution.
func (d *draw) quantile(q float64) float64 {
	if d.count == 0 {
		return math.NaN()
	}
	rank := q * float64(d.count)
	below := 0.0
	for i, n := range d.buckets {
		if n == 0 {
			continue
		}
		if next := below + float64(n); next >= rank {
			lo, hi := histogram.UpperBound(histogram.Schema, i-1), histogram.UpperBound(histogram.Schema, i)
			return lo + (hi-lo)*(rank-below)/float64(n)
		}
		below += float64(n)
	}
	return histogram.UpperBound(histogram.Schema, len(d.buckets)-1)
}

// slowerProbability is the probability that an execution of b took longer than one of a,
// ties counting half: the Mann–Whitney U divided by the number of pairs.
func slowerProbability(a, b *draw) *float64 {
	if a.count == 0 || b.count == 0 {
		return nil
	}
	won, below := 0.0, 0.0
	for i, n := range b.buckets {
		same := 0.0
		if i < len(a.buckets) {
			same = float64(a.buckets[i])
		}
		won += float64(n) * (below + same/2)
		below += same
	}
	p := won / float64(a.count) / float64(b.count)
	return &p
}
