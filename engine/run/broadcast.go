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

// Board is where the states of runs are shown. Its methods are safe for concurrent use;
// the zero Board is ready.
type Board struct {
	mu       sync.Mutex
	watchers map[string]map[*watcher]bool // by run
	followed map[string]bool              // runs that Follow shows
}

// watcher holds the newest payload that its reader has not taken yet.
type watcher struct {
	updates chan *engine.Payload
	once    sync.Once
}

// offer replaces what the reader has not taken. It needs the board's mu: one goroutine
// at a time offers.
func (w *watcher) offer(p *engine.Payload) {
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

func (w *watcher) end() { w.once.Do(func() { close(w.updates) }) }

// Watch begins to watch a run. now is called once, before anything else is offered: it
// returns the state to begin with, and whether nothing will follow it. The channel is
// closed after the last state of the run, or by cancel.
func (b *Board) Watch(runID string, now func() (p *engine.Payload, last bool)) (updates <-chan *engine.Payload,
	cancel func()) {
	w := &watcher{updates: make(chan *engine.Payload, 1)}
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
	if b.watchers == nil {
		b.watchers = map[string]map[*watcher]bool{}
	}
	if b.watchers[runID] == nil {
		b.watchers[runID] = map[*watcher]bool{}
	}
	b.watchers[runID][w] = true
	return w.updates, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers[runID], w)
		if len(b.watchers[runID]) == 0 {
			delete(b.watchers, runID)
		}
		w.end()
	}
}

// Show offers a state of the run to all who watch it; after the last one they watch nothing any more.
func (b *Board) Show(runID string, p *engine.Payload, last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.watchers[runID] {
		w.offer(p)
	}
	if last {
		b.end(runID)
	}
}

// End tells those who watch the run that nothing follows.
func (b *Board) End(runID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(runID)
}

// Close is End for all runs.
func (b *Board) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.watchers {
		b.end(id)
	}
}

// end needs mu.
func (b *Board) end(runID string) {
	for w := range b.watchers[runID] {
		w.end()
	}
	delete(b.watchers, runID)
}

// Follow shows a run to those who watch it as read says it is, again and again, until
// nobody watches it, ctx ends, or read says that nothing follows or somebody else shows it
// (over). A run that is followed already is left to who does. A state that is nil is not shown.
func (b *Board) Follow(ctx context.Context, runID string, every time.Duration,
	read func(ctx context.Context) (p *engine.Payload, last, over bool)) {
	b.mu.Lock()
	if b.followed[runID] {
		b.mu.Unlock()
		return
	}
	if b.followed == nil {
		b.followed = map[string]bool{}
	}
	b.followed[runID] = true
	b.mu.Unlock()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		b.mu.Lock()
		watched := len(b.watchers[runID]) > 0 && ctx.Err() == nil
		if !watched {
			delete(b.followed, runID) // whoever watches from now on has it followed anew
		}
		b.mu.Unlock()
		if !watched {
			return
		}
		p, last, over := read(ctx)
		if p != nil && !over {
			b.Show(runID, p, last)
		}
		if last || over {
			b.mu.Lock()
			delete(b.followed, runID)
			b.mu.Unlock()
			return
		}
	}
}
