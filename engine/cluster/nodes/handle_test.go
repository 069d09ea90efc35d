package nodes

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/protocoltest"
)

// events are the sequence numbers of what a node was told about runs.
func (e *fakeNode) events() (all []int64) {
	for _, m := range e.messages() {
		if m, ok := m.(protocol.RunEvent); ok {
			all = append(all, m.Event.SequenceID)
		}
	}
	return all
}

func event(n int64) protocol.RunEvent {
	return protocol.RunEvent{Event: engine.Event{RunID: "r", SequenceID: n}}
}

// TestANodeThatComesBackByAnotherWayHearsItsRuns: what is decided while it is away, and
// afterwards, goes to where it is now, in order, and its parts are fetched from there.
func TestANodeThatComesBackByAnotherWayHearsItsRuns(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleetTest) {
		var first *fakeNode
		f.wg.Go(func() { first = f.node(0); _ = first.Send(f.ctx, hello("a", 10)) })
		f.open() // the second way leads nowhere yet
		on, err := f.AssignWorkers(nil, run(1, 2)...)
		if err != nil {
			t.Fatal(err)
		}
		first.send(t, protocol.RunAccepted{RunID: "r", WorkerID: "worker-0"})
		first.send(t, protocoltest.Announcement([]byte("x")))
		_ = first.Close()
		synctest.Wait()
		_ = on[0].Send(event(1))
		_ = on[0].Send(event(2))
		second := f.node(1)
		m := hello("a", 10)
		m.Workers = []protocol.WorkerState{{RunID: "r", WorkerID: "worker-0", Status: engine.WorkerRunning}}
		second.send(t, m)
		if err := on[0].Send(event(3)); err != nil {
			t.Error(err)
		}
		if got := second.events(); len(got) != 3 || got[0] != 1 || got[1] != 2 || got[2] != 3 {
			t.Errorf("by the second way came %v", got)
		}
		if end := f.parts[0].Node.(*handle).stream(); end == nil {
			t.Error("its part cannot be fetched from where it is")
		}
		if f.parts[0].Node != on[0] {
			t.Error("one node is two to those who hold it")
		}
		f.parts[0].Acknowledge()
		if got := second.messages(); len(got) == 0 || got[len(got)-1].(protocol.ArtifactAck).WorkerID != "worker-0" {
			t.Errorf("told %+v", got)
		}
	})
}

// TestARunThatAnotherServerHasTakesNoRoomHere, and nothing of it is ended.
func TestARunThatAnotherServerHasTakesNoRoomHere(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, f *fleetTest) {
		var n *fakeNode
		f.wg.Go(func() { n = f.node(0); _ = n.Send(f.ctx, hello("a", 4)) })
		f.open()
		if _, err := f.AssignWorkers(nil, run(2, 2)...); err != nil {
			t.Fatal(err)
		}
		n.send(t, protocol.RunAccepted{RunID: "r", WorkerID: "worker-0"})
		other := protocol.AssignRun{RunID: "other", WorkerID: "worker-0", Connections: 4}
		if _, err := f.AssignWorkers(nil, other); err == nil {
			t.Fatal("there is room for more than the node holds")
		}
		f.HandOffRun("r")
		if _, err := f.AssignWorkers(nil, other); err != nil {
			t.Errorf("the room of a run that another server has: %v", err)
		}
		for _, m := range n.messages() {
			if e, ok := m.(protocol.RunEvent); ok {
				t.Errorf("its node is told %+v", e)
			}
		}
	})
}

// TestANodeThatIsTakenOverFromASilentStreamIsHeard: the old stream stands, and is asked in vain.
func TestANodeThatIsTakenOverFromASilentStreamIsHeard(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleetTest) {
		silent := make(chan protocol.NodeEnd, 1)
		f.wg.Go(func() {
			e, err := f.links[0].Accept(f.ctx)
			if err != nil {
				return
			}
			_ = e.Send(f.ctx, hello("a", 10))
			silent <- e
		})
		f.open()
		<-silent                          // it reads nothing
		_ = f.handles["a"].Send(event(1)) // is being sent, in vain, when the node comes by the second way
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if !f.Capacity().None {
			t.Fatal("a silent node is in rotation")
		}
		second := f.node(1)
		second.send(t, hello("a", 10))
		_ = f.handles["a"].Send(event(2))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := second.events(); len(got) != 2 || got[0] != 1 || got[1] != 2 {
			t.Errorf("by the second way came %v", got)
		}
		if f.Capacity().Connections != 10 {
			t.Errorf("a node that answers is out of rotation: %+v", f.Capacity())
		}
	})
}
