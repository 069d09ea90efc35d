package run

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// fakeWrite is a write that ends when its channel is closed.
type fakeWrite chan struct{}

func (w fakeWrite) Done() <-chan struct{} { return w }
func (fakeWrite) Err() error              { return nil }

func phaseEvents(n int) []engine.Event {
	return slices.Repeat([]engine.Event{{Type: engine.EventSetPhase}}, n)
}

// sequences takes everything that may be sent now.
func sequences(s *sender, now time.Time) (out []int64) {
	for events, ok := s.next(now); ok; events, ok = s.next(now) {
		for _, e := range events {
			out = append(out, e.SequenceID)
		}
	}
	return out
}

func TestSenderNumbersEvents(t *testing.T) {
	now, s := time.Unix(100, 0), sender{sequence: 7}
	made := phaseEvents(2)
	numbered := s.number(now, "run-1", made)
	for i, e := range numbered {
		if e.SequenceID != int64(8+i) || e.RunID != "run-1" || !e.CreatedAt.Equal(now) {
			t.Errorf("event %d is %+v", i, e)
		}
		if made[i].SequenceID != 0 || !made[i].CreatedAt.Equal(now) {
			t.Errorf("what is stored, %d, is %+v: the store numbers it", i, made[i])
		}
	}
	if s.sequence != 9 {
		t.Errorf("the last event is %d", s.sequence)
	}
}

func TestSenderHoldsEventsBackUntilTheyAreStored(t *testing.T) {
	now := time.Unix(100, 0)
	stored, slow := make(fakeWrite), make(fakeWrite)
	close(stored)
	for name, c := range map[string]struct {
		writes []fakeWrite
		urgent []bool
		after  time.Duration
		sent   []int64
	}{
		"a write under way":                  {[]fakeWrite{slow}, []bool{false}, 0, nil},
		"a write that has ended":             {[]fakeWrite{stored}, []bool{false}, 0, []int64{1}},
		"a write that takes too long":        {[]fakeWrite{slow}, []bool{false}, pushTimeout, []int64{1}},
		"in order, whatever is stored":       {[]fakeWrite{slow, stored}, []bool{false, false}, 0, nil},
		"an urgent one":                      {[]fakeWrite{slow}, []bool{true}, 0, []int64{1}},
		"what waits before an urgent one":    {[]fakeWrite{slow, slow}, []bool{false, true}, 0, []int64{1, 2}},
		"what comes after an urgent one too": {[]fakeWrite{slow, slow}, []bool{true, false}, 0, []int64{1}},
	} {
		t.Run(name, func(t *testing.T) {
			var s sender
			for i, w := range c.writes {
				s.queue(now, s.number(now, "run-1", phaseEvents(1)), w, c.urgent[i])
			}
			if sent := sequences(&s, now.Add(c.after)); !slices.Equal(sent, c.sent) {
				t.Errorf("%v are sent, not %v", sent, c.sent)
			}
			idle := len(c.sent) == len(c.writes)
			if s.idle() != idle || s.deadline().IsZero() != idle || (s.stored() == nil) != idle {
				t.Errorf("idle %v, deadline %v, stored %v", s.idle(), s.deadline(), s.stored())
			}
		})
	}
}

func TestSenderKnowsTheLastWriteWithoutEvents(t *testing.T) {
	var s sender
	none := make(chan struct{})
	s.whenStored(t.Context(), none)
	<-none // nothing was decided
	write, done := make(fakeWrite), make(chan struct{})
	s.queue(time.Unix(100, 0), nil, write, true)
	if !s.idle() {
		t.Error("no events wait to be sent")
	}
	s.whenStored(t.Context(), done)
	select {
	case <-done:
		t.Fatal("it is not stored")
	case <-time.After(10 * time.Millisecond):
	}
	close(write)
	<-done
	lifetime, end := context.WithCancel(t.Context())
	end()
	over := make(chan struct{})
	s.queue(time.Unix(100, 0), nil, make(fakeWrite), false)
	s.whenStored(lifetime, over)
	<-over // the process ends
}
