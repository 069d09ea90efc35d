package promqltest

import (
	"fmt"
	"math"
	"sort"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

// Diff says in what two results differ, "" where they are equal: the order in which numbers are added may differ
// in the last digits.
func Diff(a, b *promql.Result) string {
	switch {
	case (a.Err == nil) != (b.Err == nil):
		return fmt.Sprintf("errors: %v and %v", a.Err, b.Err)
	case a.Err != nil:
		return ""
	}
	x, y := matrixOf(a), matrixOf(b)
	if len(x) != len(y) {
		return fmt.Sprintf("%d and %d series", len(x), len(y))
	}
	for i := range x {
		if !labels.Equal(x[i].Metric, y[i].Metric) {
			return fmt.Sprintf("%v and %v", x[i].Metric, y[i].Metric)
		}
		if what := diffPoints(x[i], y[i]); what != "" {
			return x[i].Metric.String() + ": " + what
		}
	}
	return ""
}

func matrixOf(r *promql.Result) promql.Matrix {
	var m promql.Matrix
	switch v := r.Value.(type) {
	case promql.Matrix:
		m = append(m, v...)
	case promql.Vector:
		for _, s := range v {
			one := promql.Series{Metric: s.Metric}
			if s.H != nil {
				one.Histograms = []promql.HPoint{{T: s.T, H: s.H}}
			} else {
				one.Floats = []promql.FPoint{{T: s.T, F: s.F}}
			}
			m = append(m, one)
		}
	case promql.Scalar:
		m = promql.Matrix{{Floats: []promql.FPoint{{T: v.T, F: v.V}}}}
	}
	sort.Slice(m, func(i, j int) bool { return labels.Compare(m[i].Metric, m[j].Metric) < 0 })
	return m
}

func diffPoints(a, b promql.Series) string {
	if len(a.Floats) != len(b.Floats) || len(a.Histograms) != len(b.Histograms) {
		return fmt.Sprintf("%d numbers and %d histograms, %d and %d", len(a.Floats), len(a.Histograms), len(b.Floats),
			len(b.Histograms))
	}
	for i, p := range a.Floats {
		if q := b.Floats[i]; p.T != q.T || !near(p.F, q.F) {
			return fmt.Sprintf("%v and %v", p, q)
		}
	}
	for i, p := range a.Histograms {
		if q := b.Histograms[i]; p.T != q.T || !nearHistograms(p.H, q.H) {
			return fmt.Sprintf("%v and %v", p, q)
		}
	}
	return ""
}

func near(a, b float64) bool {
	if math.IsNaN(a) || math.IsNaN(b) || math.IsInf(a, 0) || math.IsInf(b, 0) {
		return math.IsNaN(a) && math.IsNaN(b) || a == b
	}
	return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b), 1e-6)
}

func nearHistograms(a, b *histogram.FloatHistogram) bool {
	a, b = a.Copy().Compact(0), b.Copy().Compact(0)
	if a.Schema != b.Schema || !near(a.Count, b.Count) || !near(a.Sum, b.Sum) ||
		len(a.PositiveBuckets) != len(b.PositiveBuckets) {
		return false
	}
	for i := range a.PositiveBuckets {
		if !near(a.PositiveBuckets[i], b.PositiveBuckets[i]) {
			return false
		}
	}
	return true
}
