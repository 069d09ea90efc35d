package promql_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"

	analyticspromql "github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
	"github.com/loadstone-db/loadstone/engine/analytics/promqltest"
)

func runs(t testing.TB, n int) (promqltest.Catalog, series.Sets) {
	t.Helper()
	all, err := promqltest.Runs(n)
	if err != nil {
		t.Fatal(err)
	}
	sets := make(series.Sets, n)
	for i, r := range all {
		f, err := r.Open()
		if err != nil {
			t.Fatal(err)
		}
		if sets[i], err = series.Read(f, r.Segment.Labels); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	return all, sets
}

func telemetry(c promqltest.Catalog) *analyticspromql.Telemetry {
	o := analyticspromql.DefaultOptions()
	n := analyticspromql.NewEvaluator(c.Read, o, 64<<20)
	return analyticspromql.NewTelemetry(c, promqltest.Local{Catalog: c, Evaluator: n}, n, o)
}

// TestAsOneEngineWould asks expressions from a generator of runs that are spread over pieces of work, and of
// Prometheus' unchanged engine that has all series at once. The same against a TSDB is in deploy/promsuite.
func TestAsOneEngineWould(t *testing.T) {
	c, sets := runs(t, 3)
	ours, theirs := telemetry(c), analyticspromql.DefaultOptions().Engine(5*time.Minute)
	seeds, err := strconv.Atoi(os.Getenv("LOADSTONE_EXPRESSIONS"))
	if err != nil {
		seeds = 150
	}
	ctx := context.Background()
	points := 0
	for seed := range seeds {
		text := promqltest.NewGenerator(uint64(seed)).Expression()
		start, end := promqltest.Noon.Add(-5*time.Second), promqltest.Noon.Add(70*time.Second)
		step := []time.Duration{time.Second, 5 * time.Second, 13 * time.Second}[seed%3]
		a, err := ours.Range(ctx, text, start, end, step)
		b, err2 := theirs.NewRangeQuery(ctx, sets, nil, text, start, end, step)
		if seed%5 == 0 {
			at := start.Add(step * time.Duration(seed%40))
			a, err = ours.Instant(ctx, text, at)
			b, err2 = theirs.NewInstantQuery(ctx, sets, nil, text, at)
		}
		if (err == nil) != (err2 == nil) {
			t.Fatalf("seed %d, %s: %v and %v", seed, text, err, err2)
		}
		if err != nil {
			continue
		}
		x, y := a.Exec(ctx), b.Exec(ctx)
		if what := promqltest.Diff(x, y); what != "" {
			t.Errorf("seed %d: %s\n%s", seed, text, what)
		}
		if m, ok := y.Value.(promql.Matrix); ok {
			points += m.TotalSamples()
		}
		a.Close()
		b.Close()
	}
	if points < 20*seeds {
		t.Errorf("%d points of %d expressions: they say too little", points, seeds)
	}
}
