package fake

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// span is the part of a run's time that a window asks for, in elapsed seconds;
// ok is false when there is none.
func (r *run) span(w store.Window) (first, last float64, ok bool, err error) {
	points, err := r.series()
	if err != nil || len(points) == 0 {
		return 0, 0, false, err
	}
	first, last = math.Max(points[0].ElapsedSeconds, w.From), points[len(points)-1].ElapsedSeconds
	if w.Until > 0 {
		last = math.Min(last, w.Until)
	}
	return first, last, first <= last, nil
}

func inside(w store.Window, elapsed float64) bool {
	return elapsed >= w.From && (w.Until <= 0 || elapsed <= w.Until)
}

// bucketStart is the stretch that a second belongs to. Coarse ones begin at multiples of store.RollupSeconds.
func bucketStart(elapsed, first, step float64) int {
	if step >= store.RollupSeconds {
		first = math.Floor(first/store.RollupSeconds) * store.RollupSeconds
	}
	return int(math.Floor((elapsed - first) / step))
}

// bucket is the seconds of one phase in a stretch.
type bucket struct {
	place int
	phase engine.Phase
}

// grouped puts seconds together, the groups in the order of their last ones.
func grouped[T any](all []T, in func(T) bucket) [][]T {
	groups := map[bucket][]T{}
	last := map[bucket]int{}
	for i, p := range all {
		b := in(p)
		groups[b], last[b] = append(groups[b], p), i
	}
	var out [][]T
	for _, b := range slices.SortedFunc(maps.Keys(groups), func(a, b bucket) int { return last[a] - last[b] }) {
		out = append(out, groups[b])
	}
	return out
}

// mean is that of the numbers that are there, nil without one.
func mean[T any](group []T, number func(T) *float64) *float64 {
	sum, n := 0.0, 0
	for _, p := range group {
		if v := number(p); v != nil {
			sum += *v
			n++
		}
	}
	if n == 0 {
		return nil
	}
	sum /= float64(n)
	return &sum
}

// highest is that of the numbers that are there, nil without one.
func highest[T any](group []T, number func(T) *float64) *float64 {
	var top *float64
	for _, p := range group {
		if v := number(p); v != nil && (top == nil || *v > *top) {
			top = v
		}
	}
	return top
}

// Series implements query.Store.
func (s *Store) Series(ctx context.Context, runID string, w store.Window) (points []engine.Point, resolution float64,
	err error) {
	resolution = 1
	points, err = of(ctx, s, runID, func(r *run) ([]engine.Point, error) {
		first, last, ok, err := r.span(w)
		if err != nil || !ok {
			return nil, err
		}
		all, err := r.series()
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(p engine.Point) bool { return !inside(w, p.ElapsedSeconds) })
		if resolution = w.Resolution(first, last); resolution == 1 {
			return all, nil
		}
		var out []engine.Point
		for _, g := range grouped(all, func(p engine.Point) bucket {
			return bucket{place: bucketStart(p.ElapsedSeconds, first, resolution), phase: p.Phase}
		}) {
			out = append(out, merged(g))
		}
		return out, nil
	})
	return points, resolution, err
}

// merged is one point for several seconds; what is not merged is the last one's.
func merged(group []engine.Point) engine.Point {
	p := group[len(group)-1]
	p.Histogram = nil
	p.QPS = *mean(group, func(p engine.Point) *float64 { return &p.QPS })
	p.ReadsPerSec = *mean(group, func(p engine.Point) *float64 { return &p.ReadsPerSec })
	p.WritesPerSec = *mean(group, func(p engine.Point) *float64 { return &p.WritesPerSec })
	p.ErrorsPerSec = *mean(group, func(p engine.Point) *float64 { return &p.ErrorsPerSec })
	p.P50LatencyMs = mean(group, func(p engine.Point) *float64 { return p.P50LatencyMs })
	p.AvgLatencyMs = mean(group, func(p engine.Point) *float64 { return p.AvgLatencyMs })
	p.P95LatencyMs = highest(group, func(p engine.Point) *float64 { return p.P95LatencyMs })
	p.P99LatencyMs = highest(group, func(p engine.Point) *float64 { return p.P99LatencyMs })
	p.MaxLatencyMs = highest(group, func(p engine.Point) *float64 { return p.MaxLatencyMs })
	return p
}
