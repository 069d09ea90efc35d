package live

import (
	"cmp"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
)

const (
	// recentErrors bounds the errors in the payload.
	recentErrors = 10
	// keptErrors bounds the errors that are remembered of a run worker.
	keptErrors = 64
)

// met are the errors that a run worker has told of, also when it tells of them no more.
type met map[engine.ExecutionError]engine.SeenError

// take remembers what a snapshot tells, and forgets what was not met for longest.
func (m met) take(told []engine.SeenError) {
	for _, e := range told {
		m[e.ExecutionError] = e
	}
	if len(m) <= keptErrors {
		return
	}
	for _, e := range m.newestLast()[:len(m)-keptErrors] {
		delete(m, e.ExecutionError)
	}
}

// newestLast lists the errors by when they were met last; of one moment, by what they are.
func (m met) newestLast() []engine.SeenError {
	out := make([]engine.SeenError, 0, len(m))
	for _, e := range m {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b engine.SeenError) int {
		return cmp.Or(a.LastAt.Compare(b.LastAt.Time), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Message, b.Message))
	})
	return out
}

// add counts what another run worker has met.
func (m met) add(o met) {
	for key, e := range o {
		have, known := m[key]
		if !known {
			m[key] = e
			continue
		}
		have.Count += e.Count
		if e.FirstAt.Before(have.FirstAt.Time) {
			have.FirstAt = e.FirstAt
		}
		if e.LastAt.After(have.LastAt.Time) {
			have.LastAt = e.LastAt
		}
		m[key] = have
	}
}

// recent lists what was met last, newest last.
func (m met) recent() []engine.SeenError {
	all := m.newestLast()
	return all[max(0, len(all)-recentErrors):]
}
