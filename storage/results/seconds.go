package results

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// Seconds is SecondsIn where only the executions tell when was measured.
func (f *Results) Seconds(ctx context.Context, runID string) ([]engine.MeasuredSecond, error) {
	return f.SecondsIn(ctx, runID, engine.Window{})
}

// SecondsIn implements record.Results. Executions count in the second in which they
// ended, those of the warm-up as carried over; those that ended after the window are in none.
func (f *Results) SecondsIn(ctx context.Context, runID string, w engine.Window) ([]engine.MeasuredSecond, error) {
	parts, err := f.executionParts(ctx, runID)
	if err != nil {
		return nil, err
	}
	t := &timeline{begin: math.MaxInt64, last: math.MinInt64}
	passes := []pass{t.count}
	if !w.From.IsZero() && !w.To.IsZero() {
		t.begin, t.last = w.From.UnixNano(), w.To.UnixNano()
	} else {
		// Where the measurement begins is known only when every part has been looked at.
		passes = slices.Insert(passes, 0, t.bound)
	}
	for _, pass := range passes {
		for _, at := range parts {
			if err := t.read(ctx, at, pass); err != nil {
				return nil, fmt.Errorf("reading executions from %s: %w", at.name, err)
			}
		}
	}
	seconds := make([]engine.MeasuredSecond, 0, len(t.seconds))
	for _, s := range t.seconds {
		s.Latency = s.latency()
		seconds = append(seconds, s.MeasuredSecond)
	}
	return seconds, nil
}

// Between reads every execution of the run once, and returns what ended between each two instants that follow each
// other: from the earlier on, and before the later. What was due in the warm-up and ended with the first is in none.
func (f *Results) Between(ctx context.Context, runID string, cuts []time.Time) ([]engine.MeasuredSecond, error) {
	parts, err := f.executionParts(ctx, runID)
	if err != nil || len(cuts) < 2 {
		return nil, err
	}
	at := make([]int64, len(cuts))
	for i, cut := range cuts {
		at[i] = cut.UnixNano()
	}
	found := make([]second, len(cuts)-1)
	t := &timeline{}
	for _, p := range parts {
		if err := t.read(ctx, p, func(due []int64, elapsed []float64, success, warmup []bool) {
			for i, started := range due {
				ns := record.Nanoseconds(elapsed[i])
				// The cut itself begins what follows it; the last one ends all.
				n, exact := slices.BinarySearch(at, started+ns)
				if !exact || n == len(found) {
					n--
				}
				if n < 0 || n >= len(found) || warmup[i] && started+ns == at[0] {
					continue
				}
				found[n].add(ns, success[i], warmup[i])
			}
		}); err != nil {
			return nil, fmt.Errorf("reading executions from %s: %w", p.name, err)
		}
	}
	out := make([]engine.MeasuredSecond, len(found))
	for i, s := range found {
		out[i] = s.MeasuredSecond
		out[i].Seconds, out[i].Latency = cuts[i+1].Sub(cuts[i]).Seconds(), s.latency()
	}
	return out, nil
}

// maxSeconds bounds the elements that are kept while a run is read, 32 KB each.
const maxSeconds = 3600

// timeline collects a run's seconds.
type timeline struct {
	begin, last int64 // of the measurement, ns
	length      int64 // of an element, ns
	seconds     []second
	columns     record.Columns
}

type second struct {
	engine.MeasuredSecond
	histogram *histogram.Histogram
}

// add counts an execution that ended in it.
func (s *second) add(ns int64, success, warmup bool) {
	if warmup {
		s.CarriedOver++
		return
	}
	s.Operations++
	if !success {
		s.Errors++
	}
	if s.histogram == nil {
		s.histogram = histogram.New()
	}
	s.histogram.Record(ns)
}

func (s *second) latency() *engine.HistogramData {
	if s.histogram == nil {
		return nil
	}
	return s.histogram.Data()
}

// pass looks at executions, column by column.
type pass func(due []int64, elapsed []float64, success, warmup []bool)

// read hands the executions of a part to a pass, row group by row group.
func (t *timeline) read(ctx context.Context, at part, pass pass) error {
	p, err := at.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }() // only read
	c := &t.columns
	for _, err := range c.Scan(ctx, p, record.ColDueAt, record.ColAppElapsedMs, record.ColPosition, record.ColWarmup,
		record.ColSuccess) {
		if err != nil {
			return err
		}
		n := 0
		for i := range c.Due {
			if c.Position[i] != 0 {
				continue
			}
			c.Due[n], c.Elapsed[n], c.Success[n], c.Warmup[n] = c.Due[i], c.Elapsed[i], c.Success[i], c.Warmup[i]
			n++
		}
		pass(c.Due[:n], c.Elapsed[:n], c.Success[:n], c.Warmup[:n])
	}
	return nil
}

func (t *timeline) bound(due []int64, elapsed []float64, _, warmup []bool) {
	for i, at := range due {
		if warmup[i] {
			continue
		}
		t.begin, t.last = min(t.begin, at), max(t.last, at+record.Nanoseconds(elapsed[i]))
	}
}

// count adds executions to their seconds, the last of which may be shorter.
func (t *timeline) count(due []int64, elapsed []float64, success, warmup []bool) {
	if t.seconds == nil && len(due) > 0 && t.last > t.begin {
		whole := (t.last - t.begin + int64(time.Second) - 1) / int64(time.Second)
		t.length = max((whole+maxSeconds-1)/maxSeconds, 1) * int64(time.Second)
		t.seconds = make([]second, (t.last-t.begin+t.length-1)/t.length)
		for i := range t.seconds {
			if length := min(t.length, t.last-t.begin-int64(i)*t.length); length != int64(time.Second) {
				t.seconds[i].Seconds = time.Duration(length).Seconds()
			}
		}
	}
	for i, at := range due {
		ns := record.Nanoseconds(elapsed[i])
		if at+ns > t.last || at+ns < t.begin || warmup[i] && at+ns == t.begin || len(t.seconds) == 0 {
			continue
		}
		// What ends with the last second is in it.
		t.seconds[min((at+ns-t.begin)/t.length, int64(len(t.seconds))-1)].add(ns, success[i], warmup[i])
	}
}
