package postgres_test

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

// workerPoints: each second of a run worker is kept once, however often it is saved.
func workerPoints(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	create(t, s, "r1")
	_, err := s.Transition(ctx, store.Transition{RunID: "r1", To: engine.StatusRunning, StartTime: noon})
	must(t, err)
	for _, n := range []int{1, 1, 2, 3, 2} {
		must(t, s.SaveTick(ctx, second(n)))
	}
	all, _, err := s.WorkerSeries(ctx, "r1", "", store.Window{})
	must(t, err)
	if len(all) != 6 {
		t.Fatalf("%d worker points, want 6", len(all))
	}
	one, _, err := s.WorkerSeries(ctx, "r1", "worker-1", store.Window{})
	must(t, err)
	if len(one) != 3 {
		t.Fatalf("%d points of one worker, want 3", len(one))
	}
	p := one[2]
	if p.WorkerID != "worker-1" || p.ElapsedSeconds != 3 || p.QPS != 50 || p.TotalQueries != 150 || p.ErrorCount != 3 ||
		p.ActiveConnections != 2 || p.TargetConnections != 3 || p.Phase != engine.PhaseMeasurement ||
		!p.Timestamp.Equal(noon.Add(3*time.Second)) {
		t.Errorf("worker point %+v", p)
	}
	if p.P95LatencyMs == nil || *p.P95LatencyMs < 0.5 || *p.P95LatencyMs > 1.1 {
		t.Errorf("P95 of executions of about 1 ms: %v", p.P95LatencyMs)
	}
}

// workerSeries reads run workers whole, in part, and in fewer points than they have seconds.
func workerSeries(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	create(t, s, "r1")
	_, err := s.Transition(ctx, store.Transition{RunID: "r1", To: engine.StatusRunning, StartTime: noon})
	must(t, err)
	const length = 100
	for n := 1; n <= length; n++ {
		must(t, s.SaveTick(ctx, second(n)))
	}
	one, step, err := s.WorkerSeries(ctx, "r1", "worker-1", store.Window{MaxPoints: 50})
	must(t, err)
	if step != 2 || len(one) != 50 || one[49].TotalQueries != 50*length || one[49].WorkerID != "worker-1" {
		t.Errorf("%d points of a run worker of %v s", len(one), step)
	}
	all, step, err := s.WorkerSeries(ctx, "r1", "", store.Window{MaxPoints: 50})
	must(t, err)
	if step != 4 || len(all) != 50 {
		t.Errorf("%d points of two run workers of %v s", len(all), step)
	}
	if all, _, err = s.WorkerSeries(ctx, "r1", "", store.Window{From: 99}); err != nil || len(all) != 4 {
		t.Errorf("%d points at the end, %v", len(all), err)
	}
	if none, _, err := s.WorkerSeries(ctx, "none", "", store.Window{MaxPoints: 10}); err != nil || len(none) != 0 {
		t.Errorf("run workers that are not there: %v, %v", none, err)
	}
}

func warehouse(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	create(t, s, "r1")
	epoch, err := s.TakeOver(ctx, "r1")
	must(t, err)
	want := []engine.WarehousePoint{}
	for i := range 3 {
		at := engine.At(noon.Add(time.Duration(5*i) * time.Second))
		want = append(want, engine.WarehousePoint{Timestamp: at, ElapsedSeconds: float64(5 * i),
			Warehouse: engine.Warehouse{
				Name:              `WH "x"`,
				State:             "STARTED",
				Type:              "STANDARD",
				Size:              "X-Small",
				Generation:        "2",
				FallbackWarehouse: []*string{new("F"), new(""), nil}[i],
				StartedClusters: new(
					1 + i,
				),
				MinClusterCount: new(1),
				MaxClusterCount: new(4),
				ScalingPolicy:   "STANDARD",
				Running:         8,
				Queued:          i,
				PolledAt:        at,
			}})
	}
	for _, i := range []int{2, 0, 1, 1} {
		p := want[i]
		p.Raw = []byte(`{"name": "WH"}`)
		must(t, s.SaveWarehouse(ctx, "r1", epoch, p))
	}
	got, err := s.Warehouse(ctx, "r1")
	must(t, err)
	same(t, "polls", got, want)
	part, resolution, err := s.WarehousePolls(ctx, "r1", store.Window{From: 4, Until: 9, MaxPoints: 3})
	must(t, err)
	same(t, "polls of a window", part, want[1:2])
	same(t, "their resolution", resolution, 5.0)
	warehouseChanges(t, s, want)
	last := want[2]
	few, resolution, err := s.WarehousePolls(ctx, "r1", store.Window{MaxPoints: 2})
	must(t, err)
	same(t, "every second poll", few, []engine.WarehousePoint{want[1], last})
	same(t, "its resolution", resolution, 10.0)
	wantError(t, s.SaveWarehouse(ctx, "r1", epoch-1, want[0]), store.ErrFenced)
	if none, err := s.Warehouse(ctx, "nobody"); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
	warehouseSlots(t, s, epoch)
}

// warehouseChanges continues polls at every one of which a cluster was started.
func warehouseChanges(t *testing.T, s *postgres.Store, polls []engine.WarehousePoint) {
	ctx := t.Context()
	create(t, s, "r2")
	epoch, err := s.TakeOver(ctx, "r2")
	must(t, err)
	for _, p := range polls {
		must(t, s.SaveWarehouse(ctx, "r2", epoch, p))
	}
	last := polls[len(polls)-1]
	want := append([]engine.WarehousePoint{}, polls...)
	for i := range 6 {
		p := last
		at := engine.At(last.Timestamp.Add(time.Duration(5*(i+1)) * time.Second))
		p.Timestamp, p.PolledAt, p.ElapsedSeconds, p.Running, p.Queued = at, at, last.ElapsedSeconds+float64(5*(i+1)), i, 2*i
		if i >= 3 {
			p.State = "SUSPENDED"
		}
		must(t, s.SaveWarehouse(ctx, "r2", epoch, p))
		if i == 3 || i == 5 { // another state, and the latest
			want = append(want, p)
		}
	}
	got, err := s.WarehouseChanges(ctx, "r2")
	must(t, err)
	same(t, "changes", got, want)
	if none, err := s.WarehouseChanges(ctx, "nobody"); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
}

// warehouseSlots: the polls of r1 at 0, 5 and 10 s, of which 0, 1 and 2 queries waited,
// in slots of five seconds. The run lasts 31 s, and so has gaps at its end.
func warehouseSlots(t *testing.T, s *postgres.Store, epoch int64) {
	ctx := t.Context()
	_, err := s.Transition(ctx, store.Transition{RunID: "r1", Epoch: epoch, StartTime: noon,
		EndTime: noon.Add(31 * time.Second)})
	must(t, err)
	slots, err := s.WarehouseSlots(ctx, "r1", store.Window{MaxPoints: 100})
	must(t, err)
	if len(slots) != 7 {
		t.Fatalf("%d slots, not 7: %+v", len(slots), slots)
	}
	for i, slot := range slots {
		at := engine.At(noon.Add(time.Duration(5*i) * time.Second))
		if !slot.Start.Equal(at.Time) || slot.ElapsedSeconds != float64(5*i) {
			t.Errorf("slot %d begins at %v, %v s", i, slot.Start, slot.ElapsedSeconds)
		}
		switch {
		case i > 3: // the last poll is older than ten seconds
			if slot.Running != nil || slot.Queued != nil || slot.StartedClusters != nil {
				t.Errorf("slot %d is no gap: %+v", i, slot)
			}
		case slot.Running == nil || slot.Queued == nil || slot.StartedClusters == nil:
			t.Errorf("slot %d is a gap", i)
		case *slot.Running != 8 || *slot.Queued != min(i, 2) || *slot.StartedClusters != min(i, 2)+1:
			t.Errorf("slot %d has %d running, %d queued, %d clusters", i, *slot.Running, *slot.Queued, *slot.StartedClusters)
		}
	}
	few, err := s.WarehouseSlots(ctx, "r1", store.Window{MaxPoints: 3})
	must(t, err)
	if len(few) != 3 || few[1].ElapsedSeconds != 15 || few[0].Queued == nil || *few[0].Queued != 2 {
		t.Errorf("of seven slots three are %+v", few)
	}
	part, err := s.WarehouseSlots(ctx, "r1", store.Window{From: 7, Until: 15, MaxPoints: 3})
	must(t, err)
	if len(part) != 3 || part[0].ElapsedSeconds != 5 || part[2].ElapsedSeconds != 15 {
		t.Errorf("the slots from 7 to 15 s are %+v", part)
	}
	if none, err := s.WarehouseSlots(ctx, "nobody", store.Window{MaxPoints: 3}); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
}
