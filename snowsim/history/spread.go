package history

import (
	"math"
	"slices"
	"time"
)

// spread is a histogram of durations with buckets 1.1 % wide, of which only
// those that are in use take memory: there is one for each statement and minute.
type spread struct {
	count       int64
	sum, square float64 // ms
	low, high   time.Duration
	buckets     map[int16]uint32
}

const perDoubling = 64

func (s *spread) add(d time.Duration) {
	d = max(d, 0)
	if s.count == 0 || d < s.low {
		s.low = d
	}
	s.high = max(s.high, d)
	s.count++
	ms := float64(d) / 1e6
	s.sum += ms
	s.square += ms * ms
	if s.buckets == nil {
		s.buckets = map[int16]uint32{}
	}
	s.buckets[bucket(d)]++
}

func bucket(d time.Duration) int16 {
	if d < 1 {
		return -1
	}
	return int16(math.Log2(float64(d)) * perDoubling) // below 64 * 63
}

// distribution returns the figures; percentiles are off by at most 1.1 %.
func (s *spread) distribution() Distribution {
	if s.count == 0 {
		return Distribution{}
	}
	n := float64(s.count)
	mean := s.sum / n
	d := Distribution{Sum: s.sum, Avg: mean, Min: float64(s.low) / 1e6, Max: float64(s.high) / 1e6,
		StdDev: math.Sqrt(max(s.square/n-mean*mean, 0))}
	keys := make([]int16, 0, len(s.buckets))
	for k := range s.buckets {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, want := range []struct {
		q  float64
		at *float64
	}{{0.5, &d.Median}, {0.9, &d.P90}, {0.99, &d.P99}, {0.999, &d.P999}} {
		rank := int64(math.Ceil(want.q * n))
		var seen int64
		for _, k := range keys {
			if seen += int64(s.buckets[k]); seen >= rank {
				if k >= 0 {
					*want.at = math.Exp2((float64(k)+0.5)/perDoubling) / 1e6
				}
				break
			}
		}
		*want.at = min(max(*want.at, d.Min), d.Max)
	}
	return d
}
