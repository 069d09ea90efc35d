package promql_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/loadstone-db/loadstone/engine/analytics/promqltest"
)

// heavy are queries that each touch over a million samples of 100 runs of an hour.
var heavy = []string{
	`sum(rate(loadstone_operations_total[1m]))`,
	`sum by (kind) (rate(loadstone_operations_total[1m]))`,
	`sum by (run) (rate(loadstone_operations_total[5m]))`,
	`topk(5, sum by (run) (rate(loadstone_operations_total[1m])))`,
	`sum(rate(loadstone_failed_operations_total[1m])) / sum(rate(loadstone_operations_total[1m]))`,
	`max by (template) (increase(loadstone_rows_total[5m]))`,
	`avg by (template, kind) (rate(loadstone_operations_total[2m]))`,
	`sum by (run) (max_over_time(loadstone_statement_operations_total[1m]))`,
	`quantile by (kind) (0.9, rate(loadstone_operations_total[1m]))`,
	`sum(rate(loadstone_statement_operations_total[1m])) by (statement)`,
	`count(rate(loadstone_worker_operations_total[1m]) > 1)`,
	`stddev by (kind) (rate(loadstone_operations_total[1m]))`,
}

// TestHeavyQueries is no test: it compares the nodes with Prometheus' engine over the same series in the memory of one
// process, query by query and in turns, and prints what each took. LOADSTONE_RUNS says over how many runs of an hour.
func TestHeavyQueries(t *testing.T) {
	runs, err := strconv.Atoi(os.Getenv("LOADSTONE_RUNS"))
	if err != nil {
		t.Skip("LOADSTONE_RUNS says over how many runs of an hour")
	}
	made, err := promqltest.HourRuns(runs)
	if err != nil {
		t.Fatal(err)
	}
	c := newClusterOf(t, made, "node-a", "node-b")
	from, to := promqltest.Noon, promqltest.Noon.Add(time.Hour)
	step := 15 * time.Second
	took := map[bool][]time.Duration{}
	var firsts []float64
	hits, preferred, pieces, segments := 0, 0, 0, 0
	for round := range 6 {
		for _, text := range heavy {
			begin := time.Now()
			q, err := c.ours.Range(t.Context(), text, from, to, step)
			if err != nil {
				t.Fatal(err)
			}
			a := q.Exec(t.Context())
			mine := time.Since(begin)
			begin = time.Now()
			p, err := c.theirs.NewRangeQuery(t.Context(), c.sets, nil, text, from, to, step)
			if err != nil {
				t.Fatal(err)
			}
			b := p.Exec(t.Context())
			theirs := time.Since(begin)
			if a.Err != nil || b.Err != nil {
				t.Fatal(text, a.Err, b.Err)
			}
			if round == 0 {
				if what := promqltest.Diff(a, b); what != "" {
					t.Errorf("%s: %s", text, what)
				}
				m, _ := b.Value.(promql.Matrix)
				var samples int64
				for _, piece := range q.Stats() {
					samples += piece.Samples
				}
				fmt.Printf("%-90s %9d samples, %6d points\n", text, samples, m.TotalSamples())
			} else {
				took[true], took[false] = append(took[true], mine), append(took[false], theirs)
				firsts = append(firsts, q.Stages().FirstMs)
				for _, piece := range q.Stats() {
					pieces++
					segments, hits = segments+piece.Segments, hits+piece.Hits
					if piece.Preferred {
						preferred++
					}
				}
			}
			q.Close()
			p.Close()
		}
	}
	for _, mine := range []bool{true, false} {
		d := took[mine]
		slices.Sort(d)
		fmt.Printf("nodes %v: P50 %v, P95 %v, most %v\n", mine, d[len(d)/2], d[len(d)*95/100], d[len(d)-1])
	}
	slices.Sort(firsts)
	fmt.Printf("first piece P50 %.1f ms, P95 %.1f ms; %d of %d pieces where preferred, %d of %d segments in memory\n",
		firsts[len(firsts)/2], firsts[len(firsts)*95/100], preferred, pieces, hits, segments)
}
