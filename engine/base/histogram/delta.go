package histogram

import (
	"slices"

	"github.com/loadstone-db/loadstone/engine"
)

// Delta is what has come to a distribution that counts over a phase. Its smallest and largest values are known to the
// bucket. Nil when they are not of one kind, or nothing has come.
func Delta(now, before *engine.HistogramData) *engine.HistogramData {
	if now == nil || before == nil || len(before.Counts) == 0 {
		return now
	}
	if now.Schema != before.Schema {
		return nil
	}
	d := &engine.HistogramData{Schema: now.Schema, Offset: now.Offset, Counts: slices.Clone(now.Counts),
		Sum: now.Sum - before.Sum}
	for i, c := range before.Counts {
		at := before.Offset + i - now.Offset
		if c == 0 {
			continue
		}
		if at < 0 || at >= len(d.Counts) || d.Counts[at] < c {
			return nil
		}
		d.Counts[at] -= c
	}
	first := slices.IndexFunc(d.Counts, func(c int64) bool { return c > 0 })
	if first < 0 {
		return nil
	}
	last := first
	for i, c := range d.Counts {
		if c > 0 {
			last = i
		}
	}
	d.Offset, d.Counts = d.Offset+first, d.Counts[first:last+1]
	d.Min = max(now.Min, int64(UpperBound(d.Schema, d.Offset-1)))
	d.Max = min(now.Max, int64(UpperBound(d.Schema, d.Offset+len(d.Counts)-1)))
	return d
}
