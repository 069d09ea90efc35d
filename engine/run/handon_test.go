package run

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/protocoltest"
)

// noting is a node that notes what it is told.
type noting struct{ told []protocol.ToNode }

func (*noting) ID() string                     { return "noting" }
func (n *noting) Send(m protocol.ToNode) error { n.told = append(n.told, m); return nil }

// TestWhatComesAsALoopEndsIsNotLost: a part and an end that the loop of a run has not come to are left to
// recovery, also those that come as it is released.
func TestWhatComesAsALoopEndsIsNotLost(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtual) {
		sc := fiveWorkers(engine.ScalingFixed)
		run := v.start(sc)
		l := v.svc.runs.Find(run.RunID)
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
		part := protocoltest.Announced([]byte("x"))
		part.Artifact.RunID = "deleted"
		part.WorkID = protocol.WorkIDOf(part.Artifact)
		node := &noting{}
		left := newLive(v.svc, l.run, l.clock, nil, l.life, "")
		left.inbox.Put(fromNode{node, part})
		left.inbox.Put(fromNode{node, protocol.WorkerState{RunID: "deleted", WorkerID: "worker-0", ResultID: "r",
			Status: engine.WorkerCompleted}})
		left.release()
		if err := v.svc.recovery.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(node.told) != 2 {
			t.Fatalf("told %+v", node.told)
		}
		if _, ok := node.told[0].(protocol.ArtifactAck); !ok {
			t.Errorf("the part: %+v", node.told[0])
		}
		if _, ok := node.told[1].(protocol.WorkerAck); !ok {
			t.Errorf("the end: %+v", node.told[1])
		}
	})
}
