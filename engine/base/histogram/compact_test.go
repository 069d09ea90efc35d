package histogram_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// TestNarrowIsAHistogram: the same values in any order give the same data.
func TestNarrowIsAHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var n histogram.Compact
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

// TestMergedNarrowOnesAreOne: values in two histograms, merged, are those values in one; the second stays as it was.
func TestMergedNarrowOnesAreOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a, b, all histogram.Compact
		for i, into := range []*histogram.Compact{&a, &b} {
			for _, ns := range rapid.SliceOfN(rapid.Int64Range(-5, 1<<40), 0, 60).Draw(t, string(rune('a'+i))) {
				into.Record(ns)
				all.Record(ns)
			}
		}
		before := b.Data()
		before.Counts = slices.Clone(before.Counts)
		a.Merge(&b)
		if got, want := a.Data(), all.Data(); !same(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		if after := b.Data(); !same(before, after) {
			t.Fatalf("%+v became %+v", before, after)
		}
	})
}

func same(a, b engine.HistogramData) bool {
	return a.Schema == b.Schema && a.Offset == b.Offset && a.Sum == b.Sum && a.Min == b.Min && a.Max == b.Max &&
		slices.Equal(a.Counts, b.Counts)
}
