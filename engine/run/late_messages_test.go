package run

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/protocoltest"
)

// recordingNode is a node that notes what it is told.
type recordingNode struct{ received []protocol.ToNode }

func (*recordingNode) ID() string                     { return "noting" }
func (n *recordingNode) Send(m protocol.ToNode) error { n.received = append(n.received, m); return nil }

// TestWhatComesAsALoopEndsIsNotLost: a part and an end that the loop of a run has not come to are left to
// recovery, also those that come as it is released.
func TestWhatComesAsALoopEndsIsNotLost(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		sc := fiveWorkers(engine.ScalingFixed)
		run := v.start(sc)
		l := v.svc.runs.Get(run.RunID)
		if _, err := v.svc.Stop(t.Context(), run.RunID, "ada"); err != nil {
			t.Fatal(err)
		}
		for range 600 {
			select {
			case <-l.done:
			default:
				v.wait(time.Second)
			}
		}
		// A run that is not in the store any more: nobody wants its parts, and their node is told.
		part := protocoltest.Announcement([]byte("x"))
		part.Artifact.RunID = "deleted"
		part.WorkID = protocol.PartWorkID(part.Artifact)
		node := &recordingNode{}
		left := newLive(v.svc, l.run, l.clock, nil, l.life, "")
		left.inbox.Put(nodeMessage{node, part})
		left.inbox.Put(nodeMessage{node, protocol.WorkerState{RunID: "deleted", WorkerID: "worker-0", ResultID: "r",
			Status: engine.WorkerCompleted}})
		left.release()
		if err := v.svc.recovery.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(node.received) != 2 {
			t.Fatalf("told %+v", node.received)
		}
		if _, ok := node.received[0].(protocol.ArtifactAck); !ok {
			t.Errorf("the part: %+v", node.received[0])
		}
		if _, ok := node.received[1].(protocol.WorkerAck); !ok {
			t.Errorf("the end: %+v", node.received[1])
		}
	})
}
