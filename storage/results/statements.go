package results

import (
	"cmp"
	"maps"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
)

// statementKey tells apart what figures by statement are about.
type statementKey struct {
	id     string
	kind   engine.Kind
	inside bool
}

// statementSums are the sums of one statement in the measurement. A statement
// outside of transactions shares its latencies with its kind; those inside cost 8 bytes each.
type statementSums struct {
	latency                           distribution
	count, rated, rows, errors, tries int64
	// carried were due in the warm-up, ended in the measurement, and are in its rate alone.
	carried int64
	empty   int64 // succeeded without a row
	// keys are the latencies of the row group that is being read.
	keys []uint64
}

func (s *statementSums) add(ms float64, rows int32, success bool, retries int32, rated bool) {
	s.keys = append(s.keys, key(ms))
	s.count++
	s.rows += int64(rows)
	s.tries += int64(retries)
	if !success {
		s.errors++
	} else if rows == 0 {
		s.empty++
	}
	if rated {
		s.rated++
	}
}

func (s *statementSums) merge(o *statementSums) {
	s.latency.pieces = append(s.latency.pieces, o.latency.pieces...)
	s.count += o.count
	s.rated += o.rated
	s.carried += o.carried
	s.rows += o.rows
	s.errors += o.errors
	s.tries += o.tries
	s.empty += o.empty
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
			t.all[key] = &statementSums{}
		}
		t.known[at] = t.all[key]
	}
	return t.known[at]
}

// finish makes pieces of the row group's latencies; those outside of transactions
// are their kinds' too.
func (t *statementTable) finish(part, group int, execution func(engine.Kind, sortedPiece)) {
	for at, s := range t.known {
		if s == nil || len(s.keys) == 0 {
			continue
		}
		p := newPiece(s.keys, part, group)
		s.keys = nil
		s.latency.pieces = append(s.latency.pieces, p)
		if at%2 == 0 {
			execution(t.kinds[at/2%len(t.kinds)], p)
		}
	}
}

func mergeStatements(into, from map[statementKey]*statementSums) {
	for key, o := range from {
		s := into[key]
		if s == nil {
			s = &statementSums{}
			into[key] = s
		}
		s.merge(o)
	}
}

// statementFigures lists the sums: transactions first, then statements alone and
// inside transactions, by name.
func statementFigures(of map[statementKey]*statementSums, rate func(int64) *float64,
	partial bool) []engine.StatementFigures {
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
		if s.count == 0 && s.carried == 0 {
			continue
		}
		s.latency.order()
		f := engine.StatementFigures{StatementID: key.id, Kind: key.kind, InTransaction: key.inside, Count: s.count,
			Errors: s.errors, Rows: s.rows, NoRows: s.empty, CarriedOver: s.carried, QPS: rate(s.rated + s.carried)}
		if l := s.latency.latency(); l != nil {
			f.LatencyMs = &engine.StatementLatencyMs{Avg: l.Avg, P50: l.P50, P95: l.P95, P99: l.P99, Max: l.Max}
		}
		if !key.inside {
			f.Retries = s.tries
		}
		if !partial {
			f.FinishedLate = s.count - s.rated
		}
		list = append(list, f)
	}
	return list
}
