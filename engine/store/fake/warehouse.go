package fake

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// slotSeconds is how often a warehouse is polled, and the length of a slot.
const slotSeconds = 5.0

// SaveWarehouse implements store.Runs.
func (s *Store) SaveWarehouse(ctx context.Context, runID string, epoch int64, p engine.WarehousePoint) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, err := s.fenced(runID, epoch)
	if err != nil {
		return err
	}
	for _, text := range []*string{&p.Name, &p.State, &p.Type, &p.Size, &p.ScalingPolicy, &p.Generation,
		&p.FallbackWarehouse} {
		*text = store.CleanText(*text)
	}
	p.PolledAt, p.Raw, p.Error = p.Timestamp, nil, ""
	if _, there := r.warehouse[p.Timestamp.UnixMicro()]; !there {
		r.warehouse[p.Timestamp.UnixMicro()] = p
	}
	return nil
}

func (r *run) polls() []engine.WarehousePoint {
	return sorted(r.warehouse, func(a, b engine.WarehousePoint) int { return earlier(a.Timestamp, b.Timestamp) })
}

// Warehouse implements store.Runs.
func (s *Store) Warehouse(ctx context.Context, runID string) ([]engine.WarehousePoint, error) {
	return of(ctx, s, runID, func(r *run) ([]engine.WarehousePoint, error) { return r.polls(), nil })
}

// WarehouseChanges implements store.Runs.
func (s *Store) WarehouseChanges(ctx context.Context, runID string) ([]engine.WarehousePoint, error) {
	return of(ctx, s, runID, func(r *run) ([]engine.WarehousePoint, error) {
		all := r.polls()
		var out []engine.WarehousePoint
		for i, p := range all {
			if i == 0 || i == len(all)-1 || !sameWarehouse(p.Warehouse, all[i-1].Warehouse) {
				out = append(out, p)
			}
		}
		return out, nil
	})
}

// sameWarehouse compares two polls but for what the warehouse had to do.
func sameWarehouse(a, b engine.Warehouse) bool {
	for _, w := range []*engine.Warehouse{&a, &b} {
		w.Running, w.Queued, w.PolledAt = 0, 0, engine.Time{}
	}
	return a.Name == b.Name && a.State == b.State && a.Type == b.Type && a.Size == b.Size &&
		a.Generation == b.Generation &&
		a.FallbackWarehouse == b.FallbackWarehouse && a.ScalingPolicy == b.ScalingPolicy &&
		a.StartedClusters == b.StartedClusters &&
		a.MinClusterCount == b.MinClusterCount && a.MaxClusterCount == b.MaxClusterCount
}

// WarehousePolls implements store.Views.
func (s *Store) WarehousePolls(ctx context.Context, runID string, w store.Window) (polls []engine.WarehousePoint,
	resolution float64, err error) {
	resolution = slotSeconds
	polls, err = of(ctx, s, runID, func(r *run) ([]engine.WarehousePoint, error) {
		all := slices.DeleteFunc(r.polls(), func(p engine.WarehousePoint) bool { return !inside(w, p.ElapsedSeconds) })
		if w.MaxPoints <= 0 || len(all) <= w.MaxPoints {
			return all, nil
		}
		length := all[len(all)-1].ElapsedSeconds - all[0].ElapsedSeconds
		resolution = slotSeconds * math.Ceil((length+1)/float64(w.MaxPoints)/slotSeconds)
		var out []engine.WarehousePoint
		for _, g := range grouped(all, func(p engine.WarehousePoint) bucket {
			return bucket{place: int(math.Floor(p.ElapsedSeconds / resolution))}
		}) {
			last := g[len(g)-1]
			for _, p := range g {
				last.Running, last.Queued = max(last.Running, p.Running), max(last.Queued, p.Queued)
			}
			out = append(out, last)
		}
		return out, nil
	})
	return polls, resolution, err
}

// WarehouseSlots implements store.Views. A slot has the latest poll that is at most
// ten seconds old at its end.
func (s *Store) WarehouseSlots(ctx context.Context, runID string, w store.Window) ([]engine.WarehouseSlot, error) {
	return of(ctx, s, runID, func(r *run) ([]engine.WarehouseSlot, error) {
		if r.row.StartTime.IsZero() {
			return nil, nil
		}
		end := now()
		if !r.row.EndTime.IsZero() {
			end = r.row.EndTime.Time
		}
		length := end.Sub(r.row.StartTime.Time).Seconds()
		until, step := length, 1
		if w.Until > 0 {
			until = min(until, w.Until)
		}
		if w.MaxPoints > 0 {
			step = max(int(math.Ceil((until-w.From)/slotSeconds/float64(w.MaxPoints))), 1)
		}
		points, err := r.series()
		if err != nil {
			return nil, err
		}
		var out []engine.WarehouseSlot
		for n := 0; float64(n)*slotSeconds < length; n += step {
			if begin := float64(n) * slotSeconds; begin > w.From-slotSeconds && (w.Until <= 0 || begin <= w.Until) {
				out = append(out, r.slot(begin, float64(step)*slotSeconds, points))
			}
		}
		return out, nil
	})
}

// slot is the one that begins there; the next one that is wanted follows after so many seconds.
func (r *run) slot(begin, following float64, points []engine.Point) engine.WarehouseSlot {
	slot := engine.WarehouseSlot{Start: engine.At(r.row.StartTime.Add(time.Duration(begin * float64(time.Second)))),
		ElapsedSeconds: begin}
	since := func(t engine.Time) float64 { return t.Sub(r.row.StartTime.Time).Seconds() }
	queued := -1
	for _, p := range r.polls() {
		at := since(p.Timestamp)
		if at >= begin-slotSeconds && at < begin+slotSeconds {
			clusters, running, waiting := p.StartedClusters, p.Running, p.Queued
			slot.StartedClusters, slot.Running, slot.Queued = &clusters, &running, &waiting
		}
		if at >= begin && at < begin+following {
			queued = max(queued, p.Queued)
		}
	}
	if slot.Queued != nil {
		queued = max(queued, *slot.Queued)
	}
	if queued >= 0 {
		slot.Queued = &queued
	}
	slot.QPS = mean(slices.DeleteFunc(slices.Clone(points), func(p engine.Point) bool {
		at := since(p.Timestamp)
		return at < begin || at >= begin+slotSeconds
	}), func(p engine.Point) *float64 { return &p.QPS })
	return slot
}
