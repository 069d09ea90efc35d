package series_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/loadstone-db/loadstone/engine"
	analyticspromql "github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/results/segment"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// executions are two kinds over a minute, of which nothing ends from the 20th to the 30th second.
func executions() (b *rollup.Batch, elapsed []float64) {
	b = &rollup.Batch{Kind: record.Texts{Values: []string{"POINT_LOOKUP", "INSERT"}},
		Statement: record.Texts{Values: []string{"a"}}, Worker: record.Texts{Values: []string{"w1"}},
		Class: record.Texts{Values: []string{"TIMEOUT"}}, Code: record.Texts{Values: []string{"57014"}}}
	for i := range 6000 {
		due := noon.Add(time.Duration(i) * 10 * time.Millisecond)
		if at := due.Sub(noon); at >= 19*time.Second && at < 30*time.Second {
			continue
		}
		ns := int64(1e5 * math.Pow(1.0007, float64(i*7919%6000)))
		b.DueNs, b.ElapsedNs = append(b.DueNs, due.UnixNano()), append(b.ElapsedNs, ns)
		b.Rows, b.Position = append(b.Rows, 1), append(b.Position, 0)
		b.Warmup, b.Success = append(b.Warmup, false), append(b.Success, i%100 != 0)
		b.Kind.Index, b.Statement.Index = append(b.Kind.Index, int32(i%2)), append(b.Statement.Index, 0)
		b.Worker.Index = append(b.Worker.Index, 0)
		errIndex := int32(-1)
		if i%100 == 0 {
			errIndex = 0
		}
		b.Class.Index, b.Code.Index = append(b.Class.Index, errIndex), append(b.Code.Index, errIndex)
		if i%2 == 0 {
			elapsed = append(elapsed, float64(ns)/1e9)
		}
	}
	slices.Sort(elapsed)
	return b, elapsed
}

func set(t *testing.T, b *rollup.Batch) *series.Set {
	t.Helper()
	r := &rollup.Run{Run: engine.Run{RunID: "r-1", StartTime: engine.At(noon)}, Seconds: rollup.New(noon)}
	r.Seconds.Add(b)
	for _, report := range reports() {
		r.Seconds.Report(rollup.SecondAt(noon, report.Timestamp.Time, report.TickSeconds), &report, nil)
	}
	r.PerHour = func(w engine.Warehouse) (float64, bool) { return 720 * float64(1+w.Queued), true }
	for i := range 3 {
		r.Warehouse = append(r.Warehouse, engine.WarehousePoint{Timestamp: engine.At(noon.Add(time.Duration(i) * 5e9)),
			ElapsedSeconds: float64(5 * i), Warehouse: engine.Warehouse{Name: "W", State: "STARTED", Queued: 2 * i}})
	}
	content, _, err := segment.Bytes(r)
	if err != nil {
		t.Fatal(err)
	}
	f, err := segment.Open(memory{bytes.NewReader(content)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := series.Read(f, labels.FromStrings("run", "r-1"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reports are those of two run workers on one node and of a third on another, each second of ten.
func reports() (all []engine.WorkerSnapshot) {
	rate := 100.0
	for i := range 10 {
		for worker := range 3 {
			phase := engine.PhaseMeasurement
			if i < 4 {
				phase = engine.PhaseWarmup
			}
			w := engine.WorkerSnapshot{WorkerID: fmt.Sprint("w", worker), NodeID: "n1", Phase: phase, TickSeconds: 1,
				Timestamp: engine.At(noon.Add(time.Duration(i+1) * time.Second)), Scheduled: 100, Dropped: int64(worker),
				ActiveConnections: i + worker, TargetConnections: 12, Waiting: rollup.Unknown, TargetQPS: &rate,
				Resources: engine.Resources{CPUPercent: 25 * float64(worker), MemoryPercent: 50, MemoryBytes: int64(1000 * i)}}
			if worker == 2 {
				w.NodeID, w.Waiting, w.TargetQPS = "n2", 3, nil
			}
			all = append(all, w)
		}
	}
	return all
}

// TestLoadsAndCreditsSayWhatWasReported: by hand.
func TestLoadsAndCreditsSayWhatWasReported(t *testing.T) {
	b, _ := executions()
	s := set(t, b)
	at, end := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }, noon.Add(60*time.Second)
	for _, c := range []struct {
		query string
		at    time.Time
		want  float64
	}{
		{`loadstone_connections{worker="w1",node="n1"}`, at(7), 7},
		{`sum(loadstone_connections{run="r-1"})`, at(10), 9 + 10 + 11},
		{`sum(loadstone_target_connections)`, at(4), 36},
		{`sum(loadstone_target_operations_per_second)`, at(4), 200},
		{`sum(loadstone_waiting_operations)`, at(4), 3},
		{`sum by (node) (loadstone_dropped_operations_total{node="n1"})`, at(10), 10},
		{`loadstone_dropped_operations_total{worker="w2",phase="measurement"}`, end, 12},
		{`sum(rate(loadstone_scheduled_operations_total{phase="measurement"}[4s]))`, at(9), 300},
		{`sum(loadstone_retries_total)`, end, 0},
		{`loadstone_node_cpu_ratio{node="n1"}`, at(5), 0.25},
		{`loadstone_node_cpu_ratio{node="n2"}`, at(5), 0.5},
		{`sum(loadstone_node_memory_bytes)`, at(5), 8000},
		{`count(loadstone_node_host_cpu_ratio)`, at(5), 2},
		{`count({__name__=~"loadstone_node_.+"})`, at(5), 10},
		{`loadstone_worker_operations_total{node="n1"}`, end, float64(len(b.DueNs))},
		// 0.2 credits a second until 5 s, 0.6 until 10 s, then 1.
		{`loadstone_warehouse_credits_total{warehouse="W"}`, at(1), 0},
		{`loadstone_warehouse_credits_total`, at(5), 1},
		{`loadstone_warehouse_credits_total`, at(10), 4},
		{`loadstone_warehouse_credits_total`, end, 54},
	} {
		v := ask(t, s, c.query, c.at)
		if len(v) != 1 || math.Abs(v[0].F-c.want) > 1e-9*c.want {
			t.Errorf("%s is %v, not %v", c.query, v, c.want)
		}
	}
	for _, query := range []string{`loadstone_waiting_operations{worker="w0"}`,
		`loadstone_target_operations_per_second{worker="w2"}`, `loadstone_connections{phase="warmup"}`} {
		if v := ask(t, s, query, at(5)); len(v) > 0 {
			t.Errorf("%s is %v, and nobody knows it", query, v)
		}
	}
	if v := ask(t, s, `loadstone_connections`, at(12)); len(v) > 0 {
		t.Errorf("after the last report there is %v", v)
	}
}

func ask(t *testing.T, s *series.Set, query string, at time.Time) promql.Vector {
	t.Helper()
	e := analyticspromql.DefaultOptions().Engine(5 * time.Minute)
	q, err := e.NewInstantQuery(context.Background(), series.Sets{s}, nil, query, at)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	r := q.Exec(context.Background())
	if r.Err != nil {
		t.Fatalf("%s: %v", query, r.Err)
	}
	v, err := r.Vector()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(v)
}

// TestSeriesSayWhatTheRunWas asks for figures that are known from the executions themselves.
func TestSeriesSayWhatTheRunWas(t *testing.T) {
	b, elapsed := executions()
	s := set(t, b)
	end := noon.Add(60 * time.Second)
	n := float64(len(b.DueNs))
	for _, c := range []struct {
		query string
		at    time.Time
		want  float64
	}{
		{`sum(loadstone_operations_total{run="r-1"})`, end, n},
		{`sum(loadstone_failed_operations_total)`, end, 49},
		{`sum(loadstone_errors_total{error_class="TIMEOUT",error_code="57014"})`, end, 49},
		{`loadstone_operations_total{kind="INSERT"}`, noon, 0},
		{`sum(loadstone_rows_total)`, end, n},
		{`sum(loadstone_statement_operations_total{statement="a"})`, end, n},
		{`sum(loadstone_worker_operations_total{worker="w1",phase="measurement"})`, end, n},
		{`sum(rate(loadstone_operations_total[5s]))`, noon.Add(28 * time.Second), 0},
		{`sum(histogram_count(loadstone_latency_seconds))`, end, n},
		{`loadstone_warehouse_queued_queries{warehouse="W"}`, noon.Add(11 * time.Second), 4},
		{`loadstone_warehouse_state{state="STARTED"}`, noon.Add(11 * time.Second), 1},
	} {
		v := ask(t, s, c.query, c.at)
		if len(v) != 1 || math.Abs(v[0].F-c.want) > 1e-9*c.want {
			t.Errorf("%s is %v, not %v", c.query, v, c.want)
		}
	}
	rate := ask(t, s, `sum(rate(loadstone_operations_total[10s]))`, noon.Add(50*time.Second))
	if len(rate) != 1 || math.Abs(rate[0].F-100) > 2 {
		t.Errorf("the rate is %v", rate)
	}
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 0.999} {
		exact := elapsed[int(math.Ceil(q*float64(len(elapsed))))-1]
		v := ask(t, s, fmt.Sprintf(`histogram_quantile(%g, loadstone_latency_seconds{kind="POINT_LOOKUP"})`, q), end)
		if len(v) != 1 || math.Abs(v[0].F/exact-1) > 0.0109 {
			t.Errorf("the quantile %g is %v, not %v", q, v, exact)
		}
	}
	v := ask(t, s, `histogram_avg(loadstone_latency_seconds{kind="POINT_LOOKUP"})`, end)
	sum := 0.0
	for _, e := range elapsed {
		sum += e
	}
	if len(v) != 1 || math.Abs(v[0].F/(sum/float64(len(elapsed)))-1) > 1e-9 {
		t.Errorf("the mean is %v, not %v", v, sum/float64(len(elapsed)))
	}
	if v := ask(t, s, `{run="r-1"}`, noon.Add(3*time.Minute)); len(v) > 0 {
		t.Errorf("after the run there is still %v", v)
	}
	if v := ask(t, s, `loadstone_operations_total`, noon.Add(-time.Second)); len(v) > 0 {
		t.Errorf("before the run there is %v", v)
	}
}

// TestWindowsAddUp: what happened in the parts of a run is what happened in all of it, wherever it is divided.
func TestWindowsAddUp(t *testing.T) {
	b, _ := executions()
	s := set(t, b)
	whole := ask(t, s, `sum(histogram_count(loadstone_latency_seconds))`, noon.Add(60*time.Second))[0].F
	for cut := 5; cut < 60; cut += 7 {
		at := noon.Add(time.Duration(cut) * time.Second)
		before := ask(t, s, `sum(histogram_count(loadstone_latency_seconds))`, at)[0].F
		after := ask(t, s, fmt.Sprintf(
			`sum(histogram_count(loadstone_latency_seconds @ %d - loadstone_latency_seconds @ %d))`,
			noon.Add(60*time.Second).Unix(), at.Unix()), at)[0].F
		if before+after != whole {
			t.Errorf("cut at %d s: %v and %v are not %v", cut, before, after, whole)
		}
	}
}
