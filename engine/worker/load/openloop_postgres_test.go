package load_test

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/load"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// kept keeps every record.
type kept struct{ recs []engine.Execution }

func (s *kept) Write(recs []engine.Execution) error {
	s.recs = append(s.recs, recs...)
	return nil
}

// quantile is of the records' values, in seconds.
func (s *kept) quantile(q float64, of func(engine.Execution) int64) float64 {
	all := make([]int64, len(s.recs))
	for i, r := range s.recs {
		all[i] = of(r)
	}
	slices.Sort(all)
	return float64(all[int(q*float64(len(all)-1))]) / 1e9
}

func elapsed(r engine.Execution) int64 { return r.Elapsed }
func lag(r engine.Execution) int64     { return r.ScheduleLag }

// runOpenLoop runs an open loop on a target for a time; during is called when it has started.
func runOpenLoop(tb testing.TB, dsn, sql string, w engine.Workload, connections int, length time.Duration,
	during func()) (*kept, engine.Totals) {
	tb.Helper()
	database, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn)})
	if err != nil {
		tb.Fatal(err)
	}
	defer database.Close()
	w.LoadMode = engine.LoadQPS
	sink := &kept{}
	g, err := load.Open(tb.Context(),
		load.Config{Stream: &lookups{rand.New(rand.NewPCG(1, 2)), 1000}, Database: database, Sink: sink, Log: zerolog.Nop(),
			Workload: w,
			Plan: &engine.Plan{Statements: []engine.Statement{{ID: "s", Kind: engine.KindPointLookup, SQL: sql,
				Binds: []engine.Bind{{Type: engine.TypeI64}}}}}}, connections, nil)
	if err != nil {
		tb.Fatal(err)
	}
	g.Start(engine.PhaseMeasurement)
	begin := time.Now()
	if during != nil {
		during()
	}
	time.Sleep(time.Until(begin.Add(length)))
	if err := g.Drain(tb.Context()); err != nil {
		tb.Error(err)
	}
	if err := g.Close(); err != nil {
		tb.Error(err)
	}
	n := g.Totals()
	if n.Scheduled != n.Started+n.Dropped || n.Started != n.Succeeded+n.Failed || n.Recorded != n.Started ||
		int64(len(sink.recs)) != n.Started {
		tb.Errorf("%+v, %d records", n, len(sink.recs))
	}
	return sink, n
}

func perSecond(r float64) *float64 { return &r }

func TestOpenLoopOnPostgres(t *testing.T) {
	sink, n := runOpenLoop(t, pgtest.Start(t).DSN("loadstone"), "SELECT $1::bigint",
		engine.Workload{TargetQPS: perSecond(500)}, 8, 2*time.Second, nil)
	// A machine that is busy elsewhere dispatches fewer in time; never more than are due.
	if n.Failed != 0 || n.Dropped != 0 || n.Started == 0 || n.Started > 1100 {
		t.Errorf("%+v in two seconds at 500/s", n)
	}
	due := make([]int64, len(sink.recs))
	for i, r := range sink.recs {
		due[i] = r.DueAt
		if r.StartedAt < r.DueAt || r.StartedAt-r.DueAt != r.ScheduleLag+r.PoolWait || r.Elapsed <= r.ScheduleLag+r.PoolWait {
			t.Fatalf("%+v", r)
		}
	}
	slices.Sort(due)
	for i, at := range due {
		if at != due[0]+int64(i)*2e6 {
			t.Fatalf("operation %d was due %d ns after the first", i, at-due[0])
		}
	}
}

// TestAFrozenTargetCostsWhatItMust freezes a target for 1.4 s. An operation that
// was due x seconds into the freeze ends 1.4 − x·(1 − ρ) seconds later, ρ being
// the rate ÷ the rate at which the backlog drains.
func TestAFrozenTargetCostsWhatItMust(t *testing.T) {
	server, err := nullpg.Listen(t.Context(), "127.0.0.1:0", nullpg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	const length, rate = 6 * time.Second, 500
	sink, n := runOpenLoop(t, server.DSN(), "SELECT $1", engine.Workload{TargetQPS: perSecond(rate), MaxInFlight: 10_000},
		16, length, func() {
			time.Sleep(2 * time.Second)
			server.Freeze(1400 * time.Millisecond)
		})
	if n.Dropped != 0 || n.Failed != 0 {
		t.Errorf("%+v", n)
	}
	// A tenth of the operations waited longer than this: those due in the first 0.6 s of the freeze.
	got, want := sink.quantile(0.9, elapsed), 1.4-0.1*length.Seconds()
	if got < want*0.9 || got > want*1.3 {
		t.Errorf("P90 is %.3f s, %.3f s and a little by the theory", got, want)
	}
}

// TestDropsOnAFrozenTarget freezes a target that may have few operations in flight.
func TestDropsOnAFrozenTarget(t *testing.T) {
	server, err := nullpg.Listen(t.Context(), "127.0.0.1:0", nullpg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_, n := runOpenLoop(t, server.DSN(), "SELECT $1",
		engine.Workload{TargetQPS: perSecond(1000), MaxInFlight: 50, Arrival: engine.ArrivalPoisson}, 8,
		1500*time.Millisecond, func() {
			time.Sleep(200 * time.Millisecond)
			server.Freeze(time.Second)
		})
	// A thousand were due in the freeze, fifty of them could wait.
	if n.Dropped < 500 || n.Failed != 0 || math.Abs(float64(n.Scheduled)-1500) > 500 {
		t.Errorf("%+v", n)
	}
}

// BenchmarkOpenLoop runs 5000 operations per second against a target that
// answers at once: how late they start, how exact the rate is, and what the
// generator (and the target, in the same process) costs. LOADSTONE_BENCH_OPENLOOP
// sets the length, by default 5 s.
func BenchmarkOpenLoop(b *testing.B) {
	server, err := nullpg.Listen(b.Context(), "127.0.0.1:0", nullpg.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	length := benchLength(b)
	for b.Loop() {
		used := cpu()
		sink, n := runOpenLoop(b, server.DSN(), "SELECT $1", engine.Workload{TargetQPS: perSecond(5000)}, 16, length, nil)
		b.ReportMetric(float64((cpu()-used).Nanoseconds())/float64(n.Started), "cpu-ns/query")
		b.ReportMetric(100*math.Abs(float64(n.Started)/length.Seconds()/5000-1), "%rate-error")
		b.ReportMetric(1e6*sink.quantile(0.5, lag), "lag-p50-µs")
		b.ReportMetric(1e6*sink.quantile(0.99, lag), "lag-p99-µs")
		b.ReportMetric(1e6*sink.quantile(0.99, elapsed), "latency-p99-µs")
		b.ReportMetric(0, "ns/op")
	}
}

func benchLength(b *testing.B) time.Duration {
	text := os.Getenv("LOADSTONE_BENCH_OPENLOOP")
	if text == "" {
		return 5 * time.Second
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		b.Fatal(err)
	}
	return length
}

// BenchmarkFrozenTarget is the figure: 5000/s for a minute with a freeze
// of 1.4 s; the P99 against 1.4 − 0.6·(1 − ρ), with ρ from how fast the backlog drained.
func BenchmarkFrozenTarget(b *testing.B) {
	server, err := nullpg.Listen(b.Context(), "127.0.0.1:0", nullpg.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	const rate, length, frozen = 5000, 60 * time.Second, 1400 * time.Millisecond
	for b.Loop() {
		var thawed int64
		sink, n := runOpenLoop(b, server.DSN(), "SELECT $1", engine.Workload{TargetQPS: perSecond(rate), MaxInFlight: 10_000},
			16, length, func() {
				time.Sleep(20 * time.Second)
				server.Freeze(frozen)
				thawed = time.Now().Add(frozen).UnixNano()
			})
		// The backlog is what was due before the thaw and ended after it.
		backlog, drained := 0, thawed
		for _, r := range sink.recs {
			if r.DueAt < thawed && r.DueAt+r.Elapsed > thawed {
				backlog++
				drained = max(drained, r.DueAt+r.Elapsed)
			}
		}
		rho := rate / (float64(backlog) / (float64(drained-thawed) / 1e9))
		want := frozen.Seconds() - 0.01*length.Seconds()*(1-rho)
		got := sink.quantile(0.99, elapsed)
		b.ReportMetric(1000*got, "p99-ms")
		b.ReportMetric(1000*want, "analytic-ms")
		b.ReportMetric(100*math.Abs(got/want-1), "%error")
		b.ReportMetric(float64(n.Dropped), "dropped")
		b.ReportMetric(0, "ns/op")
	}
}
