package metricpush_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/metricpush"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink keeps what it is given.
type sink struct {
	mu     sync.Mutex
	points []metricpush.Point
	at     []time.Time
}

func (s *sink) Take(points []metricpush.Point) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range points {
		s.points, s.at = append(s.points, p), append(s.at, time.Now())
	}
}

// of are the samples of a metric of the measurement: seconds after base, value, and S for a marker.
func (s *sink) of(base time.Time, metric string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.points {
		if p.Series.Metric.Name != metric || p.Series.Labels.Get("phase") == "warmup" {
			continue
		}
		v := p.Value
		if p.Latency != nil {
			v = float64(p.Latency.Count)
		}
		text := fmt.Sprintf("%d:%g", (p.AtMs-base.UnixMilli())/1000, v)
		if p.Stale {
			text = fmt.Sprintf("%d:S", (p.AtMs-base.UnixMilli())/1000)
		}
		all = append(all, text)
	}
	return all
}

// second are operations of one kind that ended in a second, each of 1 ms.
func second(base time.Time, at int32, operations int64) rollup.Live {
	s := rollup.New(base)
	c := rollup.CellFor(s.Kinds, rollup.KindKey{Moment: rollup.Moment{Second: at}, Kind: "READ"})
	c.Operations, c.Rows = operations, 2*operations
	for range operations {
		c.Latency.Record(1e6)
	}
	return rollup.Live{RunID: "r-1", Epoch: 3, Seconds: s}
}

func begin(t *testing.T, f *metricpush.Pusher, base time.Time, epoch int64) {
	t.Helper()
	if _, err := f.BeginLive(t.Context(), engine.Run{RunID: "r-1", StartTime: engine.At(base)}, epoch); err != nil {
		t.Fatal(err)
	}
}

// TestASecondIsSentOnceItHasSettled: what comes late is counted in a later second, what did not happen is a flat one,
// and the end of a run is a marker.
func TestASecondIsSentOnceItHasSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, base := &sink{}, time.Now()
		f := metricpush.Start(s)
		defer f.Close()
		begin(t, f, base, 3)
		put := func(l rollup.Live) {
			t.Helper()
			if err := f.PutLive(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
		want := func(when, metric, text string) {
			t.Helper()
			synctest.Wait()
			if got := fmt.Sprint(s.of(base, metric)); got != text {
				t.Errorf("%s: %s is %s, want %s", when, metric, got, text)
			}
		}
		time.Sleep(time.Second)
		put(second(base, 0, 10))
		time.Sleep(1900 * time.Millisecond)
		put(second(base, 0, 1))
		want("before second 0 has settled", "loadstone_operations_total", "[]")
		time.Sleep(400 * time.Millisecond)
		want("then", "loadstone_operations_total", "[0:0 1:11]")
		put(second(base, 0, 100)) // late
		put(second(base, 3, 5))
		time.Sleep(3 * time.Second)
		for metric, times := range map[string]int{"loadstone_operations_total": 1, "loadstone_latency_seconds": 1} {
			want("after a gap", metric, fmt.Sprintf("[0:0 1:%d 2:%d 3:%d 4:%d]", 11*times, 111*times, 111*times, 116*times))
		}
		f.Ended("r-1")
		put(second(base, 4, 1))
		time.Sleep(4 * time.Second)
		want("at the end", "loadstone_operations_total", "[0:0 1:11 2:111 3:111 4:116 5:117 6:117 7:S]")
		if err := f.PutLive(t.Context(), second(base, 5, 1)); !errors.Is(err, store.ErrFenced) {
			t.Errorf("a run that has ended is written: %v", err)
		}
	})
}

// TestARunThatStandsStillHasAFlatCounter: as long as its run workers are heard of, it has a sample of each second.
func TestARunThatStandsStillHasAFlatCounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, base := &sink{}, time.Now()
		f := metricpush.Start(s)
		defer f.Close()
		begin(t, f, base, 3)
		put := func(l rollup.Live) {
			if err := f.PutLive(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		put(second(base, 0, 7))
		for range 3 {
			time.Sleep(time.Second)
			put(rollup.Live{RunID: "r-1", Epoch: 3, Seconds: rollup.New(base)})
		}
		time.Sleep(20 * time.Second) // of silence
		if got := fmt.Sprint(s.of(base, "loadstone_operations_total")); got != "[0:0 1:7 2:7 3:7 4:7]" {
			t.Error(got)
		}
	})
}

// TestWhoHasLostARunSendsNoMore: neither samples nor a marker come of who was fenced; the one who has it begins at 0.
func TestWhoHasLostARunSendsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, base := &sink{}, time.Now()
		f := metricpush.Start(s)
		begin(t, f, base, 3)
		if err := f.PutLive(t.Context(), second(base, 0, 7)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		f.Lost("r-1")
		f.Ended("r-1")
		time.Sleep(4 * time.Second)
		f.Close()
		if got := fmt.Sprint(s.of(base, "loadstone_operations_total")); got != "[0:0 1:7]" {
			t.Error(got)
		}
		next := &sink{}
		f = metricpush.Start(next)
		begin(t, f, base, 4)
		l := second(base, 6, 3)
		if err := f.PutLive(t.Context(), l); !errors.Is(err, store.ErrFenced) {
			t.Errorf("an old epoch is written: %v", err)
		}
		l.Epoch = 4
		if err := f.PutLive(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if got := fmt.Sprint(next.of(base, "loadstone_operations_total")); got != "[6:0 7:3]" {
			t.Error(got)
		}
		if next.points[0].StartMs != base.Add(6*time.Second).UnixMilli() {
			t.Errorf("its counters count from %d", next.points[0].StartMs)
		}
	})
}

// TestLoadsAreSentWithTheirSecond: gauges once it has settled, the later of two reports and the highest of a node;
// arrivals as counters; credits from poll to poll.
func TestLoadsAreSentWithTheirSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, base := &sink{}, time.Now()
		f := metricpush.Start(s)
		defer f.Close()
		begin(t, f, base, 3)
		for second := range 3 {
			time.Sleep(time.Second)
			l := rollup.Live{RunID: "r-1", Epoch: 3, Seconds: rollup.New(base),
				PerHour: func(w engine.Warehouse) (float64, bool) { return 3600 * float64(w.Queued), true },
				Warehouse: []engine.WarehousePoint{{Timestamp: engine.At(time.Now()),
					Warehouse: engine.Warehouse{Name: "W", Queued: second + 1}}}}
			for i, phase := range []engine.Phase{engine.PhaseMeasurement, engine.PhaseWarmup} {
				if i == 1 && second > 0 {
					continue
				}
				l.Seconds.Report(int32(second), &engine.WorkerSnapshot{WorkerID: "w1", Phase: phase, NodeID: "n1",
					Scheduled: 5, Dropped: 2, ActiveConnections: 10*second + 3 - i,
					Resources: engine.Resources{CPUPercent: 25 * float64(1+i)}}, nil)
			}
			var rate float64
			l.Seconds.Report(int32(second), &engine.WorkerSnapshot{WorkerID: "w2", Phase: engine.PhaseMeasurement,
				NodeID: "n2", ActiveConnections: 7, TargetQPS: &rate}, nil)
			if err := f.PutLive(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
		f.Ended("r-1")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for metric, want := range map[string]string{
			"loadstone_connections":                  "map[n1 w1:[1:3 2:13 3:23 4:S] n2 w2:[1:7 2:7 3:7 4:S]]",
			"loadstone_node_cpu_ratio":               "map[n1:[1:0.5 2:0.25 3:0.25 4:S] n2:[1:0 2:0 3:0 4:S]]",
			"loadstone_dropped_operations_total":     "map[n1 w1:[0:0 1:2 2:4 3:6 4:S] n2 w2:[0:0 1:0 2:0 3:0 4:S]]",
			"loadstone_target_operations_per_second": "map[n2 w2:[1:0 2:0 3:0 4:S]]",
			"loadstone_warehouse_credits_total":      "map[:[1:0 2:1 3:3 4:S]]",
		} {
			got := map[string][]string{}
			for _, node := range []string{"n1", "n2", ""} {
				of := &sink{}
				key := ""
				for _, p := range s.points {
					if p.Series.Labels.Get("node") == node && p.Series.Metric.Name == metric {
						of.points = append(of.points, p)
						key = strings.TrimSpace(node + " " + p.Series.Labels.Get("worker"))
					}
				}
				if len(of.points) > 0 {
					got[key] = of.of(base, metric)
				}
			}
			if fmt.Sprint(got) != want {
				t.Errorf("%s is %v\nwant %s", metric, got, want)
			}
		}
	})
}

// by are the samples of a metric by one of its labels.
func (s *sink) by(base time.Time, metric, label string) map[string][]string {
	all, of := map[string][]string{}, map[string]*sink{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.points {
		key := p.Series.Labels.Get(label)
		if of[key] == nil {
			of[key] = &sink{}
		}
		of[key].points = append(of[key].points, p)
	}
	for key, one := range of {
		if samples := one.of(base, metric); len(samples) > 0 {
			all[key] = samples
		}
	}
	return all
}

// TestWhoHasLeftIsNotShownAnyMore: the gauges of a run worker that reports no more, and of its node, end after 15 s,
// and begin again when it is back; those that go on, do. At the end of the run what is gone has no second marker.
func TestWhoHasLeftIsNotShownAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, base := &sink{}, time.Now()
		f := metricpush.Start(s)
		defer f.Close()
		begin(t, f, base, 3)
		reports := map[string]func(second int) bool{
			"stays":  func(int) bool { return true },
			"leaves": func(second int) bool { return second < 2 },
			"back":   func(second int) bool { return second < 1 || second >= 20 },
			"pauses": func(second int) bool { return second < 2 || second >= 16 },
		}
		for second := range 22 {
			time.Sleep(time.Second)
			l := rollup.Live{RunID: "r-1", Epoch: 3, Seconds: rollup.New(base)}
			for name, there := range reports {
				if there(second) {
					l.Seconds.Report(int32(second), &engine.WorkerSnapshot{WorkerID: name, Phase: engine.PhaseMeasurement,
						NodeID: "node of " + name, ActiveConnections: second}, nil)
				}
			}
			if second == 0 {
				l.Warehouse = []engine.WarehousePoint{{Timestamp: engine.At(base.Add(time.Second)),
					Warehouse: engine.Warehouse{Name: "W", Running: 4, State: "STARTED"}}}
			}
			if err := f.PutLive(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
		f.Ended("r-1")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for _, label := range []string{"worker", "node"} {
			metric, of := "loadstone_connections", ""
			if label == "node" {
				metric, of = "loadstone_node_memory_bytes", "node of "
			}
			got := s.by(base, metric, label)
			short := func(name string) string {
				all := got[of+name]
				var markers, times []string
				for _, one := range all {
					at, v, _ := strings.Cut(one, ":")
					if times = append(times, at); v == "S" {
						markers = append(markers, at)
					}
				}
				return fmt.Sprint(len(all), " ", markers, " ", times[len(times)-1])
			}
			for name, want := range map[string]string{"stays": "23 [23] 23", "leaves": "3 [17] 17", "back": "5 [16 23] 23",
				"pauses": "9 [23] 23"} {
				if short(name) != want {
					t.Errorf("%s of %s: %s, want %s: %v", metric, name, short(name), want, got[of+name])
				}
			}
		}
		for _, metric := range []string{"loadstone_warehouse_running_queries", "loadstone_warehouse_state"} {
			if got := fmt.Sprint(s.by(base, metric, "warehouse")["W"]); got != "[1:4 16:S]" && got != "[1:1 16:S]" {
				t.Errorf("%s is %s", metric, got)
			}
		}
		if got := s.by(base, "loadstone_warehouse_started_clusters", "warehouse"); len(got) > 0 {
			t.Errorf("an edition without clusters has %v of them", got)
		}
	})
}

// TestAWarehouseThatChanges: what it took between two polls is its former size's, at the former price; a price that is
// not known is none; and what it was is not shown beside what it is.
func TestAWarehouseThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, base := &sink{}, time.Now()
		f := metricpush.Start(s)
		defer f.Close()
		begin(t, f, base, 3)
		for i, size := range []string{"free", "S", "S", "M", "S", "free", "S", "M"} {
			time.Sleep(time.Second)
			l := rollup.Live{RunID: "r-1", Epoch: 3, Seconds: rollup.New(base),
				PerHour: func(w engine.Warehouse) (float64, bool) {
					return map[string]float64{"S": 3600, "M": 7200}[w.Size], w.Size != "free"
				},
				Warehouse: []engine.WarehousePoint{{Timestamp: engine.At(time.Now()),
					Warehouse: engine.Warehouse{Name: "W", Size: size, Running: i, State: "STARTED"}}}}
			if err := f.PutLive(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
		f.Ended("r-1")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for metric, want := range map[string]string{
			"loadstone_warehouse_credits_total": "map[M:[4:0 5:2 8:2 8:S] S:[2:0 3:1 4:2 5:2 6:3 7:3 8:4 8:S] " +
				"free:[6:0 7:0 7:S]]",
			"loadstone_warehouse_running_queries": "map[M:[4:3 5:S 8:7 8:S] S:[2:1 3:2 4:S 5:4 6:S 7:6 8:S] " +
				"free:[1:0 2:S 6:5 7:S]]",
			"loadstone_warehouse_state": "map[M:[4:1 5:S 8:1 8:S] S:[2:1 3:1 4:S 5:1 6:S 7:1 8:S] free:[1:1 2:S 6:1 7:S]]",
		} {
			if got := fmt.Sprint(s.by(base, metric, "warehouse_size")); got != want {
				t.Errorf("%s is\n%s, want\n%s", metric, got, want)
			}
		}
	})
}
