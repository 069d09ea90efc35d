package histogram_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine/histogram"
)

// TestNarrowIsAHistogram: the same values in any order give the same data.
func TestNarrowIsAHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var n histogram.Narrow
		h := histogram.New()
		for _, ns := range rapid.SliceOfN(rapid.Int64Range(-5, 1<<62), 1, 200).Draw(t, "values") {
			n.Record(ns)
			h.Record(ns)
		}
		data := n.Data()
		again, err := histogram.FromData(&data)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []float64{0, 0.3, 0.5, 0.99, 1} {
			if got, want := again.Quantile(q), h.Quantile(q); got != want {
				t.Fatalf("quantile %v is %v, want %v", q, got, want)
			}
		}
		if again.Count() != h.Count() || again.Sum() != h.Sum() || again.Min() != h.Min() || again.Max() != h.Max() {
			t.Fatalf("%d values of %d", again.Count(), h.Count())
		}
	})
}
