package promsuite

import (
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/teststorage"

	"github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
	"github.com/loadstone-db/loadstone/engine/analytics/promqltest"
)

// fill appends every sample of the runs to a TSDB, histograms included.
func fill(t *testing.T, db storage.Appendable, runs promqltest.Catalog) {
	t.Helper()
	fillWith(t, db, runs, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"))
}

// fillWith appends those of some series, and says how many there are.
func fillWith(t *testing.T, db storage.Appendable, runs promqltest.Catalog, some *labels.Matcher) (n int) {
	t.Helper()
	for _, r := range runs {
		f, err := r.Open()
		if err != nil {
			t.Fatal(err)
		}
		set, err := series.Read(f, r.Segment.Labels)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		q, err := series.Sets{set}.Querier(math.MinInt64, math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		all := q.Select(t.Context(), false, nil, some)
		a := db.Appender(t.Context())
		samples := 0
		for all.Next() {
			s := all.At()
			for it := s.Iterator(nil); ; samples++ {
				kind := it.Next()
				if kind == chunkenc.ValNone {
					break
				}
				if kind == chunkenc.ValFloat {
					at, v := it.At()
					_, err = a.Append(0, s.Labels(), at, v)
				} else {
					at, h := it.AtFloatHistogram(nil)
					_, err = a.AppendHistogram(0, s.Labels(), at, nil, h.Copy())
				}
				if err != nil {
					t.Fatalf("%s: %v", s.Labels(), err)
				}
			}
		}
		if err := a.Commit(); err != nil || samples < 1000 {
			t.Fatalf("%d samples of %s: %v", samples, r.Segment.RunID, err)
		}
		n += samples
	}
	return n
}

// TestAsPrometheusWould asks expressions from a generator of runs, and of a TSDB of Prometheus with the same samples
// and its unchanged engine. LOADSTONE_EXPRESSIONS says how many.
func TestAsPrometheusWould(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("LOADSTONE_EXPRESSIONS"))
	if err != nil {
		n = 300
	}
	runs, err := promqltest.Runs(3)
	if err != nil {
		t.Fatal(err)
	}
	db := teststorage.New(t)
	fill(t, db, runs)
	o := promql.DefaultOptions()
	c := promqltest.Catalog(runs)
	own := promql.NewEvaluator(c.Read, o, 64<<20)
	ours := promql.NewTelemetry(c, promqltest.Local{Catalog: c, Evaluator: own}, own, o)
	theirs := o.Engine(5 * time.Minute)
	answered := 0
	for seed := range n {
		text := promqltest.NewGenerator(uint64(seed)).Expression()
		start, end := promqltest.Noon.Add(-5*time.Second), promqltest.Noon.Add(70*time.Second)
		step := []time.Duration{time.Second, 5 * time.Second, 13 * time.Second}[seed%3]
		a, err := ours.Range(t.Context(), text, start, end, step)
		if err != nil {
			t.Fatalf("seed %d, %s: %v", seed, text, err)
		}
		b, err := theirs.NewRangeQuery(t.Context(), db, nil, text, start, end, step)
		if err != nil {
			t.Fatalf("seed %d, %s: %v", seed, text, err)
		}
		x, y := a.Exec(t.Context()), b.Exec(t.Context())
		if what := promqltest.Diff(x, y); what != "" {
			t.Errorf("seed %d: %s\n%s", seed, text, what)
		}
		if m, err := y.Matrix(); err == nil && len(m) > 0 {
			answered++
		}
		a.Close()
		b.Close()
	}
	if answered < n/3 {
		t.Errorf("%d of %d expressions have an answer that is not empty", answered, n)
	}
	t.Logf("%d of %d expressions have an answer that is not empty", answered, n)
}
