package run

import (
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

type fakeNode string

func (n fakeNode) ID() string                 { return string(n) }
func (n fakeNode) Send(protocol.ToNode) error { return nil }

// TestNodesHearWhatIsForThem: with many nodes and as many run workers, telling all to all is their
// square. What a node must have it still gets: all of what is for the run or a group, and the
// targets of its own run workers and of those of which nobody knows where they are.
func TestNodesHearWhatIsForThem(t *testing.T) {
	a, b := fakeNode("a"), fakeNode("b")
	var c WorkerTable
	for id, n := range map[string]nodes.Node{"worker-0": a, "worker-1": b, "worker-2": a, "worker-3": nil} {
		c.Register(&Worker{ID: id, Node: n})
	}
	all := []nodes.Node{a, b}
	for _, s := range []struct {
		data engine.EventData
		want []nodes.Node
	}{
		{engine.EventData{Scope: engine.ScopeRun}, all},
		{engine.EventData{Scope: engine.ScopeWorkerGroup, WorkerID: "worker-0"}, all},
		{engine.EventData{Scope: engine.ScopeWorker, WorkerID: "worker-1"}, []nodes.Node{b}},
		{engine.EventData{Scope: engine.ScopeWorker, WorkerID: "worker-3"}, all},
		{engine.EventData{Scope: engine.ScopeWorker, WorkerID: "another"}, all},
	} {
		if got := c.NodesFor(engine.Event{Data: s.data}, all); !slices.Equal(got, s.want) {
			t.Errorf("%+v is told to %v, not %v", s.data, got, s.want)
		}
	}
	state := protocol.RunState{RunID: "r", Targets: map[string]engine.WorkerTarget{}}
	for i, w := range c.Workers {
		state.Targets[w.ID] = engine.WorkerTarget{TargetConnections: i + 1}
	}
	on := c.WorkersByNode()
	own := state.ForWorkers(on[a], on[nil])
	for _, id := range []string{"worker-0", "worker-2", "worker-3"} {
		if own.Targets[id] != state.Targets[id] {
			t.Errorf("the target of %s: %+v, not %+v", id, own.Targets[id], state.Targets[id])
		}
	}
	if len(own.Targets) != 3 || len(state.Targets) != 4 || own.RunID != "r" {
		t.Errorf("%+v of %+v", own, state)
	}
}

// TestAWordWithoutATimeIsAsOldAsTheOneBefore: what a run worker says has a time of its run; of one that is lost with
// its node only that is known when it was heard last.
func TestAWordWithoutATimeIsAsOldAsTheOneBefore(t *testing.T) {
	at := time.Unix(1_790_000_000, 0)
	w := Worker{LastSeen: at}
	if said := w.RecordReport(at.Add(time.Second), at.Add(2*time.Second)); !said.Equal(at.Add(time.Second)) {
		t.Errorf("said at %v", said)
	}
	if said := w.RecordReport(time.Time{}, at.Add(time.Minute)); !said.Equal(at.Add(2*time.Second)) ||
		!w.LastSeen.Equal(at.Add(time.Minute)) {
		t.Errorf("said at %v, heard %v", said, w.LastSeen)
	}
}

func TestExcusedSilence(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct{ silent, excused, left time.Duration }{
		"silent before":            {40 * time.Second, 30 * time.Second, 10 * time.Second},
		"silent only meanwhile":    {30 * time.Second, 30 * time.Second, 0},
		"heard of meanwhile":       {5 * time.Second, 30 * time.Second, 0},
		"nothing is to be excused": {5 * time.Second, 0, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var workerTable WorkerTable
			workerTable.Register(&Worker{ID: "worker-0", LastSeen: now.Add(-c.silent)})
			workerTable.Excuse(c.excused, now)
			if left := now.Sub(workerTable.Workers[0].LastSeen); left != c.left {
				t.Errorf("it is silent for %v, not %v", left, c.left)
			}
		})
	}
}
