package aggregate

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// histogram records values (ns) the slow and obvious way.
func histogram(values ...int64) *engine.HistogramData {
	if len(values) == 0 {
		return nil
	}
	const schema = 6
	h := &engine.HistogramData{Schema: schema, Min: math.MaxInt64}
	buckets := map[int]int64{}
	lo, hi := math.MaxInt, math.MinInt
	for _, v := range values {
		b := int(math.Ceil(math.Log2(float64(v)) * 64))
		buckets[b]++
		lo, hi = min(lo, b), max(hi, b)
		h.Sum += v
		h.Min, h.Max = min(h.Min, v), max(h.Max, v)
	}
	h.Offset, h.Counts = lo, make([]int64, hi-lo+1)
	for b, n := range buckets {
		h.Counts[b-lo] = n
	}
	return h
}

func drawValues(t *rapid.T, label string) []int64 {
	return rapid.SliceOfN(rapid.Int64Range(1, 10_000_000_000), 0, 40).Draw(t, label)
}

func drawSnapshots(t *rapid.T) ([]engine.WorkerSnapshot, []Worker) {
	var all []engine.WorkerSnapshot
	var workers []Worker
	for w := range rapid.IntRange(1, 5).Draw(t, "workers") {
		id := fmt.Sprintf("worker-%d", w)
		status := rapid.SampledFrom([]engine.WorkerStatus{engine.WorkerRunning, engine.WorkerDraining, engine.WorkerCompleted, engine.WorkerDead}).Draw(t, "status")
		health := rapid.SampledFrom([]engine.Health{engine.HealthHealthy, engine.HealthStale, engine.HealthDead}).Draw(t, "health")
		workers = append(workers, Worker{WorkerID: id, WorkerGroupID: w, NodeID: fmt.Sprintf("node-%d", w%2), Status: status, Health: health})
		var total int64
		var phase []int64
		for tick := range rapid.IntRange(0, 4).Draw(t, "ticks") {
			values := drawValues(t, "values")
			phase = append(phase, values...)
			total += int64(len(values))
			failed := min(total, int64(tick))
			s := engine.WorkerSnapshot{WorkerID: id, WorkerGroupID: w, NodeID: workers[w].NodeID, Tick: int64(tick + 1),
				Timestamp: engine.At(epoch.Add(time.Duration(tick) * time.Second)), Phase: engine.PhaseMeasurement, TickSeconds: 1,
				Started: total, Succeeded: total - failed, Failed: failed, TickStarted: int64(len(values)),
				ByKind:     map[engine.Kind]engine.KindCounts{engine.KindPointLookup: {Count: total}},
				TickByKind: map[engine.Kind]engine.KindCounts{engine.KindPointLookup: {Count: int64(len(values))}},
				Resources:  engine.Resources{CPUPercent: float64(tick)}, ActiveConnections: 2, TargetConnections: 3,
				TickLatency: histogram(values...), PhaseLatency: histogram(phase...)}
			if rapid.IntRange(0, 9).Draw(t, "lose histogram") == 0 {
				s.TickLatency = nil
			}
			all = append(all, s)
		}
	}
	return all, workers
}

func second(snapshots []engine.WorkerSnapshot, workers []Worker) *Second {
	a := New()
	for i := range snapshots {
		s := snapshots[i]
		a.Add(&s)
	}
	return a.Tick(engine.PhaseMeasurement, workers)
}

func TestOrderAndRepetitionDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snapshots, workers := drawSnapshots(t)
		want := second(snapshots, workers)
		shuffled := rapid.Permutation(snapshots).Draw(t, "order")
		for _, s := range snapshots {
			if rapid.Bool().Draw(t, "repeat") {
				shuffled = append(shuffled, s)
			}
		}
		got := second(shuffled, rapid.Permutation(workers).Draw(t, "worker order"))
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("the order of snapshots matters:\n%+v\n%+v", want, got)
		}
	})
}

func TestALateSnapshotChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snapshots, workers := drawSnapshots(t)
		a := New()
		for i := range snapshots {
			s := snapshots[i]
			a.Add(&s)
		}
		a.Tick(engine.PhaseMeasurement, workers)
		for i := range snapshots {
			s := snapshots[i]
			if a.Add(&s) {
				t.Fatalf("tick %d of %s was taken twice", s.Tick, s.WorkerID)
			}
		}
	})
}

func TestDeadWorkersDoNotCountLiveAndStaleOnesDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snapshots, workers := drawSnapshots(t)
		got := second(snapshots, workers).Payload
		var total int64
		var living int
		for _, w := range workers {
			if w.Status == engine.WorkerDead || w.Health == engine.HealthDead {
				continue
			}
			living++
			for _, s := range slices.Backward(snapshots) {
				if s.WorkerID == w.WorkerID {
					total += s.Started
					break
				}
			}
		}
		if got.Ops.Total != total {
			t.Fatalf("ops.total is %d, want %d", got.Ops.Total, total)
		}
		if (got.LatencyAggregationMethod == nil) != (living <= 1) {
			t.Fatalf("method %v with %d living workers", got.LatencyAggregationMethod, living)
		}
		if len(got.Workers) != len(workers) {
			t.Fatalf("%d rows for %d workers", len(got.Workers), len(workers))
		}
	})
}

func TestMergedQuantilesAreTrueOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d distribution
		var all []int64
		for range rapid.IntRange(1, 5).Draw(t, "parts") {
			values := drawValues(t, "values")
			all = append(all, values...)
			d.add(histogram(values...))
		}
		if len(all) == 0 {
			if d.latency().P50 != nil {
				t.Fatal("an empty distribution has a median")
			}
			return
		}
		slices.Sort(all)
		qs := []float64{0.5, 0.95, 0.99, 1}
		got := make([]float64, len(qs))
		d.quantiles(qs, got)
		for i, q := range qs {
			// The value of rank ⌈q·n⌉, within the error of a bucket of schema 6.
			rank := max(1, int(math.Ceil(q*float64(len(all)))))
			want := float64(all[rank-1])
			if got[i] < want/1.012 || got[i] > want*1.012 {
				t.Fatalf("quantile %v is %v, want about %v of %v", q, got[i], want, all)
			}
		}
		coarse := d.data(HeatmapSchema)
		var n int64
		for _, c := range coarse.Counts {
			n += c
		}
		if n != int64(len(all)) || coarse.Schema != HeatmapSchema || coarse.Counts[0] == 0 || coarse.Counts[len(coarse.Counts)-1] == 0 {
			t.Fatalf("downscaled %d values to %+v", len(all), coarse)
		}
	})
}

func TestCoarserSnapshotsMeetAtTheirSchema(t *testing.T) {
	var fine distribution
	fine.add(histogram(1000, 2000, 4000, 1_000_000))
	var mixed distribution
	mixed.add(histogram(3000, 5000))
	mixed.add(fine.data(2))
	if mixed.schema != 2 || mixed.total != 6 || mixed.max != 1_000_000 || mixed.min != 1000 {
		t.Fatalf("%+v", mixed)
	}
}

func TestAWorkerWithoutHistogramMakesItAnApproximation(t *testing.T) {
	base := engine.WorkerSnapshot{Tick: 1, TickSeconds: 1, Phase: engine.PhaseMeasurement, TickStarted: 3, Started: 3}
	a, b, c := base, base, base
	a.WorkerID, b.WorkerID, c.WorkerID = "worker-0", "worker-1", "worker-2"
	a.TickLatency, a.PhaseLatency = histogram(1e6, 1e6, 1e6), histogram(1e6, 1e6, 1e6)
	b.TickLatency, b.PhaseLatency = histogram(3e6, 3e6, 9e6), histogram(3e6, 3e6, 9e6)
	workers := []Worker{{WorkerID: "worker-0"}, {WorkerID: "worker-1", WorkerGroupID: 1}, {WorkerID: "worker-2", WorkerGroupID: 2}}
	got := second([]engine.WorkerSnapshot{a, b, c}, workers)
	if got.Payload.LatencyAggregationMethod == nil || *got.Payload.LatencyAggregationMethod != MethodSlowest {
		t.Fatalf("method %v", got.Payload.LatencyAggregationMethod)
	}
	if p50 := *got.Payload.Latency.P50; p50 < 1.9 || p50 > 2.1 {
		t.Fatalf("P50 is %v, want the mean of 1 and 3", p50)
	}
	if p99 := *got.Payload.Latency.P99; p99 != *got.SlowestP99Ms || p99 < 8.8 {
		t.Fatalf("P99 is %v, want the slowest worker's", p99)
	}
}

func TestEveryFieldIsPresentWithoutAnySnapshot(t *testing.T) {
	var p engine.Payload
	second(nil, []Worker{{WorkerID: "worker-0", Status: engine.WorkerStarting}}).Fill(&p)
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"ops", "operations", "latency", "latency_total", "latency_by_kind", "ops_by_kind", "errors", "connections", "workers", "custom_metrics"} {
		if doc[path] == nil {
			t.Errorf("%s is null", path)
		}
	}
	errs := doc["errors"].(map[string]any)
	if errs["by_class"] == nil || errs["recent"] == nil {
		t.Errorf("errors: %v", errs)
	}
}

func TestARepeatedSecondIsShownUntilTheWorkerEnds(t *testing.T) {
	a := New()
	a.Add(&engine.WorkerSnapshot{WorkerID: "worker-0", Tick: 1, Phase: engine.PhaseMeasurement, TickSeconds: 0.5, TickStarted: 50, Started: 50})
	workers := []Worker{{WorkerID: "worker-0", Status: engine.WorkerRunning}}
	for range 2 {
		if s := a.Tick(engine.PhaseMeasurement, workers); s.Payload.Ops.CurrentPerSec != 100 || s.Payload.Ops.Total != 50 {
			t.Fatalf("%+v", s.Payload.Ops)
		}
	}
	workers[0].Status = engine.WorkerCompleted
	if s := a.Tick(engine.PhaseMeasurement, workers); s.Payload.Ops.CurrentPerSec != 0 || s.Payload.Ops.Total != 50 {
		t.Fatalf("after its end: %+v", s.Payload.Ops)
	}
}

func TestRollupsCoverTheMeasurementOnly(t *testing.T) {
	a := New()
	a.Add(&engine.WorkerSnapshot{WorkerID: "worker-0", Tick: 1, Phase: engine.PhaseWarmup, TickSeconds: 1, TickStarted: 50, Started: 50})
	workers := []Worker{{WorkerID: "worker-0", Status: engine.WorkerRunning}}
	s := a.Tick(engine.PhaseWarmup, workers)
	if s.RollupOps != 0 || s.Payload.Ops.Total != 50 {
		t.Fatalf("warm-up: rollup %d, live %d", s.RollupOps, s.Payload.Ops.Total)
	}
	if s := a.Tick(engine.PhaseMeasurement, workers); s.Payload.Ops.Total != 0 {
		t.Fatalf("the warm-up's count %d shows in the measurement", s.Payload.Ops.Total)
	}
}
