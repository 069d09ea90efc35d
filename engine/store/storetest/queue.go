// This part is the part of storetest about runs that wait for nodes that are not there.

package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/placement"
	"github.com/loadstone-db/loadstone/engine/store"
)

// wait has runs wait, each for one run worker of so many connections.
func wait(t testing.TB, s Store, connections int, ids ...string) {
	t.Helper()
	for _, id := range ids {
		Must(t, s.CreateRun(t.Context(), engine.Run{RunID: id, ResultID: id, RunName: id, WorkersExpected: 1}))
		Must(t, s.Enqueue(t.Context(), store.QueuedRun{RunID: id, Demands: queueDemand(connections), By: "ada"}))
	}
}

func queueDemand(connections int) []engine.WorkerDemand {
	return []engine.WorkerDemand{{ID: "worker-0", Connections: connections}}
}

func unfit(t testing.TB, s Store) (order []string, all map[string]time.Duration) {
	t.Helper()
	l, err := s.Ledger(t.Context())
	Must(t, err)
	all = map[string]time.Duration{}
	for _, w := range l.Queued {
		order, all[w.RunID] = append(order, w.RunID), w.Unfit
	}
	return order, all
}

// Feasibility checks that it is known how long nobody has known nodes for a run that waits.
func Feasibility(t *testing.T, s Store) {
	wait(t, s, 4, "r1", "r2")
	time.Sleep(20 * time.Millisecond)
	_, before := unfit(t, s)
	if before["r1"] < 20*time.Millisecond || before["r2"] < 20*time.Millisecond || before["r2"] > time.Hour {
		t.Errorf("%v since they came", before)
	}
	Must(t, s.MarkFeasible(t.Context(), []string{"r1", "there is no such run"}))
	Must(t, s.MarkFeasible(t.Context(), nil))
	Must(t, s.Enqueue(t.Context(), store.QueuedRun{RunID: "r2", Demands: queueDemand(4), By: "ada"}))
	order, after := unfit(t, s)
	if !slices.Equal(order, []string{"r1", "r2"}) || after["r2"] < before["r2"] || after["r1"] >= after["r2"] ||
		after["r2"]-after["r1"] < 20*time.Millisecond {
		t.Errorf("%v: %v, before %v", order, after, before)
	}
}

// QueueBypass checks that a run for which nobody has known nodes for long holds back nobody, and does again once
// somebody knows some. age makes it as if a run had not fitted for that much longer.
func QueueBypass(t *testing.T, s Store, age func(runID string, by time.Duration)) {
	wait(t, s, 100, "large")
	wait(t, s, 4, "r1", "r2", "r3")
	start := func(id string, want error) {
		t.Helper()
		_, err := s.Transition(t.Context(), store.Transition{RunID: id, From: []engine.Status{engine.StatusPrepared},
			To: engine.StatusRunning, Owner: "a", Admission: &store.Admission{
				Nodes: []engine.NodeCapacity{{ID: "a", Capacity: 50}}, Demands: queueDemand(4)}})
		if want == nil {
			Must(t, err)
		} else if err == nil {
			t.Errorf("%s was started", id)
		}
	}
	start("r1", store.ErrNoCapacity)
	age("large", placement.BypassAfter-10*time.Second)
	start("r1", store.ErrNoCapacity)
	age("large", 10*time.Second)
	// The others keep their order.
	start("r2", store.ErrNoCapacity)
	start("r1", nil)
	Must(t, s.MarkFeasible(t.Context(), []string{"large"}))
	start("r2", store.ErrNoCapacity)
	age("large", placement.BypassAfter)
	start("r2", nil)
	if order, _ := unfit(t, s); !slices.Equal(order, []string{"large", "r3"}) {
		t.Errorf("%v wait", order)
	}
}
