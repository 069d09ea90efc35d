package results

import (
	"cmp"
	"maps"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/histogram"
)

// statementKey tells apart what figures by statement are about.
type statementKey struct {
	id     string
	kind   engine.Kind
	inside bool
}

// statementSums are the sums of one statement in the measurement. Their
// latencies are a histogram: transactions have many statements, whose exact
// latencies would take several times the memory of the executions'.
type statementSums struct {
	latency             *histogram.Histogram
	rows, errors, tries int64
}

func (s *statementSums) add(ns int64, rows int32, success bool, retries int32) {
	s.latency.Record(ns)
	s.rows += int64(rows)
	s.tries += int64(retries)
	if !success {
		s.errors++
	}
}

func (s *statementSums) merge(o *statementSums) {
	s.latency.Merge(o.latency)
	s.rows += o.rows
	s.errors += o.errors
	s.tries += o.tries
}

// statementTable finds the sums of a statement by the indexes that a row group
// has for its name and its kind.
type statementTable struct {
	all   map[statementKey]*statementSums
	ids   []string
	kinds []engine.Kind
	known []*statementSums
}

func newStatementTable(all map[statementKey]*statementSums, ids []string, kinds []engine.Kind) *statementTable {
	return &statementTable{all, ids, kinds, make([]*statementSums, 2*len(ids)*len(kinds))}
}

func (t *statementTable) of(id, kind int32, inside bool) *statementSums {
	at := 2 * (int(id)*len(t.kinds) + int(kind))
	if inside {
		at++
	}
	if t.known[at] == nil {
		key := statementKey{t.ids[id], t.kinds[kind], inside}
		if t.all[key] == nil {
			t.all[key] = &statementSums{latency: histogram.New()}
		}
		t.known[at] = t.all[key]
	}
	return t.known[at]
}

func mergeStatements(into, from map[statementKey]*statementSums) {
	for key, o := range from {
		s := into[key]
		if s == nil {
			s = &statementSums{latency: histogram.New()}
			into[key] = s
		}
		s.merge(o)
	}
}

// statementFigures lists the sums: transactions first, then statements alone and
// inside transactions, by name.
func statementFigures(of map[statementKey]*statementSums, rate func(int64) float64) []engine.StatementFigures {
	keys := slices.SortedFunc(maps.Keys(of), func(a, b statementKey) int {
		rank := func(k statementKey) int {
			switch {
			case k.inside:
				return 2
			case k.kind == engine.KindTransaction:
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.id, b.id), cmp.Compare(a.kind, b.kind))
	})
	list := make([]engine.StatementFigures, 0, len(keys))
	for _, key := range keys {
		s := of[key]
		ms := func(ns float64) float64 { return ns / 1e6 }
		f := engine.StatementFigures{StatementID: key.id, Kind: key.kind, InTransaction: key.inside, Count: s.latency.Count(), Errors: s.errors, Rows: s.rows,
			QPS: rate(s.latency.Count()), LatencyMs: engine.StatementLatencyMs{Avg: ms(s.latency.Mean()), P50: ms(s.latency.Quantile(0.5)),
				P95: ms(s.latency.Quantile(0.95)), P99: ms(s.latency.Quantile(0.99)), Max: ms(float64(s.latency.Max()))}}
		if !key.inside {
			f.Retries = s.tries
		}
		list = append(list, f)
	}
	return list
}
