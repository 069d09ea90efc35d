package series

import (
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Edges are where windows of a range function begin and end. Windows are Range long and end at End, at End + Step, and
// so on, and before that likewise; all is in milliseconds, Step at least 1.
type Edges struct{ End, Step, Range int64 }

// At are the same series, of whose histograms only those have buckets that are the first or the last of a window.
// rate(), increase() and delta() look at the buckets of no other: that nothing was reset between two samples, the
// second one says. How many samples there are, and when, is as it was.
func (s Sets) At(e Edges) storage.Queryable { return edgeQueryable{s, e} }

type edgeQueryable struct {
	sets  Sets
	edges Edges
}

// Querier implements storage.Queryable.
func (e edgeQueryable) Querier(from, to int64) (storage.Querier, error) {
	return &querier{sets: e.sets, from: from, to: to, edges: &e.edges}, nil
}

// ends tells whether a window ends from one time on, before another.
func (e *Edges) ends(from, before int64) bool {
	behind := (from - e.End) % e.Step
	if behind < 0 {
		behind += e.Step
	}
	return behind == 0 || e.Step-behind < before-from
}

// edge tells whether a sample may be the first or the last of a window.
func (it *histogramIterator) edge() bool {
	last := it.series.samples() - 1
	if it.edges == nil || it.i == 0 || it.i == last {
		return true
	}
	// The last one of a window that ends before the next, or the first of one that starts after the one before.
	at := it.series.at(it.i)
	return it.edges.ends(at, it.series.at(it.i+1)) || it.edges.ends(it.series.at(it.i-1)+it.edges.Range, at+it.edges.Range)
}

type edgedSeries struct {
	*seriesData
	edges *Edges
}

// Iterator implements storage.Series.
func (s edgedSeries) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	it := newHistogramIterator(s.seriesData)
	it.edges = s.edges
	return it
}
