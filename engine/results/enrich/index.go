package enrich

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	resultsrecord "github.com/loadstone-db/loadstone/engine/results/record"
)

// entry is an execution that a history may know.
type entry struct {
	id      engine.QueryID
	service float64 // what the client saw from sending to the end, ms
	server  float32 // what the history says, ms; whole, and exact below 2^24 (4.6 hours)
	kind    engine.Kind
	warmup  bool
	matched bool
}

// index finds executions by their query id. It is built once and is then only
// marked; it is not safe for concurrent use.
type index struct {
	entries   []entry
	withoutID int64
	matched   int64
	byKind    [engine.NumKinds]struct{ executions, matched int64 }
}

// add takes the executions of a row group.
func (x *index) add(q *resultsrecord.QueryRows) {
	for i, id := range q.IDs {
		if id == (engine.QueryID{}) {
			// A transaction has no id of its own; its statements do.
			if q.Kinds[i] != engine.KindTransaction {
				x.withoutID++
			}
			continue
		}
		x.entries = append(x.entries, entry{id: id, service: q.ServiceMs[i], kind: q.Kinds[i], warmup: q.Warmup[i]})
	}
}

// build sorts the index. An id that occurs twice is kept once.
func (x *index) build() {
	slices.SortFunc(x.entries, func(a, b entry) int {
		return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.kind, b.kind))
	})
	x.entries = slices.CompactFunc(x.entries, func(a, b entry) bool { return a.id == b.id })
	for i := range x.entries {
		x.byKind[x.entries[i].kind].executions++
	}
}

// find returns the execution, nil when it is not one of the run's.
func (x *index) find(id engine.QueryID) *entry {
	i, ok := slices.BinarySearchFunc(x.entries, id,
		func(e entry, id engine.QueryID) int { return bytes.Compare(e.id[:], id[:]) })
	if !ok {
		return nil
	}
	return &x.entries[i]
}

// match marks an execution as found; false when it was already.
func (x *index) match(e *entry, serverMs float64) bool {
	if e.matched {
		return false
	}
	e.matched, e.server = true, float32(serverMs)
	x.matched++
	x.byKind[e.kind].matched++
	return true
}

func (x *index) executions() int64 { return int64(len(x.entries)) }
