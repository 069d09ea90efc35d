package api_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
	"github.com/loadstone-db/loadstone/ui"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv(keyring.KeyEnv)
	goleak.VerifyTestMain(pgtest.M{M: m})
}

// stored answers with what a store has of a run.
type stored struct{ *postgres.Store }

func (s stored) Detail(ctx context.Context, id string) (engine.RunDetail, error) {
	run, err := s.Run(ctx, id)
	if err != nil {
		return engine.RunDetail{}, err
	}
	rows, err := s.Results(ctx, id)
	if err != nil {
		return engine.RunDetail{}, err
	}
	return engine.RunDetail{Run: run, Summary: &engine.Summary{RunID: id, Status: run.Status,
		Validity: engine.VerdictValid, Figures: *rows[0].Figures}, Workers: rows[1:], Artifacts: []engine.Artifact{},
		Events: []engine.Event{}}, nil
}

// anHour makes a run of an hour with 100 million executions: noisy seconds with their distributions, of four workers.
func anHour(t testing.TB) stored {
	t.Helper()
	s, _ := postgrestest.Open(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const seconds = 3600
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	must(s.CreateRun(t.Context(), engine.Run{RunID: "hour", RunName: "an hour", WorkersExpected: 4,
		Scenario: engine.Scenario{Name: "an hour"}}))
	step := func(to engine.Status, phase engine.Phase) {
		_, err := s.Transition(t.Context(), store.Transition{RunID: "hour", To: to, Phase: &phase, StartTime: begin,
			WarmupEndTime: begin, MeasurementEndTime: begin.Add(seconds * time.Second),
			EndTime: begin.Add(seconds * time.Second)})
		must(err)
	}
	step(engine.StatusRunning, engine.PhaseMeasurement)
	r := rand.New(rand.NewPCG(1, 2))
	ms := func(x float64) *float64 { x *= 0.9 + 0.2*r.Float64(); return &x }
	for i := range seconds {
		at := engine.At(begin.Add(time.Duration(i+1) * time.Second))
		counts := make([]int64, 40)
		for k := range counts {
			counts[k] = int64(float64(27_000/(1+(k-12)*(k-12))) * r.Float64())
		}
		p := &engine.Point{Timestamp: at, ElapsedSeconds: float64(i+1) + r.Float64()/1000, Phase: engine.PhaseMeasurement,
			QPS: 27_000 + 900*r.Float64(), ReadsPerSec: *ms(20_000), WritesPerSec: *ms(7_000), P50LatencyMs: ms(0.41),
			P95LatencyMs: ms(1.2), P99LatencyMs: ms(2.4), AvgLatencyMs: ms(0.5), MaxLatencyMs: ms(30),
			TotalQueries: int64(i) * 27_777, ActiveConnections: 64, TargetConnections: 64,
			QPSByKind: map[engine.Kind]float64{engine.KindPointLookup: *ms(15_000), engine.KindRangeScan: *ms(5_000),
				engine.KindInsert: *ms(4_000), engine.KindUpdate: *ms(3_000)},
			Histogram:  &engine.HistogramData{Schema: 2, Offset: 60, Counts: counts, Sum: r.Int64N(1e12), Min: 1e5, Max: 3e7},
			CPUPercent: *ms(40), MemoryPercent: *ms(20), HostCPUPercent: *ms(50), HostMemoryPercent: *ms(40)}
		p.LatencySplit = &engine.SplitMs{RoundTrip: *ms(0.4), Decode: *ms(0.05), PoolWait: *ms(0.02)}
		tick := store.Tick{RunID: "hour", Point: p, TotalOps: p.TotalQueries}
		for w := range 4 {
			tick.Snapshots = append(tick.Snapshots, engine.WorkerSnapshot{WorkerID: fmt.Sprintf("worker-%d", w),
				WorkerGroupID: w, Tick: int64(i + 1), Timestamp: at, TickSeconds: 1, TickStarted: 7_000,
				Phase: engine.PhaseMeasurement})
		}
		if i%2 == 0 {
			tick.Logs = []engine.LogEntry{{Seq: int64(i + 1), Level: engine.LogInfo,
				Message: fmt.Sprintf("second %d has passed on node-%d", i, r.IntN(9999))}}
		}
		must(s.SaveTick(t.Context(), tick))
	}
	step(engine.StatusStopping, engine.PhaseMeasurement)
	step(engine.StatusCompleted, engine.PhaseNone)
	figures := func(n int64) *engine.Figures {
		return &engine.Figures{Operations: n, QPS: new(float64(n) / float64(seconds)), DurationSeconds: float64(seconds),
			LatencyMs: &engine.LatencyMs{Min: 0.1, Avg: 0.5, P50: 0.41, P90: 0.9, P95: 1.2, P99: 2.4, P999: 8, Max: 30},
			ByKind:    map[engine.Kind]*engine.KindFigures{engine.KindPointLookup: {Count: n, QPS: new(27_777.0)}},
			Accounting: engine.Accounting{Scheduled: n, Started: n, Succeeded: n, Recorded: n,
				Balanced: true}}
	}
	must(s.SaveResult(t.Context(), engine.RunResult{ResultID: "hour", RunID: "hour", Figures: figures(100_000_000)}))
	return stored{s}
}

// TestTheReportOfAnHourIsSmall makes the report of an hour with 100 million executions with the page as it is built.
// How long it takes is told by BenchmarkReportOfAnHour.
func TestTheReportOfAnHourIsSmall(t *testing.T) {
	t.Parallel()
	if _, err := fs.Stat(ui.Dist(), "report/report.js"); err != nil {
		t.Skip("the page is not built: make ui builds it")
	}
	s := anHour(t)
	begin := time.Now()
	r, err := api.NewReportMaker(s, s, ui.Dist(), "1.2.3").Report(t.Context(), "hour")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes in %s", len(r.HTML), time.Since(begin).Round(time.Millisecond))
	if len(r.HTML) >= 1_500_000 || len(r.HTML) < 600_000 {
		t.Errorf("the report has %d bytes", len(r.HTML))
	}
	if path := os.Getenv("LOADSTONE_REPORT_OUT"); path != "" {
		if err := os.WriteFile(path, r.HTML, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkReportOfAnHour makes the report of an hour with 100 million executions, of a store on Postgres.
func BenchmarkReportOfAnHour(b *testing.B) {
	s := anHour(b)
	m := api.NewReportMaker(s, s, ui.Dist(), "1.2.3")
	for b.Loop() {
		if _, err := m.Report(b.Context(), "hour"); err != nil {
			b.Fatal(err)
		}
	}
}
