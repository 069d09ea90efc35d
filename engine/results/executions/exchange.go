package executions

import (
	"slices"
	"sync"

	"github.com/loadstone-db/loadstone/engine"
)

// Exchange tells several listeners what the run workers of a process record: some of all runs, some of one. It is
// itself Taps. The zero value has no listeners, and is ready.
type Exchange struct {
	mu        sync.Mutex
	listeners []*listener
	lines     map[*line]bool
}

// listener hears of a run, or of all where that is empty.
type listener struct {
	runID string
	to    Taps
}

func (l *listener) wants(of Of) bool { return l.runID == "" || l.runID == of.RunID }

// line is a run worker with those who hear of it.
type line struct {
	exchange *Exchange
	of       Of

	mu   sync.Mutex
	taps []branch
}

type branch struct {
	of  *listener
	tap Tap
}

// Listen begins to tell to what run workers of a run record from now on, those of all runs where runID is empty; to
// hears also of those that are open already. leave ends that: when it returns to is told nothing more. It may be called
// again.
func (e *Exchange) Listen(runID string, to Taps) (leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := &listener{runID, to}
	e.listeners = append(e.listeners, l)
	for at := range e.lines {
		at.add(l)
	}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.listeners = slices.DeleteFunc(e.listeners, func(o *listener) bool { return o == l })
		for at := range e.lines {
			at.remove(func(o *listener) bool { return o == l })
		}
	}
}

// Open implements Taps.
func (e *Exchange) Open(of Of) Tap {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := &line{exchange: e, of: of}
	for _, l := range e.listeners {
		at.add(l)
	}
	if e.lines == nil {
		e.lines = map[*line]bool{}
	}
	e.lines[at] = true
	return at
}

// add has a listener hear of the run worker, if it wants to. The exchange is locked.
func (a *line) add(l *listener) {
	if !l.wants(a.of) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taps = append(a.taps, branch{l, l.to.Open(a.of)})
}

// remove ends that.
func (a *line) remove(of func(*listener) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taps = slices.DeleteFunc(a.taps, func(b branch) bool {
		if of(b.of) {
			b.tap.Close()
			return true
		}
		return false
	})
}

// Write implements Tap.
func (a *line) Write(recs []engine.Execution) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range a.taps {
		b.tap.Write(recs)
	}
}

// Close implements Tap.
func (a *line) Close() {
	e := a.exchange
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.lines, a)
	a.remove(func(*listener) bool { return true })
}
