package promql_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"pgregory.net/rapid"

	analyticspromql "github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
	"github.com/loadstone-db/loadstone/engine/analytics/promqltest"
)

// shuffled evaluates each leaf over each run alone, as a node does, and hands the answers over as files in any order,
// those of several leaves mixed.
type shuffled struct {
	sets series.Sets
	seed uint64
}

func (s shuffled) Evaluate(
	ctx context.Context,
	r *analyticspromql.Request,
	take func(analyticspromql.WorkStats, analyticspromql.LeafResult) error,
) error {
	type part struct {
		leaf int
		file []byte
	}
	var parts []part
	e := analyticspromql.DefaultOptions().Engine(5 * time.Minute)
	for i, task := range r.Tasks {
		for _, set := range s.sets {
			if err := analyticspromql.Evaluate(ctx, e, series.Sets{set}, task, func(a analyticspromql.LeafResult) error {
				var file bytes.Buffer
				err := analyticspromql.Write(&file, a)
				parts = append(parts, part{i, file.Bytes()})
				return err
			}); err != nil {
				return err
			}
		}
	}
	random := rand.New(rand.NewPCG(s.seed, 4))
	random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	for _, p := range parts {
		a, err := analyticspromql.Read(bytes.NewReader(p.file), int64(len(p.file)))
		if err != nil {
			return err
		}
		if err := take(analyticspromql.WorkStats{Leaf: p.leaf, Total: len(parts)}, a); err != nil {
			return err
		}
	}
	return nil
}

// TestAnswersAreMergedInTheOrderOfTime: what several nodes have made of a leaf is one series for each of its labels,
// whose points rise in time, once each, in whichever order the answers come, also where the leaf is wanted on two
// grids; and it is what one engine makes of all (the fourth of the seed's invariants).
func TestAnswersAreMergedInTheOrderOfTime(t *testing.T) {
	_, sets := runs(t, 5)
	theirs := analyticspromql.DefaultOptions().Engine(5 * time.Minute)
	start, end := promqltest.Noon.Add(-5*time.Second), promqltest.Noon.Add(90*time.Second)
	for i, text := range []string{
		`rate(loadstone_operations_total[5s])`, `loadstone_connections`, `loadstone_latency_seconds`,
		`loadstone_operations_total + on (run, kind, phase) group_left max_over_time(loadstone_operations_total[20s:3s])`,
		`avg_over_time(rate(loadstone_worker_operations_total[5s])[10s:2s]) / rate(loadstone_worker_operations_total[5s])`,
	} {
		want, err := theirs.NewRangeQuery(t.Context(), sets, nil, text, start, end, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		expected := want.Exec(t.Context())
		for seed := range uint64(4) {
			q, err := analyticspromql.NewEngine(analyticspromql.DefaultOptions(), 5*time.Minute).Range(t.Context(),
				shuffled{sets, seed + uint64(10*i)}, text, start, end, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			r := q.Exec(t.Context())
			if what := promqltest.Diff(r, expected); what != "" {
				t.Errorf("%s\n%s", text, what)
			}
			m, err := r.Matrix()
			if err != nil || len(m) < 5 {
				t.Fatalf("%s: %d series, %v", text, len(m), err)
			}
			if what := falls(m); what != "" {
				t.Errorf("%s: %s", text, what)
			}
			q.Close()
		}
		want.Close()
	}
}

func falls(m promql.Matrix) string {
	seen := map[string]bool{}
	for _, s := range m {
		if name := s.Metric.String(); seen[name] {
			return name + " is there twice"
		}
		seen[s.Metric.String()] = true
		var times []int64
		for _, p := range s.Floats {
			times = append(times, p.T)
		}
		for _, p := range s.Histograms {
			times = append(times, p.T)
		}
		for i := 1; i < len(times); i++ {
			if times[i] <= times[i-1] {
				return fmt.Sprintf("%s has %d after %d", s.Metric, times[i], times[i-1])
			}
		}
	}
	return ""
}

// TestGridsAreMergedInTheOrderOfTime: a selector that is wanted on several grids reads each instant once, in order.
func TestGridsAreMergedInTheOrderOfTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := map[string]map[int64]float64{}
		var grids []promql.Matrix
		for range rapid.IntRange(1, 4).Draw(t, "grids") {
			var m promql.Matrix
			for _, name := range []string{"a", "b"} {
				s := promql.Series{Metric: labels.FromStrings("x", name)}
				at, step := rapid.Int64Range(0, 9).Draw(t, "start"), rapid.Int64Range(1, 5).Draw(t, "step")
				for range rapid.IntRange(0, 9).Draw(t, "points") {
					s.Floats = append(s.Floats, promql.FPoint{T: at, F: float64(at)})
					if want[name] == nil {
						want[name] = map[int64]float64{}
					}
					want[name][at] = float64(at)
					at += step
				}
				if len(s.Floats) > 0 {
					m = append(m, s)
				}
			}
			grids = append(grids, m)
		}
		got := analyticspromql.MergeGrids(grids)
		if what := falls(got); what != "" || len(got) != len(want) {
			t.Fatalf("%d series of %d: %s", len(got), len(want), what)
		}
		for _, s := range got {
			if len(s.Floats) != len(want[s.Metric.Get("x")]) {
				t.Fatalf("%d points of %d", len(s.Floats), len(want[s.Metric.Get("x")]))
			}
		}
	})
}
