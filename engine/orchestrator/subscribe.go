package orchestrator

import (
	"context"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/keeper"
	"github.com/loadstone-db/loadstone/engine/payload"
)

// subscriber holds the latest payload that its reader has not taken yet.
type subscriber struct {
	updates chan *engine.Payload
	once    sync.Once
}

// offer replaces what the reader has not taken. One goroutine at a time calls it.
func (s *subscriber) offer(p *engine.Payload) {
	for {
		select {
		case s.updates <- p:
			return
		default:
		}
		select {
		case <-s.updates:
		default:
		}
	}
}

func (s *subscriber) end() { s.once.Do(func() { close(s.updates) }) }

// Subscribe returns the payloads of a run, the current one at once. The channel
// holds the latest payload only: a slow reader skips some and delays nobody. It
// is closed after the final payload of a run, or by cancel. A run that has not
// been started sends one payload, and goes on when it starts.
func (s *Service) Subscribe(runID string) (updates <-chan *engine.Payload, cancel func(), err error) {
	ctx, done := context.WithTimeout(s.lifetime, keeper.StoreLimit)
	defer done()
	sub := &subscriber{updates: make(chan *engine.Payload, 1)}
	cancel = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.subs[runID][sub] {
			delete(s.subs[runID], sub)
			if len(s.subs[runID]) == 0 {
				delete(s.subs, runID)
			}
		}
		sub.end()
	}
	if s.follow(runID, sub) {
		return sub.updates, cancel, nil
	}
	d, err := s.Detail(ctx, runID)
	if err != nil {
		return nil, nil, err
	}
	p := payload.Resting(&d, time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.live[runID]; l != nil {
		s.add(runID, sub)
		if now := l.payload.Load(); now != nil {
			p = now
		}
		sub.offer(p)
		return sub.updates, cancel, nil
	}
	sub.offer(p)
	if d.Status.Terminal() && d.Phase == engine.PhaseNone {
		sub.end()
	} else {
		s.add(runID, sub)
	}
	return sub.updates, cancel, nil
}

// follow subscribes to a live run; false when it is not live.
func (s *Service) follow(runID string, sub *subscriber) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.live[runID]
	if l == nil {
		return false
	}
	s.add(runID, sub)
	if p := l.payload.Load(); p != nil {
		sub.offer(p)
	}
	return true
}

// add needs mu.
func (s *Service) add(runID string, sub *subscriber) {
	if s.subs[runID] == nil {
		s.subs[runID] = map[*subscriber]bool{}
	}
	s.subs[runID][sub] = true
}

// publish offers a payload to all subscribers of the run; last closes them.
func (s *Service) publish(runID string, p *engine.Payload, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.subs[runID] {
		sub.offer(p)
	}
	if last {
		s.dropSubscribers(runID)
	}
}

// dropSubscribers needs mu.
func (s *Service) dropSubscribers(runID string) {
	for sub := range s.subs[runID] {
		sub.end()
	}
	delete(s.subs, runID)
}
