package run

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// sender numbers the events of a run and holds them back until the store has them. It sends nothing itself: the loop
// sends what it hands out. The zero sender begins with event 1.
type sender struct {
	sequence  int64    // of the last event made
	lastStore RowWrite // the last transition queued
	pending   []pendingPush
	lastState time.Time
}

// pendingPush are events that wait for the store before they are sent.
type pendingPush struct {
	events   []engine.Event
	write    RowWrite
	deadline time.Time
}

// number gives events of a run their time, and returns them with their place in the sequence of the run.
func (s *sender) number(now time.Time, runID string, events []engine.Event) []engine.Event {
	numbered := make([]engine.Event, len(events))
	for i := range events {
		s.sequence++
		events[i].CreatedAt = engine.At(now)
		numbered[i] = events[i]
		numbered[i].RunID, numbered[i].SequenceID = runID, s.sequence
	}
	return numbered
}

// queue takes numbered events, none or more, whose write is under way. Urgent ones do not wait for it, nor does
// anything that waits before them, because events go out in order.
func (s *sender) queue(now time.Time, events []engine.Event, write RowWrite, urgent bool) {
	s.lastStore = write
	if len(events) == 0 {
		return
	}
	s.pending = append(s.pending, pendingPush{events: events, write: write, deadline: now.Add(pushTimeout)})
	if urgent {
		for i := range s.pending {
			s.pending[i].deadline = now
		}
	}
}

// next hands out the events of the next transition, once its write has ended or its time has come.
func (s *sender) next(now time.Time) (events []engine.Event, ok bool) {
	if len(s.pending) == 0 {
		return nil, false
	}
	first := s.pending[0]
	select {
	case <-first.write.Done():
	default:
		if now.Before(first.deadline) {
			return nil, false
		}
	}
	s.pending = s.pending[1:]
	return first.events, true
}

// idle reports whether no event waits to be sent.
func (s *sender) idle() bool { return len(s.pending) == 0 }

// stored is closed when the write has ended that the next events wait for; nil where none wait.
func (s *sender) stored() <-chan struct{} {
	if s.idle() {
		return nil
	}
	return s.pending[0].write.Done()
}

// deadline is when the next events go out whether or not they are stored, zero where none wait.
func (s *sender) deadline() time.Time {
	if s.idle() {
		return time.Time{}
	}
	return s.pending[0].deadline
}

// stateDue reports, once an interval, that the absolute state is to be repeated.
func (s *sender) stateDue(now time.Time) bool {
	if now.Sub(s.lastState) < protocol.StateInterval {
		return false
	}
	s.lastState = now
	return true
}

// whenStored closes done once every transition queued so far is stored, or the lifetime has ended.
func (s *sender) whenStored(lifetime context.Context, done chan struct{}) {
	last := s.lastStore
	if last == nil {
		close(done)
		return
	}
	go func() {
		select {
		case <-last.Done():
		case <-lifetime.Done():
		}
		close(done)
	}()
}
