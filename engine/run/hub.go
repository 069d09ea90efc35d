// This part gives the newest state of a run to everybody who watches it.
//
// A watcher holds one payload: one that was not taken is replaced by the next, so that
// a slow reader skips some and delays nobody. Only the last one is sure to arrive.

package run

import (
	"context"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Hub is where the states of runs are shown. Its methods are safe for concurrent use;
// the zero Board is ready.
type Hub struct {
	mu          sync.Mutex
	subscribers map[string]map[*subscriber]bool // by run
	polled      map[string]bool                 // runs that Follow shows
}

// subscriber holds the newest payload that its reader has not taken yet.
type subscriber struct {
	updates chan *engine.LiveState
	once    sync.Once
}

// offer replaces what the reader has not taken. It needs the board's mu: one goroutine
// at a time offers.
func (w *subscriber) offer(p *engine.LiveState) {
	for {
		select {
		case w.updates <- p:
			return
		default:
		}
		select {
		case <-w.updates:
		default:
		}
	}
}

func (w *subscriber) end() { w.once.Do(func() { close(w.updates) }) }

// Subscribe begins to watch a run. now is called once, before anything else is offered: it
// returns the state to begin with, and whether nothing will follow it. The channel is
// closed after the last state of the run, or by cancel.
func (b *Hub) Subscribe(runID string, now func() (p *engine.LiveState, last bool)) (updates <-chan *engine.LiveState,
	cancel func()) {
	w := &subscriber{updates: make(chan *engine.LiveState, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	p, last := now()
	if p != nil {
		w.offer(p)
	}
	if last {
		w.end()
		return w.updates, func() {}
	}
	if b.subscribers == nil {
		b.subscribers = map[string]map[*subscriber]bool{}
	}
	if b.subscribers[runID] == nil {
		b.subscribers[runID] = map[*subscriber]bool{}
	}
	b.subscribers[runID][w] = true
	return w.updates, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subscribers[runID], w)
		if len(b.subscribers[runID]) == 0 {
			delete(b.subscribers, runID)
		}
		w.end()
	}
}

// Publish offers a state of the run to all who watch it; after the last one they watch nothing any more.
func (b *Hub) Publish(runID string, p *engine.LiveState, last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.subscribers[runID] {
		w.offer(p)
	}
	if last {
		b.end(runID)
	}
}

// End tells those who watch the run that nothing follows.
func (b *Hub) End(runID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(runID)
}

// Close is End for all runs.
func (b *Hub) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.subscribers {
		b.end(id)
	}
}

// end needs mu.
func (b *Hub) end(runID string) {
	for w := range b.subscribers[runID] {
		w.end()
	}
	delete(b.subscribers, runID)
}

// Poll shows a run to those who watch it as read says it is, again and again, until
// nobody watches it, ctx ends, or read says that nothing follows or somebody else shows it
// (over). A run that is followed already is left to who does. A state that is nil is not shown.
func (b *Hub) Poll(ctx context.Context, runID string, every time.Duration,
	read func(ctx context.Context) (p *engine.LiveState, last, over bool)) {
	b.mu.Lock()
	if b.polled[runID] {
		b.mu.Unlock()
		return
	}
	if b.polled == nil {
		b.polled = map[string]bool{}
	}
	b.polled[runID] = true
	b.mu.Unlock()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		b.mu.Lock()
		watched := len(b.subscribers[runID]) > 0 && ctx.Err() == nil
		if !watched {
			delete(b.polled, runID) // whoever watches from now on has it followed anew
		}
		b.mu.Unlock()
		if !watched {
			return
		}
		p, last, over := read(ctx)
		if p != nil && !over {
			b.Publish(runID, p, last)
		}
		if last || over {
			b.mu.Lock()
			delete(b.polled, runID)
			b.mu.Unlock()
			return
		}
	}
}
