package promql

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

func example() LeafResult {
	h := &histogram.FloatHistogram{CounterResetHint: histogram.GaugeType, Schema: 6, ZeroThreshold: 1e-9, ZeroCount: 2,
		Count: 7.5, Sum: -3, PositiveSpans: []histogram.Span{{Offset: -400, Length: 2}, {Offset: 3, Length: 1}},
		PositiveBuckets: []float64{1, 2.5, 3}, NegativeSpans: []histogram.Span{}}
	custom := &histogram.FloatHistogram{Schema: histogram.CustomBucketsSchema, Count: 1, Sum: 1,
		CustomValues: []float64{0.1, 1}, PositiveSpans: []histogram.Span{{Offset: 0, Length: 2}},
		PositiveBuckets: []float64{0, 1}, NegativeSpans: []histogram.Span{}}
	return LeafResult{Warnings: []string{"a warning \"quoted\"\n"}, Infos: []string{"an info"}, Samples: 12,
		Series: promql.Matrix{
			{Metric: labels.EmptyLabels(),
				Floats: []promql.FPoint{{T: -5, F: math.Inf(1)}, {T: 1 << 50, F: math.Copysign(0, -1)}}},
			{Metric: labels.FromStrings("__name__", "x", "ü \"'\n", "value,with=all")},
			{Metric: labels.FromStrings("a", "b"), Floats: []promql.FPoint{{T: 1, F: 2}},
				Histograms: []promql.HPoint{{T: 2, H: h}, {T: 3, H: custom}}},
		}}
}

func TestAnAnswerComesBackAsItWas(t *testing.T) {
	want := example()
	var file bytes.Buffer
	if err := Write(&file, want); err != nil {
		t.Fatal(err)
	}
	got, err := Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Warnings, want.Warnings) || !reflect.DeepEqual(got.Infos, want.Infos) ||
		got.Samples != want.Samples || len(got.Series) != len(want.Series) {
		t.Fatalf("%+v", got)
	}
	for i, s := range got.Series {
		w := want.Series[i]
		if !labels.Equal(s.Metric, w.Metric) || !reflect.DeepEqual(s.Floats, w.Floats) {
			t.Errorf("%v, not %v", s, w)
		}
		for j, h := range s.Histograms {
			if h.T != w.Histograms[j].T || !h.H.Equals(w.Histograms[j].H) ||
				h.H.CounterResetHint != w.Histograms[j].H.CounterResetHint {
				t.Errorf("%v, not %v", h, w.Histograms[j])
			}
		}
	}
}

// FuzzRead holds that no file of another node ends the process.
func FuzzRead(f *testing.F) {
	var file bytes.Buffer
	if err := Write(&file, example()); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = Read(bytes.NewReader(b), int64(len(b)))
	})
}

// FuzzHistogram does the same for what a histogram is in.
func FuzzHistogram(f *testing.F) {
	f.Add(appendHistogram(nil, example().Series[2].Histograms[0].H))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readHistogram(b)
		if err != nil {
			return
		}
		again, err := readHistogram(appendHistogram(nil, h))
		if err != nil || again.Count != h.Count && !math.IsNaN(h.Count) {
			t.Errorf("%v, %v", again, err)
		}
	})
}

func TestSeriesOfTwoNodesMustNotBeEqual(t *testing.T) {
	a := LeafResult{Series: promql.Matrix{{Metric: labels.FromStrings("a", "1")}, {Metric: labels.FromStrings("a", "3")}}}
	b := LeafResult{Series: promql.Matrix{{Metric: labels.FromStrings("a", "2")}}}
	m, err := Merge([]LeafResult{a, {}, b})
	if err != nil || len(m) != 3 || m[1].Metric.Get("a") != "2" {
		t.Errorf("%v, %v", m, err)
	}
	if _, err := Merge([]LeafResult{a, b, b}); err == nil {
		t.Error("two equal series were put together")
	}
}

// TestAnAnswerOutOfOrderIsRefused: what is merged is in the order of labels and time because each part of it is.
func TestAnAnswerOutOfOrderIsRefused(t *testing.T) {
	one := func(name string, times ...int64) promql.Series {
		s := promql.Series{Metric: labels.FromStrings("a", name)}
		for _, at := range times {
			s.Floats = append(s.Floats, promql.FPoint{T: at, F: 1})
		}
		return s
	}
	for name, m := range map[string]promql.Matrix{"times that fall": {one("1", 5, 4)}, "a time twice": {one("1", 5, 5)},
		"labels that fall": {one("2", 1), one("1", 1)}} {
		var file bytes.Buffer
		if err := Write(&file, LeafResult{Series: m}); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(bytes.NewReader(file.Bytes()), int64(file.Len())); !errors.Is(err, errOrder) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
