package results

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// liveAgainstExact records executions of several run workers twice: into
// histograms, whose snapshots are merged tick by tick as a live page sees them,
// and into Parquet, from which the exact figures come. It returns the largest
// relative difference of a percentile, in percent.
func liveAgainstExact(tb testing.TB, workers, ticks, perTick int, latency func(*rand.Rand) float64) float64 {
	tb.Helper()
	rng := rand.New(rand.NewPCG(7, 11))
	f := open(tb)
	live := histogram.New()
	for w := range workers {
		var recs []engine.Execution
		for range ticks {
			tick := histogram.New()
			for range perTick {
				elapsed := int64(latency(rng))
				tick.Record(elapsed)
				at := int64(1_790_000_000_000_000_000) + int64(len(recs))*1000
				recs = append(recs, engine.Execution{DueAt: at, StartedAt: at, Elapsed: elapsed, Seq: uint32(len(recs)),
					Success: true})
			}
			if err := live.MergeData(tick.Data()); err != nil {
				tb.Fatal(err)
			}
		}
		put(tb, f, "worker-"+string(rune('0'+w)), recs)
	}
	fig, err := f.FiguresIn(context.Background(), "run", "", engine.Window{})
	if err != nil {
		tb.Fatal(err)
	}
	if fig.Operations != int64(workers*ticks*perTick) || live.Count() != fig.Operations {
		tb.Fatalf("%d operations, %d live", fig.Operations, live.Count())
	}
	worst := 0.0
	for q, exact := range map[float64]float64{0.5: fig.LatencyMs.P50, 0.9: fig.LatencyMs.P90, 0.95: fig.LatencyMs.P95,
		0.99: fig.LatencyMs.P99, 0.999: fig.LatencyMs.P999} {
		worst = max(worst, 100*math.Abs(live.Quantile(q)/1e6/exact-1))
	}
	return worst
}

// latencies are distributions that a database may show, in ns.
var latencies = map[string]func(*rand.Rand) float64{
	"log-normal": func(r *rand.Rand) float64 { return 350_000 * math.Exp(0.5*r.NormFloat64()) },
	// A cache that mostly hits.
	"two peaks": func(r *rand.Rand) float64 {
		if r.IntN(100) < 97 {
			return 120_000 * math.Exp(0.2*r.NormFloat64())
		}
		return 9e6 * math.Exp(0.4*r.NormFloat64())
	},
	"heavy tail": func(r *rand.Rand) float64 { return 200_000 * math.Pow(1-r.Float64(), -1/1.5) },
}

func TestLivePercentilesAreWithinOnePercent(t *testing.T) {
	for name, latency := range latencies {
		if worst := liveAgainstExact(t, 4, 10, 5000, latency); worst > 1 {
			t.Errorf("%s: live and exact percentiles differ by %.2f %%", name, worst)
		}
	}
}

// BenchmarkLivePercentiles reports how far merged live percentiles are from the exact ones.
func BenchmarkLivePercentiles(b *testing.B) {
	for name, latency := range latencies {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(liveAgainstExact(b, 4, 50, 5000, latency), "%difference")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}
