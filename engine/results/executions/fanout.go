package executions

import (
	"slices"
	"sync"

	"github.com/loadstone-db/loadstone/engine"
)

// Fanout tells several listeners what the run workers of a process record: some of all runs, some of one. It is
// itself Taps. The zero value has no listeners, and is ready.
type Fanout struct {
	mu        sync.Mutex
	listeners []*listener
	streams   map[*workerStream]bool
}

// listener hears of a run, or of all where that is empty.
type listener struct {
	runID string
	to    Observers
}

func (l *listener) wants(of Stream) bool { return l.runID == "" || l.runID == of.RunID }

// workerStream is a run worker with those who hear of it.
type workerStream struct {
	exchange *Fanout
	stream   Stream

	mu            sync.Mutex
	subscriptions []subscription
}

type subscription struct {
	listener *listener
	observer Observer
}

// Listen begins to tell to what run workers of a run record from now on, those of all runs where runID is empty; to
// hears also of those that are open already. leave ends that: when it returns to is told nothing more. It may be called
// again.
func (e *Fanout) Listen(runID string, to Observers) (leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := &listener{runID, to}
	e.listeners = append(e.listeners, l)
	for at := range e.streams {
		at.add(l)
	}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.listeners = slices.DeleteFunc(e.listeners, func(o *listener) bool { return o == l })
		for at := range e.streams {
			at.remove(func(o *listener) bool { return o == l })
		}
	}
}

// Open implements Taps.
func (e *Fanout) Open(of Stream) Observer {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := &workerStream{exchange: e, stream: of}
	for _, l := range e.listeners {
		at.add(l)
	}
	if e.streams == nil {
		e.streams = map[*workerStream]bool{}
	}
	e.streams[at] = true
	return at
}

// add has a listener hear of the run worker, if it wants to. The exchange is locked.
func (a *workerStream) add(l *listener) {
	if !l.wants(a.stream) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.subscriptions = append(a.subscriptions, subscription{l, l.to.Open(a.stream)})
}

// remove ends that.
func (a *workerStream) remove(of func(*listener) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.subscriptions = slices.DeleteFunc(a.subscriptions, func(b subscription) bool {
		if of(b.listener) {
			b.observer.Close()
			return true
		}
		return false
	})
}

// Write implements Tap.
func (a *workerStream) Write(recs []engine.Execution) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range a.subscriptions {
		b.observer.Write(recs)
	}
}

// Close implements Tap.
func (a *workerStream) Close() {
	e := a.exchange
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.streams, a)
	a.remove(func(*listener) bool { return true })
}
