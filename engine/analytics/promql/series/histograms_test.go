package series

import (
	"math/rand/v2"
	"testing"

	"github.com/loadstone-db/loadstone/engine/results/segment"
)

func filled(counts []int64) (all []segment.Bucket) {
	for i, c := range counts {
		if c != 0 {
			all = append(all, segment.Bucket{At: int32(i), Count: c})
		}
	}
	return all
}

// TestHistogramsOfSeveralSchemas: what is added up of seconds whose buckets are of different widths is what adding each
// count to its bucket of the coarsest comes to, second by second.
func TestHistogramsOfSeveralSchemas(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 1))
	for range 50 {
		h, lowest := histograms{low: 0}, r.IntN(800)-400
		coarsest := int32(8)
		var schemas, offsets []int32
		var all [][]int64
		for second := range 20 {
			schema, offset := int32(8-r.IntN(4)), int32(lowest+r.IntN(50))
			counts := make([]int64, r.IntN(90))
			for i := range counts {
				if r.IntN(4) == 0 {
					counts[i] = int64(r.IntN(300))
				}
			}
			coarsest = min(coarsest, schema)
			h.add(&segment.Row{Second: int32(second), LatencySchema: schema, LatencyOffset: offset, LatencySumNs: 5},
				filled(counts))
			schemas, offsets, all = append(schemas, schema), append(offsets, offset), append(all, counts)
		}
		h.seconds = len(all) + 1
		h = h.trimmed()
		it := newHistogramIterator(&seriesData{hist: &h})
		want, total := map[int32]float64{}, 0.0
		for second, counts := range all {
			it.Next()
			it.accumulate()
			if it.total != total || it.sumNs != int64(5*second) {
				t.Fatalf("%v and %v before second %d, not %v and %v", it.total, it.sumNs, second, total, 5*second)
			}
			for i, c := range it.counts {
				if c != want[h.first+int32(i)] {
					t.Fatalf("second %d: %v in bucket %d, not %v", second, c, h.first+int32(i), want[h.first+int32(i)])
				}
			}
			for i, c := range counts {
				want[coarser(offsets[second]+int32(i), uint(schemas[second]-coarsest))] += float64(c)
				total += float64(c)
			}
		}
	}
}

// TestEmptyBucketsTakeNoMemory: a second with few operations takes little, however far apart their times are.
func TestEmptyBucketsTakeNoMemory(t *testing.T) {
	var h histograms
	for range 3600 {
		counts := make([]int64, 400)
		counts[0], counts[180], counts[399] = 1, 2, 1
		h.add(&segment.Row{LatencySchema: 5, LatencyOffset: 500}, filled(counts))
	}
	if h.bytes() > 3600*20 {
		t.Errorf("an hour of four operations a second takes %d bytes", h.bytes())
	}
}
