package live

import (
	"cmp"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
)

const (
	// maxRecentErrors bounds the errors in the payload.
	maxRecentErrors = 10
	// maxKeptErrors bounds the errors that are remembered of a run worker.
	maxKeptErrors = 64
)

// errorSet are the errors that a run worker has told of, also when it tells of them no more.
type errorSet map[engine.ExecutionError]engine.ObservedError

// record remembers what a snapshot tells, and forgets what was not met for longest.
func (m errorSet) record(told []engine.ObservedError) {
	for _, e := range told {
		m[e.ExecutionError] = e
	}
	if len(m) <= maxKeptErrors {
		return
	}
	for _, e := range m.sortedByTime()[:len(m)-maxKeptErrors] {
		delete(m, e.ExecutionError)
	}
}

// sortedByTime lists the errors by when they were met last; of one moment, by what they are.
func (m errorSet) sortedByTime() []engine.ObservedError {
	out := make([]engine.ObservedError, 0, len(m))
	for _, e := range m {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b engine.ObservedError) int {
		return cmp.Or(a.LastAt.Compare(b.LastAt.Time), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Message, b.Message))
	})
	return out
}

// add counts what another run worker has met.
func (m errorSet) add(o errorSet) {
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
func (m errorSet) recent() []engine.ObservedError {
	all := m.sortedByTime()
	return all[max(0, len(all)-maxRecentErrors):]
}
