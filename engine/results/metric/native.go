// This part makes native histograms of Prometheus, in seconds, from exponential ones in nanoseconds.

package metric

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"
)

// Scale is how the buckets of a schema in nanoseconds lie among those in seconds. The bound of a bucket is
// 2^(i/2^schema) ns; seconds have bounds 2^(k/2^schema), which lie a little beside them: of a bucket of nanoseconds,
// Share lies in the bucket of seconds at its index less Shift, the rest in the one above.
type Scale struct {
	Shift int32
	Share float64
}

// ScaleOf is that of a schema.
func ScaleOf(schema int32) Scale {
	exact := math.Ldexp(math.Log2(1e9), int(schema))
	return Scale{Shift: int32(math.Ceil(exact)), Share: exact - math.Floor(exact)}
}

// FillBuckets puts the counts of buckets, the first of which has the index first, into the spans of a histogram; short
// stretches of empty ones are part of a span.
func FillBuckets[N int64 | float64](h *histogram.FloatHistogram, s Scale, first int32, counts []N) {
	const gap = 2
	index := first - s.Shift
	last, empty := int32(math.MinInt32), 0 // the index after the last span, and how many empty buckets followed
	carried := 0.0
	for j := 0; j <= len(counts); j++ {
		c := carried
		if j < len(counts) {
			carried = float64(counts[j]) * (1 - s.Share)
			c += float64(counts[j]) * s.Share
		}
		k := index + int32(j)
		if c == 0 {
			empty++
			continue
		}
		switch {
		case last == math.MinInt32:
			// The first offset is absolute.
			h.PositiveSpans = append(h.PositiveSpans, histogram.Span{Offset: k, Length: 1})
		case empty <= gap:
			for range empty {
				h.PositiveBuckets = append(h.PositiveBuckets, 0)
			}
			h.PositiveSpans[len(h.PositiveSpans)-1].Length += uint32(empty) + 1
		default:
			h.PositiveSpans = append(h.PositiveSpans, histogram.Span{Offset: int32(empty), Length: 1})
		}
		h.PositiveBuckets = append(h.PositiveBuckets, c)
		last, empty = k, 0
	}
}
