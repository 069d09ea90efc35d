package compare_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/results/compare"
)

// measured is a run of a minute with 500 operations a second that take about so long.
func measured(id string, ms float64) compare.MeasuredRun {
	rng := rand.New(rand.NewPCG(1, 2))
	m := compare.MeasuredRun{
		Summary: engine.Summary{RunID: id, Figures: engine.Figures{Operations: 30_000, QPS: new(500.0)}},
	}
	for range 60 {
		h := histogram.New()
		for range 500 {
			h.Record(int64(ms * 1e6 * (0.9 + 0.2*rng.Float64())))
		}
		m.Seconds = append(m.Seconds, compare.Second{Operations: 500, Latency: h.Data()})
	}
	return m
}

// The runs of two sides are compared second by second; a difference counts when its
// interval excludes what the tolerance allows.
func Example() {
	var before, after []compare.MeasuredRun
	for i := range 4 {
		before = append(before, measured(fmt.Sprintf("before-%d", i), 2))
		after = append(after, measured(fmt.Sprintf("after-%d", i), 2.4))
	}
	c, err := compare.Between(before, after, compare.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Verdict)
	for _, m := range c.Metrics {
		fmt.Println(m.Name, m.Verdict)
	}
	// Output:
	// worse
	// qps same
	// error_rate same
	// avg_ms worse
	// p50_ms worse
	// p95_ms worse
	// p99_ms worse
}
