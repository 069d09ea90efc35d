package fleet

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
)

// TestAStalledNodeGetsEveryEvent: a node that does not read for minutes has, afterwards, every
// event that was decided, in order, and the newest state; and the other node did not wait.
func TestAStalledNodeGetsEveryEvent(t *testing.T) {
	inFleet(t, 2, func(t *testing.T, f *Fleet, ends []control.NodeEnd, h *heard, open func()) {
		for i, end := range ends {
			go speak(t, end, hello(string(rune('a'+i)), 0))
		}
		open()
		const events = 2500
		var lively int
		go func() {
			for {
				m, err := ends[1].Receive(t.Context())
				if err != nil {
					return
				}
				if _, ok := m.(control.RunEvent); ok {
					lively++
				}
			}
		}()
		for i := range events {
			for _, n := range f.nodes {
				if err := n.Send(control.RunEvent{Event: engine.Event{SequenceID: int64(i + 1)}}); err != nil {
					t.Fatal(err)
				}
				if err := n.Send(control.RunState{RunID: "r", LastSequence: int64(i + 1)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		synctest.Wait()
		if lively != events {
			t.Errorf("the other node has %d of %d events", lively, events)
		}
		time.Sleep(3 * time.Minute)
		next, states := int64(1), 0
		for next <= events || states == 0 {
			m, err := ends[0].Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			switch m := m.(type) {
			case control.RunEvent:
				if m.Event.SequenceID != next {
					t.Fatalf("event %d instead of %d", m.Event.SequenceID, next)
				}
				next++
			case control.RunState:
				// One may have been on its way when the node stopped reading.
				if states++; m.LastSequence != events && states > 1 {
					t.Errorf("the state up to %d", m.LastSequence)
				}
			}
		}
	})
}

// TestANodeThatHasGoneIsNotToldInSilence.
func TestANodeThatHasGoneIsNotToldInSilence(t *testing.T) {
	inFleet(t, 1, func(t *testing.T, f *Fleet, ends []control.NodeEnd, _ *heard, open func()) {
		go speak(t, ends[0], hello("a", 0))
		open()
		_ = ends[0].Close()
		synctest.Wait()
		if err := f.nodes[0].Send(control.RunEvent{}); !errors.Is(err, control.ErrClosed) {
			t.Errorf("sending to a node that has gone: %v", err)
		}
	})
}
