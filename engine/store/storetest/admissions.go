package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/placement"
	"github.com/loadstone-db/loadstone/engine/store"
)

func works(connections ...int) (all []engine.WorkerDemand) {
	for i, n := range connections {
		all = append(all, engine.WorkerDemand{ID: fmt.Sprint("worker-", i), Connections: n})
	}
	return all
}

func createAll(t testing.TB, s Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		Create(t, s, id)
	}
}

// starting starts a run if there is room for it.
func starting(t testing.TB, s Store, runID string, a *store.Admission) error {
	t.Helper()
	_, err := s.Transition(t.Context(), store.Transition{RunID: runID, From: []engine.Status{engine.StatusPrepared},
		To: engine.StatusRunning, Owner: "a", Admission: a})
	return err
}

// ending brings a run that is RUNNING to its end.
func ending(t testing.TB, s Store, runID string) {
	t.Helper()
	for _, to := range []engine.Status{engine.StatusCancelling, engine.StatusFailed} {
		_, err := s.Transition(t.Context(), store.Transition{RunID: runID, To: to})
		Must(t, err)
	}
}

func used(t testing.TB, s Store) map[string]int {
	t.Helper()
	l, err := s.Ledger(t.Context())
	Must(t, err)
	on := map[string]int{}
	for _, h := range l.Reserved {
		on[h.NodeID] += h.Connections
	}
	return on
}

func waits(t testing.TB, s Store) (ids []string) {
	t.Helper()
	l, err := s.Ledger(t.Context())
	Must(t, err)
	for _, w := range l.Queued {
		ids = append(ids, w.RunID)
	}
	return ids
}

// placements: room is taken with the start and given back with the end, whoever writes it.
func placements(t *testing.T, s Store) {
	createAll(t, s, "r1", "r2")
	nodes := []engine.NodeCapacity{{ID: "a", Capacity: 32}, {ID: "b", Capacity: 32}}
	first := &store.Admission{Nodes: nodes, Demands: works(20, 20)}
	Must(t, starting(t, s, "r1", first))
	if len(first.On) != 2 || first.On["worker-0"] == first.On["worker-1"] {
		t.Errorf("placed on %v", first.On)
	}
	// Together there is room for it, and on none of the nodes.
	WantError(t, starting(t, s, "r2", &store.Admission{Nodes: nodes, Demands: works(20)}), store.ErrNoCapacity)
	run, err := s.Run(t.Context(), "r2")
	Must(t, err)
	if run.Status != engine.StatusPrepared || run.OwnerEpoch != 0 {
		t.Errorf("a run without room is %s, epoch %d", run.Status, run.OwnerEpoch)
	}
	if on := used(t, s); on["a"] != 20 || on["b"] != 20 {
		t.Errorf("held %v", on)
	}
	ending(t, s, "r1")
	if on := used(t, s); len(on) != 0 {
		t.Errorf("after the end %v is held", on)
	}
	Must(t, starting(t, s, "r2", &store.Admission{Nodes: nodes, Demands: works(20)}))
}

// placementRace: many servers that place at once overfill no node, and place none in part.
func placementRace(t *testing.T, s Store) {
	const placers = 64
	ids := make([]string, placers)
	for i := range ids {
		ids[i] = fmt.Sprint("run-", i)
	}
	createAll(t, s, ids...)
	nodes := []engine.NodeCapacity{{ID: "a", Capacity: 50}, {ID: "b", Capacity: 41}, {ID: "c", Capacity: 7}}
	var all sync.WaitGroup
	errs := make([]error, placers)
	for i, id := range ids {
		all.Go(func() {
			_, errs[i] = s.Transition(t.Context(), store.Transition{RunID: id, From: []engine.Status{engine.StatusPrepared},
				To: engine.StatusRunning, Owner: fmt.Sprint("server-", i%4),
				Admission: &store.Admission{Nodes: nodes, Demands: works(5, 4)}})
		})
	}
	all.Wait()
	placed := 0
	for i, err := range errs {
		switch {
		case err == nil:
			placed++
		case !errors.Is(err, store.ErrNoCapacity):
			t.Errorf("%s: %v", ids[i], err)
		}
	}
	l, err := s.Ledger(t.Context())
	Must(t, err)
	parts := map[string]int{}
	on := map[string]int{}
	for _, h := range l.Reserved {
		parts[h.RunID]++
		on[h.NodeID] += h.Connections
	}
	if len(parts) != placed {
		t.Errorf("%d runs hold something, and %d were placed", len(parts), placed)
	}
	for i, id := range ids {
		if n := parts[id]; n != 0 && n != 2 || (n == 2) != (errs[i] == nil) {
			t.Errorf("%s has %d of 2 run workers: %v", id, n, errs[i])
		}
	}
	for _, n := range nodes {
		if on[n.ID] > n.Capacity {
			t.Errorf("the node %s has %d of %d connections", n.ID, on[n.ID], n.Capacity)
		}
	}
	// Ten runs of nine connections would fit by number; how the nodes are cut may leave out some.
	if placed < 8 {
		t.Errorf("%d runs are placed: %v", placed, on)
	}
}

// queueing: runs of a pool start in the order in which they came.
func queueing(t *testing.T, s Store) {
	ctx := t.Context()
	createAll(t, s, "r1", "r2", "r3", "r4")
	small := []engine.NodeCapacity{{ID: "a", Capacity: 10}}
	large := []engine.NodeCapacity{{ID: "a", Capacity: 100}}
	wait := func(id string, w ...engine.WorkerDemand) error {
		return s.Enqueue(ctx, store.QueuedRun{RunID: id, Pool: placement.Pool(w), Demands: w, By: "ada"})
	}
	Must(t, wait("r1", works(20)...))
	Must(t, wait("r2", works(5, 3)...))
	Must(t, wait("r1", works(20)...))
	l, err := s.Ledger(ctx)
	Must(t, err)
	if len(l.Queued) != 2 || l.Queued[0].RunID != "r1" || l.Queued[1].RunID != "r2" || l.Queued[1].By != "ada" ||
		l.Queued[1].RunName != "test of r2" || l.Queued[1].Since.IsZero() ||
		!slices.Equal(l.Queued[1].Demands, works(5, 3)) {
		t.Errorf("%+v", l.Queued)
	}
	// There is room for the second, but not before the first; a run of another pool waits for none of them.
	WantError(t, starting(t, s, "r2", &store.Admission{Nodes: small, Demands: works(5, 3)}), store.ErrNoCapacity)
	WantError(t, starting(t, s, "r3", &store.Admission{Nodes: large, Demands: works(1)}), store.ErrNoCapacity)
	own := []engine.WorkerDemand{{ID: "worker-0", Connections: 5, Only: "a"}}
	Must(t, starting(t, s, "r4", &store.Admission{Nodes: small, Demands: own}))
	Must(t, starting(t, s, "r1", &store.Admission{Nodes: large, Demands: works(20)}))
	if got := waits(t, s); !slices.Equal(got, []string{"r2"}) {
		t.Errorf("%v wait", got)
	}
	WantError(t, wait("r1", works(20)...), store.ErrConflict)
	if _, err := s.Transition(ctx, store.Transition{RunID: "r2", From: []engine.Status{engine.StatusPrepared},
		To: engine.StatusCancelled}); err != nil || len(waits(t, s)) != 0 {
		t.Errorf("a run that was stopped waits on: %v, %v", waits(t, s), err)
	}
	Must(t, wait("r3", works(1)...))
	Must(t, s.DeleteRun(ctx, "r3"))
	if got := waits(t, s); len(got) != 0 {
		t.Errorf("a run that was deleted waits on: %v", got)
	}
	WantError(t, wait("r3", works(1)...), store.ErrNotFound)
}

// liveReservations: its owner changes what a live run holds; who owned it before changes nothing.
func liveReservations(t *testing.T, s Store) {
	ctx := t.Context()
	createAll(t, s, "r1", "r2")
	nodes := []engine.NodeCapacity{{ID: "a", Capacity: 10}, {ID: "b", Capacity: 10}}
	Must(t, starting(t, s, "r1", &store.Admission{Nodes: nodes, Demands: works(6)}))
	Must(t, starting(t, s, "r2", &store.Admission{Nodes: nodes, Demands: works(6)}))
	old, err := s.TakeOver(ctx, "r1")
	Must(t, err)
	epoch, err := s.TakeOver(ctx, "r1")
	Must(t, err)
	join := func() *store.Admission {
		return &store.Admission{Nodes: nodes, Demands: []engine.WorkerDemand{{ID: "worker-1", Connections: 4}}}
	}
	WantError(t, s.Reserve(ctx, "r1", old, join()), store.ErrFenced)
	WantError(t, s.SetReservations(ctx, "r1", old, []engine.Reservation{{WorkerID: "worker-0"}}), store.ErrFenced)
	Must(t, s.Reserve(ctx, "r1", epoch, join()))
	third := &store.Admission{Nodes: nodes, Demands: []engine.WorkerDemand{{ID: "worker-2", Connections: 4},
		{ID: "worker-3", Connections: 1}}}
	WantError(t, s.Reserve(ctx, "r1", epoch, third), store.ErrNoCapacity)
	if on := used(t, s); on["a"]+on["b"] != 16 {
		t.Errorf("held %v", on)
	}
	// A run worker that moves needs no second place.
	move := &store.Admission{Nodes: nodes, Demands: []engine.WorkerDemand{{ID: "worker-1", Connections: 4}}}
	Must(t, s.Reserve(ctx, "r1", epoch, move))
	Must(t, s.SetReservations(ctx, "r1", epoch, []engine.Reservation{{WorkerID: "worker-0"},
		{WorkerID: "worker-1", NodeID: move.On["worker-1"], Connections: 12}}))
	l, err := s.Ledger(ctx)
	Must(t, err)
	if len(l.Reserved) != 2 ||
		l.Reserved[0] != (engine.Reservation{RunID: "r1", WorkerID: "worker-1", NodeID: move.On["worker-1"],
			Connections: 12}) {
		t.Errorf("%+v", l.Reserved)
	}
	ending(t, s, "r1")
	WantError(t, s.Reserve(ctx, "r1", epoch, join()), store.ErrConflict)
	WantError(
		t,
		s.SetReservations(ctx, "r1", epoch, []engine.Reservation{{WorkerID: "w", NodeID: "a"}}),
		store.ErrConflict,
	)
	if on := used(t, s); on["a"]+on["b"] != 6 {
		t.Errorf("held %v", on)
	}
}
