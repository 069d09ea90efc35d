package rollup_test

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 123_456_789, time.UTC)

// draw gives a batch as a part has them: texts by index, some of them twice in the dictionary.
func draw(t *rapid.T) *rollup.Batch {
	n := rapid.IntRange(0, 50).Draw(t, "rows")
	texts := func(label string, null bool, values ...string) record.Texts {
		c := record.Texts{Values: values}
		least := int32(0)
		if null {
			least = -1
		}
		c.Index = rapid.SliceOfN(rapid.Int32Range(least, int32(len(values)-1)), n, n).Draw(t, label)
		return c
	}
	numbers := func(label string, from, to int64) []int64 {
		return rapid.SliceOfN(rapid.Int64Range(from, to), n, n).Draw(t, label)
	}
	bools := func(label string) []bool { return rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, label) }
	b := &rollup.Batch{DueNs: numbers("due", -2e9, 6e9), ElapsedNs: numbers("elapsed", 0, 3e9),
		Rows:     rapid.SliceOfN(rapid.Int32Range(0, 9), n, n).Draw(t, "rows of it"),
		Position: rapid.SliceOfN(rapid.Int32Range(0, 1), n, n).Draw(t, "position"),
		Warmup:   bools("warmup"), Success: bools("success"), Kind: texts("kind", false, "READ", "WRITE", "READ"),
		Statement: texts("statement", true, "a", "b", "c", "b"), Worker: texts("worker", false, "w1", "w2"),
		Class: texts("class", true, "TIMEOUT", "OTHER"), Code: texts("code", true, "1", "2")}
	for i := range b.DueNs {
		b.DueNs[i] += noon.UnixNano()
	}
	return b
}

// naive adds row by row, by name.
func naive(s *rollup.Seconds, b *rollup.Batch) {
	add := func(c *rollup.Cell, i int) *rollup.Cell {
		if c == nil {
			c = &rollup.Cell{}
		}
		c.Operations++
		c.Rows += int64(b.Rows[i])
		if !b.Success[i] {
			c.Errors++
		}
		c.Latency.Record(b.ElapsedNs[i])
		return c
	}
	for i := range b.DueNs {
		at := rollup.Moment{Warmup: b.Warmup[i]}
		if end := b.DueNs[i] + b.ElapsedNs[i] - noon.UnixNano(); end > 0 {
			at.Second = int32(end / 1e9)
		}
		statement := rollup.StatementKey{Moment: at, Statement: b.Statement.At(i), Kind: b.Kind.At(i),
			InTransaction: b.Position[i] != 0}
		s.Statements[statement] = add(s.Statements[statement], i)
		if b.Position[i] != 0 {
			continue
		}
		s.Executions++
		s.Run[at] = add(s.Run[at], i)
		kind, worker := rollup.KindKey{Moment: at, Kind: b.Kind.At(i)}, rollup.WorkerKey{Moment: at, Worker: b.Worker.At(i)}
		s.Kinds[kind], s.Workers[worker] = add(s.Kinds[kind], i), add(s.Workers[worker], i)
		if !b.Success[i] {
			s.Errors[rollup.ErrorKey{Moment: at, Class: b.Class.At(i), Code: b.Code.At(i), Kind: b.Kind.At(i)}]++
		}
	}
}

// plain is a Seconds with its histograms as data, which are equal when they hold the same.
func plain(s *rollup.Seconds) map[any]any {
	all := map[any]any{"executions": s.Executions}
	type values struct {
		operations, errors, rows int64
		latency                  any
	}
	put := func(key any, c *rollup.Cell) {
		d := c.Latency.Data()
		h, err := histogram.FromData(&d)
		if err != nil {
			panic(err)
		}
		all[key] = values{c.Operations, c.Errors, c.Rows, h}
	}
	for k, c := range s.Run {
		put(k, c)
	}
	for k, c := range s.Kinds {
		put(k, c)
	}
	for k, c := range s.Statements {
		put(k, c)
	}
	for k, c := range s.Workers {
		put(k, c)
	}
	for k, n := range s.Errors {
		all[k] = n
	}
	return all
}

// TestBatchesAddUpAsRowsDo: batches give what their rows give one by one, whether into one Seconds or into several that
// are merged in any order.
func TestBatchesAddUpAsRowsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, whole := rollup.New(noon), rollup.New(noon)
		parts := []*rollup.Seconds{rollup.New(noon), rollup.New(noon)}
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			b := draw(t)
			naive(want, b)
			whole.Add(b)
			parts[rapid.IntRange(0, 1).Draw(t, "part")].Add(b)
		}
		first := rapid.IntRange(0, 1).Draw(t, "first")
		merged := rollup.New(noon)
		merged.Merge(parts[first])
		merged.Merge(parts[1-first])
		for name, got := range map[string]*rollup.Seconds{"one": whole, "merged": merged} {
			if !reflect.DeepEqual(plain(got), plain(want)) {
				t.Fatalf("%s: %v\nwant %v", name, plain(got), plain(want))
			}
		}
	})
}
