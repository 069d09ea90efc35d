package live

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func recorded(values ...int64) *engine.PackedHistogram {
	if len(values) == 0 {
		return nil
	}
	h := histogram.New()
	for _, v := range values {
		h.Record(v)
	}
	return histogram.Pack(h.Data())
}

func drawValues(t *rapid.T, label string) []int64 {
	return rapid.SliceOfN(rapid.Int64Range(1, 10_000_000_000), 0, 40).Draw(t, label)
}

func drawSnapshots(t *rapid.T) ([]engine.WorkerSnapshot, []Worker) {
	var all []engine.WorkerSnapshot
	var workers []Worker
	for w := range rapid.IntRange(1, 5).Draw(t, "workers") {
		id := fmt.Sprintf("worker-%d", w)
		status := rapid.SampledFrom([]engine.WorkerStatus{engine.WorkerRunning, engine.WorkerDraining, engine.WorkerCompleted,
			engine.WorkerDead}).Draw(t, "status")
		health := rapid.SampledFrom([]engine.Health{engine.HealthHealthy, engine.HealthStale, engine.HealthDead}).Draw(t,
			"health")
		workers = append(workers, Worker{WorkerID: id, WorkerGroupID: w, NodeID: fmt.Sprintf("node-%d", w%2), Status: status,
			Health: health})
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
				TickLatency: recorded(values...), PhaseLatency: recorded(phase...)}
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
	for a.waiting() > 0 {
		if s := a.Tick(engine.PhaseMeasurement, workers); a.hasShown {
			return s
		}
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

func TestMergedQuantilesAreThoseOfAllExecutions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snapshots, workers := drawSnapshots(t)
		all := histogram.New()
		for i := range workers {
			workers[i].Status, workers[i].Health = engine.WorkerRunning, engine.HealthHealthy
		}
		for _, s := range snapshots {
			if s.TickLatency == nil && s.TickStarted > 0 {
				t.Skip("approximated")
			}
			merge(all, histogram.Unpack(s.TickLatency))
		}
		got := second(snapshots, workers).Payload
		if want := latency(all); !reflect.DeepEqual(got.Latency, want) {
			t.Fatalf("got %+v, want %+v", got.Latency, want)
		}
		if got.LatencyHistogram != nil && got.LatencyHistogram.Schema != HeatmapSchema {
			t.Fatalf("heat map at schema %d", got.LatencyHistogram.Schema)
		}
	})
}

// An adder is histogram.Histogram, faster: also for coarse, empty and broken parts.
func TestTheAdderAgreesWithTheHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, want := newAdder(), histogram.New()
		for range rapid.IntRange(1, 3).Draw(t, "rounds") {
			a.reset()
			want.Reset()
			for range rapid.IntRange(0, 5).Draw(t, "parts") {
				d := histogram.Unpack(recorded(drawValues(t, "values")...))
				if d != nil {
					switch rapid.IntRange(0, 6).Draw(t, "shape") {
					case 0:
						h := histogram.New()
						merge(h, d)
						d = h.Downscale(rapid.IntRange(0, 5).Draw(t, "schema"))
					case 1:
						d.Counts[0] = -d.Counts[0] - 1
					case 2:
						d.Offset = rapid.IntRange(-10, buckets+10).Draw(t, "offset")
					case 3:
						clear(d.Counts)
					}
				}
				if got, ok := a.add(d), merge(want, d); got != ok {
					t.Fatalf("accepted: %v, want %v", got, ok)
				}
			}
			if got := a.total(); !reflect.DeepEqual(got.Data(), want.Data()) || latencyText(got) != latencyText(want) {
				t.Fatalf("%+v, want %+v", got.Data(), want.Data())
			}
		}
	})
}

func latencyText(h *histogram.Histogram) string {
	text, _ := json.Marshal(latency(h))
	return string(text)
}

func TestAWorkerWithoutHistogramMakesItAnApproximation(t *testing.T) {
	base := engine.WorkerSnapshot{Tick: 1, TickSeconds: 1, Phase: engine.PhaseMeasurement, TickStarted: 3, Started: 3}
	a, b, c := base, base, base
	a.WorkerID, b.WorkerID, c.WorkerID = "worker-0", "worker-1", "worker-2"
	a.TickLatency, a.PhaseLatency = recorded(1e6, 1e6, 1e6), recorded(1e6, 1e6, 1e6)
	b.TickLatency, b.PhaseLatency = recorded(3e6, 3e6, 9e6), recorded(3e6, 3e6, 9e6)
	workers := []Worker{{WorkerID: "worker-0"}, {WorkerID: "worker-1", WorkerGroupID: 1},
		{WorkerID: "worker-2", WorkerGroupID: 2}}
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
	var p engine.LiveState
	second(nil, []Worker{{WorkerID: "worker-0", Status: engine.WorkerStarting}}).Fill(&p)
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"ops", "operations", "latency", "latency_total", "latency_by_kind", "ops_by_kind",
		"errors", "connections", "workers", "custom_metrics"} {
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
	a.Add(&engine.WorkerSnapshot{WorkerID: "worker-0", Tick: 1, Phase: engine.PhaseMeasurement, TickSeconds: 0.5,
		TickStarted: 50, Started: 50})
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
	a.Add(&engine.WorkerSnapshot{WorkerID: "worker-0", Tick: 1, Phase: engine.PhaseWarmup, TickSeconds: 1, TickStarted: 50,
		Started: 50})
	workers := []Worker{{WorkerID: "worker-0", Status: engine.WorkerRunning}}
	s := a.Tick(engine.PhaseWarmup, workers)
	if s.RollupOps != 0 || s.Payload.Ops.Total != 50 {
		t.Fatalf("warm-up: rollup %d, live %d", s.RollupOps, s.Payload.Ops.Total)
	}
	if s := a.Tick(engine.PhaseMeasurement, workers); s.Payload.Ops.Total != 0 {
		t.Fatalf("the warm-up's count %d shows in the measurement", s.Payload.Ops.Total)
	}
}

// TestGuardedFiguresAreNew: limits are judged by what is new and of the measurement;
// a second that is shown again proves nothing.
func TestGuardedFiguresAreNew(t *testing.T) {
	a := New()
	workers := []Worker{{WorkerID: "worker-0", NodeID: "n", Status: engine.WorkerRunning, Health: engine.HealthHealthy}}
	snapshot := func(tick int64, phase engine.Phase, failed int64, values ...int64) {
		a.Add(&engine.WorkerSnapshot{WorkerID: "worker-0", NodeID: "n", Tick: tick, Timestamp: engine.At(epoch), Phase: phase,
			TickSeconds: 1,
			TickStarted: int64(len(values)), TickErrors: failed, TickLatency: recorded(values...)})
	}
	sample := func() WorkerSample { return a.Tick(engine.PhaseMeasurement, workers).Workers[0] }

	snapshot(1, engine.PhaseWarmup, 1, 1e9)
	if s := sample(); s.P95Ms != nil || s.ErrorPct != nil {
		t.Fatalf("the warm-up is judged: %+v", s)
	}
	snapshot(2, engine.PhaseMeasurement, 1, 1e6, 1e6, 1e6, 1e9)
	if s := sample(); s.P95Ms == nil || *s.P99Ms < 900 || *s.ErrorPct != 25 {
		t.Fatalf("%+v", s)
	}
	if s := sample(); s.P95Ms != nil || s.P99Ms != nil || s.ErrorPct != nil {
		t.Fatalf("an old second is judged again: %+v", s)
	}
	snapshot(3, engine.PhaseMeasurement, 0)
	if s := sample(); s.P95Ms != nil || s.ErrorPct != nil {
		t.Fatalf("a second without executions is judged: %+v", s)
	}
}
