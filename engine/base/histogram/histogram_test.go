package histogram

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"pgregory.net/rapid"
)

// values draws latencies over many orders of magnitude.
func values(t *rapid.T, label string) []int64 {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) int64 {
		return int64(math.Exp(rapid.Float64Range(0, math.Log(3.6e12)).Draw(t, "ln")))
	}), 1, 400).Draw(t, label)
}

func exact(sorted []int64, q float64) float64 {
	rank := q * float64(len(sorted)-1)
	i := int(rank)
	if i+1 >= len(sorted) {
		return float64(sorted[len(sorted)-1])
	}
	return float64(sorted[i]) + (float64(sorted[i+1])-float64(sorted[i]))*(rank-float64(i))
}

func TestQuantileIsWithinItsError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values(t, "values")
		h := New()
		for _, x := range v {
			h.Record(x)
		}
		slices.Sort(v)
		for _, q := range []float64{0, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1, rapid.Float64Range(0, 1).Draw(t, "q")} {
			want, got := exact(v, q), h.Quantile(q)
			if math.Abs(got-want) > 0.006*want {
				t.Fatalf("quantile %v of %d values: %v, exactly %v", q, len(v), got, want)
			}
		}
		if h.Min() != v[0] || h.Max() != v[len(v)-1] || h.Count() != int64(len(v)) {
			t.Fatalf("min %d max %d count %d", h.Min(), h.Max(), h.Count())
		}
	})
}

func TestMergeIsAddition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, all := New(), New(), New()
		va, vb := values(t, "a"), values(t, "b")
		for _, x := range va {
			a.Record(x)
			all.Record(x)
		}
		for _, x := range vb {
			b.Record(x)
			all.Record(x)
		}
		ab, ba := New(), New()
		ab.Merge(a)
		ab.Merge(b)
		ba.Merge(b)
		if err := ba.MergeData(a.Data()); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(ab, ba) || !reflect.DeepEqual(ab, all) {
			t.Fatal("merging depends on order or on the path")
		}
	})
}

func TestDataSurvivesJSONAndDownscalingCommutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := New(), New()
		for _, x := range values(t, "a") {
			a.Record(x)
		}
		for _, x := range values(t, "b") {
			b.Record(x)
		}
		schema := rapid.IntRange(0, Schema).Draw(t, "schema")
		text, err := json.Marshal(a.Data())
		if err != nil {
			t.Fatal(err)
		}
		var d engine.HistogramData
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		back, err := FromData(&d)
		if err != nil || !reflect.DeepEqual(back, a) {
			t.Fatalf("data does not come back: %v", err)
		}
		// Coarse data merged with fine data is the coarse form of the whole.
		mixed, err := FromData(a.Downscale(schema))
		if err != nil {
			t.Fatal(err)
		}
		mixed.Merge(b)
		fine := New()
		fine.Merge(b)
		fine.Merge(a)
		if !reflect.DeepEqual(mixed.Data(), fine.Downscale(schema)) {
			t.Fatalf("schema %d: %+v and %+v", schema, mixed.Data(), fine.Downscale(schema))
		}
		mixed.Reset()
		if !reflect.DeepEqual(mixed, New()) {
			t.Fatal("reset leaves something behind")
		}
	})
}

func TestEveryValueIsInsideItsBucket(t *testing.T) {
	check := func(v int64) {
		i := bucketOf(v)
		lower, upper := UpperBound(Schema, i-1), UpperBound(Schema, i)
		if f := float64(v); f <= lower*(1-1e-14) || f > upper*(1+1e-14) {
			t.Errorf("%d is in bucket %d (%v, %v]", v, i, lower, upper)
		}
	}
	for shift := range 63 {
		for d := int64(-1); d <= 1; d++ {
			if v := int64(1)<<shift + d; v > 0 {
				check(v)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) { check(rapid.Int64Range(1, math.MaxInt64).Draw(t, "v")) })
	h := New()
	h.Record(-5)
	h.Record(math.MaxInt64)
	if h.Count() != 2 || h.Min() != -5 {
		t.Errorf("extremes: %+v", h.Data())
	}
}

func TestMalformedDataIsRefused(t *testing.T) {
	for name, d := range map[string]engine.HistogramData{
		"schema above":    {Schema: 7, Counts: []int64{1}},
		"schema below":    {Schema: -1, Counts: []int64{1}},
		"negative count":  {Schema: 6, Counts: []int64{-1}},
		"overflow":        {Schema: 6, Counts: []int64{math.MaxInt64, 1}},
		"negative offset": {Schema: 6, Offset: -1, Counts: []int64{1}},
		"offset too high": {Schema: 6, Offset: numBuckets, Counts: []int64{1}},
		"huge offset":     {Schema: 6, Offset: math.MaxInt, Counts: []int64{1, 1}},
		"too many":        {Schema: 2, Counts: make([]int64, numBuckets)},
		"min above max":   {Schema: 6, Counts: []int64{1}, Min: 2, Max: 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := New()
			if err := h.MergeData(&d); err == nil {
				t.Error("accepted")
			}
			if !reflect.DeepEqual(h, New()) {
				t.Error("changed by refused data")
			}
		})
	}
}

func TestEmptyHistogram(t *testing.T) {
	h := New()
	if h.Quantile(0.5) != 0 || h.Min() != 0 || h.Max() != 0 || h.Mean() != 0 {
		t.Error("an empty histogram has figures")
	}
	back, err := FromData(h.Data())
	if err != nil || back.Count() != 0 {
		t.Errorf("%v, %v", back.Count(), err)
	}
}

func BenchmarkRecord(b *testing.B) {
	h := New()
	latencies := make([]int64, 1024)
	for i := range latencies {
		latencies[i] = int64(math.Exp(12 + rand.NormFloat64()))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		h.Record(latencies[i&1023])
		i++
	}
}

func BenchmarkMergeData(b *testing.B) {
	one, h := New(), New()
	for range 10000 {
		one.Record(int64(math.Exp(12 + rand.NormFloat64()/2)))
	}
	d := one.Data()
	b.ReportAllocs()
	for b.Loop() {
		if err := h.MergeData(d); err != nil {
			b.Fatal(err)
		}
	}
}
