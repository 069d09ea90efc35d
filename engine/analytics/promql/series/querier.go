package series

import (
	"context"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

type querier struct {
	sets     Sets
	from, to int64
	// edges are those of the windows for which series are wanted, where they are known.
	edges *Edges
}

// Select implements storage.Querier.
func (q *querier) Select(_ context.Context, sorted bool, hints *storage.SelectHints,
	matchers ...*labels.Matcher) storage.SeriesSet {
	from, to := q.from, q.to
	if hints != nil {
		from, to = max(from, hints.Start), min(to, hints.End)
	}
	var found []*seriesData
	for _, s := range q.sets {
		s.each(from, to, matchers, func(o *seriesData) { found = append(found, o) })
	}
	if sorted {
		slices.SortFunc(found, func(a, b *seriesData) int { return labels.Compare(a.labels, b.labels) })
	}
	return &selected{found: found, at: -1, edges: q.edges}
}

// each calls fn for the series that match and may have samples between the times.
func (s *Set) each(from, to int64, matchers []*labels.Matcher, fn func(*seriesData)) {
	if s.to < from || s.from > to || !Matches(s.run, matchers) {
		return
	}
	if name := nameOf(matchers); name != "" {
		for _, i := range s.byName[name] {
			s.one(i, from, to, matchers, fn)
		}
		return
	}
	for i := range s.all {
		s.one(i, from, to, matchers, fn)
	}
}

func (s *Set) one(i int, from, to int64, matchers []*labels.Matcher, fn func(*seriesData)) {
	o := &s.all[i]
	if first, last := o.span(); last < from || first > to {
		return
	}
	for _, m := range matchers {
		if !m.Matches(o.labels.Get(m.Name)) {
			return
		}
	}
	fn(o)
}

func nameOf(matchers []*labels.Matcher) string {
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return ""
}

// Matches tells whether series of a run can match, by the labels that the run gives all of them.
func Matches(run labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if run.Has(m.Name) && !m.Matches(run.Get(m.Name)) {
			return false
		}
	}
	return true
}

// LabelValues implements storage.LabelQuerier.
func (q *querier) LabelValues(_ context.Context, name string, _ *storage.LabelHints,
	matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	values := map[string]bool{}
	for _, s := range q.sets {
		s.each(q.from, q.to, matchers, func(o *seriesData) {
			if v := o.labels.Get(name); v != "" {
				values[v] = true
			}
		})
	}
	return sortedKeys(values), nil, nil
}

// LabelNames implements storage.LabelQuerier.
func (q *querier) LabelNames(_ context.Context, _ *storage.LabelHints,
	matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	names := map[string]bool{}
	for _, s := range q.sets {
		s.each(q.from, q.to, matchers, func(o *seriesData) { o.labels.Range(func(l labels.Label) { names[l.Name] = true }) })
	}
	return sortedKeys(names), nil, nil
}

func sortedKeys(m map[string]bool) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Close implements storage.Querier.
func (q *querier) Close() error { return nil }

type selected struct {
	found []*seriesData
	at    int
	edges *Edges
}

func (s *selected) Next() bool { s.at++; return s.at < len(s.found) }
func (s *selected) At() storage.Series {
	if o := s.found[s.at]; s.edges == nil || o.hist == nil {
		return o
	}
	return edgedSeries{s.found[s.at], s.edges}
}
func (s *selected) Err() error                        { return nil }
func (s *selected) Warnings() annotations.Annotations { return nil }
