package nodes

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// TestAStalledNodeGetsEveryEvent: a node that does not read for minutes has, afterwards, every
// event that was decided, in order, and the newest state; and the other node did not wait.
func TestAStalledNodeGetsEveryEvent(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleetTest) {
		var stalled protocol.NodeEnd
		var lively *fakeNode
		f.wg.Go(func() {
			stalled, _ = f.links[0].Accept(f.ctx)
			_ = stalled.Send(f.ctx, hello("a", 0))
		})
		f.wg.Go(func() { lively = f.node(1); _ = lively.Send(f.ctx, hello("b", 0)) })
		f.open()
		const events = 2500
		for i := range events {
			for _, n := range f.nodes {
				if err := n.Send(protocol.RunEvent{Event: engine.Event{SequenceID: int64(i + 1)}}); err != nil {
					t.Fatal(err)
				}
				if err := n.Send(protocol.RunState{RunID: "r", LastSequence: int64(i + 1)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		got := 0
		for _, m := range lively.messages() {
			if _, ok := m.(protocol.RunEvent); ok {
				got++
			}
		}
		if got != events {
			t.Errorf("the other node has %d of %d events", got, events)
		}
		time.Sleep(3 * time.Minute)
		next, states := int64(1), 0
		for next <= events || states == 0 {
			m, err := stalled.Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			switch m := m.(type) {
			case protocol.RunEvent:
				if m.Event.SequenceID != next {
					t.Fatalf("event %d instead of %d", m.Event.SequenceID, next)
				}
				next++
			case protocol.RunState:
				// One may have been on its way when the node stopped reading.
				if states++; m.LastSequence != events && states > 1 {
					t.Errorf("the state up to %d", m.LastSequence)
				}
			}
		}
	})
}

// TestANodeThatHasGoneIsNotToldInSilence: who sends learns that the node is away.
func TestANodeThatHasGoneIsNotToldInSilence(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, f *fleetTest) {
		var e *fakeNode
		f.wg.Go(func() { e = f.node(0); _ = e.Send(f.ctx, hello("a", 0)) })
		f.open()
		_ = e.Close()
		synctest.Wait()
		if err := f.nodes[0].Send(protocol.RunEvent{}); !errors.Is(err, protocol.ErrClosed) {
			t.Errorf("sending to a node that has gone: %v", err)
		}
	})
}

// TestARunThatIsTooLargeIsRefusedBeforeItIsPlaced: nobody hears of it, and the reason names what of it is large. The
// server's own node takes it, as nothing is sent there.
func TestARunThatIsTooLargeIsRefusedBeforeItIsPlaced(t *testing.T) {
	huge := run(1, 2)
	for i := range huge {
		huge[i].Workload.Feed = &engine.Feed{CSV: strings.Repeat("<", 6<<20)}
	}
	for name, own := range map[string]bool{"remote": false, protocol.OwnNode: true} {
		withFleet(t, 1, func(t *testing.T, f *fleetTest) {
			var e *fakeNode
			f.wg.Go(func() {
				e = f.node(0)
				id := "a"
				if own {
					id = protocol.OwnNode
				}
				_ = e.Send(f.ctx, hello(id, 10))
			})
			f.open()
			_, err := f.AssignWorkers(nil, huge...)
			synctest.Wait()
			e.mu.Lock()
			told := slices.ContainsFunc(e.received, func(m protocol.ToNode) bool { _, ok := m.(protocol.AssignRun); return ok })
			e.mu.Unlock()
			if own {
				if err != nil || !told {
					t.Errorf("%s: %v, told: %t", name, err, told)
				}
				return
			}
			if err == nil || !strings.Contains(engine.ErrorText(err), "Large are its feed (36.0 MB)") || told {
				t.Errorf("%s: %v, told: %t", name, err, told)
			}
			if err := f.CheckSize(protocol.AssignRun{Workload: huge[0].Workload}); err == nil {
				t.Error("before there is a plan it is let in")
			}
		})
	}
}

// TestARunThatIsTooLargeForAMessageHarmsNoOther: its run worker is refused, and what is said of
// another run on the same node goes on.
func TestARunThatIsTooLargeForAMessageHarmsNoOther(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, f *fleetTest) {
		var e *fakeNode
		f.wg.Go(func() { e = f.node(0); _ = e.Send(f.ctx, hello("a", 10)) })
		f.open()
		on, err := f.AssignWorkers(nil, run(1, 2)...)
		if err != nil {
			t.Fatal(err)
		}
		huge := protocol.AssignRun{RunID: "huge", WorkerID: "worker-0", Connections: 8,
			Workload: engine.Workload{Params: make([]byte, 40<<20)}}
		if _, err := f.AssignWorkers(nil, huge); err != nil {
			t.Fatal(err)
		}
		_ = on[0].Send(event(7))
		if got := e.events(); len(got) != 1 || got[0] != 7 {
			t.Errorf("of the other run came %v", got)
		}
		if !slices.Contains(f.messages, "a of huge") || !slices.Contains(f.rejected, "huge/worker-0") {
			t.Errorf("heard %v, rejected %v", f.messages, f.rejected)
		}
		if _, err := f.AssignWorkers(
			nil,
			protocol.AssignRun{RunID: "next", WorkerID: "worker-0", Connections: 8},
		); err != nil {
			t.Errorf("its room is not free again: %v", err)
		}
	})
}
