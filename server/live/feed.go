package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/store"
)

// runFeed is the one subscription to a run that its clients share. It has no queue, and no
// client has one: there is the newest message, and each client writes it when it can.
type runFeed struct {
	hub   *Hub
	runID string
	stop  chan struct{} // closed when the last client has left

	mu      sync.Mutex
	clients map[*client]struct{}
	last    []byte // the newest message, as every client is sent it
	number  int    // of the newest message; 0 before the first
	over    bool
	changed chan struct{} // closed when one of these changes
}

func newRunFeed(h *Hub, runID string) *runFeed {
	return &runFeed{hub: h, runID: runID, stop: make(chan struct{}), clients: map[*client]struct{}{},
		changed: make(chan struct{})}
}

func (f *runFeed) add(c *client) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clients[c] = struct{}{}
}

// closedChan is a channel from which one can always receive.
var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// changedAfter is a channel from which one can receive when there is a message after that
// number, or when nothing follows it.
func (f *runFeed) changedAfter(number int) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.number > number || f.over {
		return closedChan
	}
	return f.changed
}

// newest returns the newest message and its number when it is after the given one; else
// none, and whether nothing follows any more.
func (f *runFeed) newest(after int) (m []byte, number int, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.number > after {
		return f.last, f.number, false
	}
	return nil, after, f.over
}

// wake wakes who waits for a change. It needs mu.
func (f *runFeed) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *runFeed) remove(c *client) (left int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.clients, c)
	return len(f.clients)
}

// Message is what a socket sends.
type Message struct {
	Event string            `json:"event" enum:"RUN_UPDATE"`
	Data  *engine.LiveState `json:"data"`
}

// publish encodes the payload once, for all clients, in place of the one before.
func (f *runFeed) publish(p *engine.LiveState) {
	m, err := encode(p)
	if err != nil {
		f.hub.opts.Log.Error().Err(err).Str("run_id", f.runID).Msg("could not encode a live payload")
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = m
	f.number++
	f.wake()
}

func encode(p *engine.LiveState) ([]byte, error) {
	body, err := json.Marshal(Message{Event: "RUN_UPDATE", Data: p})
	if err != nil {
		return nil, fmt.Errorf("encoding payload: %w", err)
	}
	return body, nil
}

// finish lets every client write what it has and close. The hub starts a new
// feed for a client that comes later.
func (f *runFeed) finish() {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	if f.hub.feeds[f.runID] == f {
		delete(f.hub.feeds, f.runID)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	f.wake()
}

// run follows the run until it is over or nobody watches.
func (f *runFeed) run() {
	defer f.hub.running.Done()
	for {
		last, stopped := f.follow()
		if stopped {
			return
		}
		if last == nil || !last.Status.Terminal() {
			detail, err := f.detail()
			switch {
			case errors.Is(err, store.ErrNotFound) || engine.HasCode(err, engine.CodeNotFound):
				f.finish() // deleted under the eyes of its watchers
				return
			case err != nil:
				f.hub.opts.Log.Warn().Err(err).Str("run_id", f.runID).Msg("could not read a run that is being watched")
			default:
				f.publish(live.FinishedState(&detail, time.Now()))
				if isFinal(&detail) {
					f.finish()
					return
				}
			}
			if f.waitNext() {
				return
			}
			continue
		}
		f.finish()
		return
	}
}

// follow publishes a subscription's payloads until it ends. last is nil when there was none.
func (f *runFeed) follow() (last *engine.LiveState, stopped bool) {
	updates, cancel, err := f.hub.opts.Source.Subscribe(f.runID)
	if err != nil {
		return nil, false
	}
	defer cancel()
	if p := f.hub.opts.Source.LiveState(f.runID); p != nil {
		last = p
		f.publish(p)
	}
	for {
		select {
		case p, ok := <-updates:
			if !ok {
				return last, false
			}
			if p == last {
				continue
			}
			last = p
			f.publish(p)
		case <-f.stop:
			return last, true
		case <-f.hub.closing:
			return last, true
		}
	}
}

func (f *runFeed) detail() (engine.RunDetail, error) {
	ctx, cancel := context.WithTimeout(context.Background(), detailTimeout)
	defer cancel()
	return f.hub.opts.Source.Detail(ctx, f.runID)
}

// waitNext waits for the next look; true means that nobody watches any more.
func (f *runFeed) waitNext() bool {
	timer := time.NewTimer(f.hub.opts.PollInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-f.stop:
	case <-f.hub.closing:
	}
	return true
}

// isFinal reports that nothing of the run will change any more.
func isFinal(d *engine.RunDetail) bool {
	return d.Status.Terminal() && d.Phase != engine.PhaseProcessing
}
