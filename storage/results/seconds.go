package results

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/artifact"
	"github.com/loadstone-db/loadstone/engine/histogram"
)

// Seconds implements store.Results. Executions count in the second in which they ended.
func (f *Folder) Seconds(ctx context.Context, runID string) ([]engine.MeasuredSecond, error) {
	paths, err := f.executionParts(runID)
	if err != nil {
		return nil, err
	}
	// Two passes: where the measurement begins is known only when every part has been looked at.
	t := &timeline{begin: math.MaxInt64, last: math.MinInt64}
	for _, pass := range []func(due []int64, elapsed []float64, success []bool){t.bound, t.count} {
		for _, path := range paths {
			if err := t.read(ctx, path, pass); err != nil {
				return nil, fmt.Errorf("reading executions from %s: %w", filepath.Base(path), err)
			}
		}
	}
	seconds := make([]engine.MeasuredSecond, 0, len(t.seconds))
	for _, s := range t.seconds {
		s.Latency = nil
		if s.histogram != nil {
			s.Latency = s.histogram.Data()
		}
		seconds = append(seconds, s.MeasuredSecond)
	}
	return seconds, nil
}

// maxSeconds bounds the elements that are kept while a run is read, 32 KB each.
const maxSeconds = 3600

// timeline collects a run's seconds.
type timeline struct {
	begin, last int64 // of the measurement, ns
	length      int64 // of an element, ns
	seconds     []second
	due         []int64
	elapsed     []float64
	position    []int32
	warmup      []bool
	success     []bool
}

type second struct {
	engine.MeasuredSecond
	histogram *histogram.Histogram
}

// read hands the measured executions of a part to a pass, row group by row group.
func (t *timeline) read(ctx context.Context, path string, pass func([]int64, []float64, []bool)) error {
	p, err := artifact.OpenPart(path)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }() // only read
	for g := range p.RowGroups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if t.due, err = p.Int64s(g, artifact.ColDueAt, t.due); err != nil {
			return err
		}
		if t.elapsed, err = p.Doubles(g, artifact.ColAppElapsedMs, t.elapsed); err != nil {
			return err
		}
		if t.position, err = p.Int32s(g, artifact.ColPosition, t.position); err != nil {
			return err
		}
		if t.warmup, err = p.Bools(g, artifact.ColWarmup, t.warmup); err != nil {
			return err
		}
		if t.success, err = p.Bools(g, artifact.ColSuccess, t.success); err != nil {
			return err
		}
		n := 0
		for i := range t.due {
			if t.warmup[i] || t.position[i] != 0 {
				continue
			}
			t.due[n], t.elapsed[n], t.success[n] = t.due[i], t.elapsed[i], t.success[i]
			n++
		}
		pass(t.due[:n], t.elapsed[:n], t.success[:n])
	}
	return nil
}

func (t *timeline) bound(due []int64, elapsed []float64, _ []bool) {
	for i, at := range due {
		t.begin, t.last = min(t.begin, at), max(t.last, at+nanoseconds(elapsed[i]))
	}
}

// count adds executions to their seconds; the last second, which is not whole, is left out.
func (t *timeline) count(due []int64, elapsed []float64, success []bool) {
	if t.seconds == nil && t.last > t.begin {
		whole := (t.last - t.begin) / int64(time.Second)
		merged := max((whole+maxSeconds-1)/maxSeconds, 1)
		t.length = merged * int64(time.Second)
		t.seconds = make([]second, (whole+merged-1)/merged)
		for i := range t.seconds {
			if merged > 1 {
				t.seconds[i].Seconds = int(min(merged, whole-int64(i)*merged))
			}
		}
		t.last = t.begin + whole*int64(time.Second)
	}
	for i, at := range due {
		ns := nanoseconds(elapsed[i])
		if at+ns >= t.last {
			continue
		}
		s := &t.seconds[(at+ns-t.begin)/t.length]
		if s.histogram == nil {
			s.histogram = histogram.New()
		}
		s.Operations++
		if !success[i] {
			s.Errors++
		}
		s.histogram.Record(ns)
	}
}
