package series_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	analyticspromql "github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
	"github.com/loadstone-db/loadstone/engine/analytics/promqltest"
)

// TestWindowsNeedTheirEdgesAlone: over histograms that have buckets only where a window begins or ends, rate and its
// like come to what they come to over all, and read fewer.
func TestWindowsNeedTheirEdgesAlone(t *testing.T) {
	runs, err := promqltest.Runs(3)
	if err != nil {
		t.Fatal(err)
	}
	var sets series.Sets
	for _, r := range runs {
		set, _, err := promqltest.Catalog(runs).Read(t.Context(), r.Segment)
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
	}
	r := rand.New(rand.NewPCG(7, 16))
	of := func(all ...string) string { return all[r.IntN(len(all))] }
	o := analyticspromql.DefaultOptions()
	e := o.Engine(5 * time.Minute)
	fewer := 0
	for range 150 {
		start := promqltest.Noon.UnixMilli() + r.Int64N(40_000) - 10_000
		task := analyticspromql.Task{LookbackMs: 300_000, Expr: fmt.Sprintf("%s(loadstone_latency_seconds[%s]%s)",
			of("rate", "increase", "delta"), of("1s", "2s", "3s", "7s", "20s", "1500ms", "1m"),
			of("", "", " offset 7s", " offset -5s", " offset 300ms")),
			Grid: analyticspromql.Grid{Start: start, End: start + r.Int64N(60_000), Step: 1 + r.Int64N(17_000)}}
		edges, ok := task.Edges(o.Parser)
		if !ok {
			t.Fatalf("%s has no edges", task.Expr)
		}
		evaluate := func(q storage.Queryable) (m promql.Matrix, samples int64) {
			if err := analyticspromql.Evaluate(t.Context(), e, q, task, func(a analyticspromql.LeafResult) error {
				for _, s := range a.Series {
					for i := range s.Histograms {
						s.Histograms[i].H = s.Histograms[i].H.Copy()
					}
					s.Histograms = append([]promql.HPoint(nil), s.Histograms...)
					m = append(m, s)
				}
				samples = a.Samples
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			return m, samples
		}
		want, all := evaluate(sets)
		got, some := evaluate(sets.At(edges))
		if what := promqltest.Diff(&promql.Result{Value: got}, &promql.Result{Value: want}); what != "" {
			t.Fatalf("%+v: %s", task, what)
		}
		if some < all {
			fewer++
		}
	}
	if fewer < 50 {
		t.Errorf("fewer buckets were read %d times", fewer)
	}
}

// TestWindowsThatNeedMore: what looks at more than the edges, or whose windows do not follow the grid, is given all.
func TestWindowsThatNeedMore(t *testing.T) {
	o := analyticspromql.DefaultOptions()
	for text, want := range map[string]bool{"rate(x[1m])": true, "  rate( x{a='b'}[1m] offset 1m )": true, "x": false,
		"irate(x[1m])": false, "sum_over_time(x[1m])": false, "rate(x[1m] @ 5)": false, "rate(x[1m] @ end())": false,
		"rate(x[5m:1m])": false, "resets(x[1m])": false, "sum(rate(x[1m]))": false} {
		if _, ok := (analyticspromql.Task{Expr: text}).Edges(o.Parser); ok != want {
			t.Errorf("%s: %v", text, ok)
		}
	}
}
