package recovery

import (
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/protocoltest"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/store/fake"
)

// fakeNode is a node of that name.
type fakeNode string

func (n fakeNode) ID() string               { return string(n) }
func (fakeNode) Send(protocol.ToNode) error { return nil }

// TestPartsAreTakenOfTheNodesThatMadeThemOnly, also when nobody carries their run any more: the first that
// is stored under a name keeps the others out.
func TestPartsAreTakenOfTheNodesThatMadeThemOnly(t *testing.T) {
	s := fake.New()
	run := engine.Run{RunID: "r", ResultID: "r", RunName: "left", Status: engine.StatusPrepared,
		Phase: engine.PhasePreparing, WorkersExpected: 2}
	if err := s.CreateRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Transition(t.Context(), store.Transition{RunID: "r", From: []engine.Status{engine.StatusPrepared},
		To: engine.StatusRunning, Owner: "a"}); err != nil {
		t.Fatal(err)
	}
	epoch, err := s.Claim(t.Context(), store.Claim{RunID: "r", Owner: "a", Reclaim: true})
	if err != nil {
		t.Fatal(err)
	}
	live := &idleProcess{}
	r := New(Options{Store: s, Owner: "a", Log: zerolog.Nop(), Lifetime: t.Context(), Runs: live, Nodes: live})
	announced := func(worker, result string, on nodes.Node) {
		p := protocoltest.Announcement([]byte("x"))
		p.Artifact.RunID, p.Artifact.WorkerID, p.Artifact.ResultID = "r", worker, result
		p.Artifact.Name = result + ".parquet"
		p.WorkID = protocol.PartWorkID(p.Artifact)
		r.AddPart(nodes.Part{WorkReady: p, Node: on})
	}
	announced("worker-0", "test-0", fakeNode("b")) // first, and again and again
	announced("worker-0", "test-0", fakeNode("a"))
	announced("worker-0", "test-0", fakeNode("b"))
	announced("worker-0", "another", fakeNode("a"))
	announced("worker-7", "test-7", fakeNode("a"))
	own := func() (on []string) {
		parts, err := r.trustedParts(t.Context(), "r", r.parts.ofRun("r"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			on = append(on, p.Artifact.WorkerID+" of "+p.Artifact.ResultID+" on "+p.Node.ID())
		}
		return on
	}
	if got := own(); len(got) < 3 {
		t.Errorf("before anything is stored: %v", got)
	}
	if err := s.SaveTick(t.Context(), store.Tick{RunID: "r", Epoch: epoch, Workers: []store.WorkerRow{{RunID: "r",
		WorkerID: "worker-0", NodeID: "a", ResultID: "test-0", Status: engine.WorkerRunning}}}); err != nil {
		t.Fatal(err)
	}
	if got := own(); len(got) != 1 || got[0] != "worker-0 of test-0 on a" {
		t.Errorf("%v", got)
	}
	record, err := r.recordParts(t.Context(), "r")
	if err != nil || len(record) != 1 || record[0].ResultID != "test-0" {
		t.Errorf("the record: %v, %v", record, err)
	}
}
