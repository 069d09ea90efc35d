package run

import (
	"testing"
	"testing/synctest"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/protocoltest"
)

// otherNode is a node that carries nothing of the run.
type otherNode struct{}

func (otherNode) ID() string                 { return "another" }
func (otherNode) Send(protocol.ToNode) error { return nil }

// TestANodeSpeaksForItsOwnRunWorkersOnly: neither rejections, states, snapshots and lines nor parts
// of another node count, and parts of a run worker that the run has not, from no node.
func TestANodeSpeaksForItsOwnRunWorkersOnly(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		run := v.start(fiveWorkers(engine.ScalingFixed))
		l := v.svc.runs.Get(run.RunID)
		w := l.Worker("worker-0")
		part := protocoltest.Announcement([]byte("x"))
		part.Artifact.RunID, part.Artifact.WorkerID, part.Artifact.ResultID = run.RunID, w.ID, w.ResultID
		part.WorkID = protocol.PartWorkID(part.Artifact)
		nobodys := part
		nobodys.Artifact.WorkerID = "worker-77"
		nobodys.WorkID = protocol.PartWorkID(nobodys.Artifact)
		says := func(from interface {
			ID() string
			Send(m protocol.ToNode) error
		}, all ...protocol.FromNode) {
			for _, m := range all {
				messageHandler{v.svc}.Receive(run.RunID, from, m)
			}
			synctest.Wait()
		}
		lines := len(v.store.lines())
		says(otherNode{}, protocol.RunRejected{RunID: run.RunID, WorkerID: w.ID, Err: &engine.Error{Message: "no"}},
			protocol.WorkerState{RunID: run.RunID, WorkerID: w.ID, ResultID: w.ResultID, Status: engine.WorkerFailed},
			protocol.Log{LogEntry: engine.LogEntry{RunID: run.RunID, WorkerID: w.ID, ResultID: w.ResultID, Message: "forged"}},
			part)
		says(w.Node, nobodys)
		if len(l.finisher.parts) != 0 {
			t.Errorf("parts of others are kept: %v", l.finisher.parts)
		}
		if w.State.Status != engine.WorkerRunning || l.run.Status != engine.StatusRunning {
			t.Errorf("the run worker is %s, the run %s", w.State.Status, l.run.Status)
		}
		if len(l.untrustedNodes) != 2 {
			t.Errorf("noted: %v", l.untrustedNodes)
		}
		// The run's loop takes it, and has what was read above behind it.
		says(otherNode{}, protocol.RunRejected{RunID: run.RunID, WorkerID: w.ID, Err: &engine.Error{Message: "no"}})
		v.wait(2e9)
		for _, line := range v.store.lines()[lines:] {
			if line.Message == "forged" {
				t.Error("a line of another node is in the log")
			}
		}
		says(w.Node, part)
		if len(l.finisher.parts) != 1 {
			t.Errorf("of its own node %d parts are kept", len(l.finisher.parts))
		}
		delete(l.finisher.parts, part.WorkID) // nobody has it
		says(otherNode{}, protocol.RunRejected{RunID: run.RunID, WorkerID: w.ID, Err: &engine.Error{Message: "no"}})
	})
}
