package placement

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
)

func someNodes(t *rapid.T, lowest int) []engine.NodeCapacity {
	nodes := make([]engine.NodeCapacity, rapid.IntRange(0, 6).Draw(t, "nodes"))
	for i := range nodes {
		nodes[i] = engine.NodeCapacity{ID: fmt.Sprint("n", i), Capacity: rapid.IntRange(lowest, 64).Draw(t, "capacity"),
			Used: rapid.IntRange(0, 80).Draw(t, "used")}
	}
	return nodes
}

// TestPlacementNeverOverfillsANode, and places all run workers or none.
func TestPlacementNeverOverfillsANode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := someNodes(t, 0)
		works := make([]engine.WorkerDemand, rapid.IntRange(1, 12).Draw(t, "works"))
		for i := range works {
			works[i] = engine.WorkerDemand{ID: fmt.Sprint("w", i), Connections: rapid.IntRange(0, 30).Draw(t, "connections")}
			if rapid.IntRange(0, 5).Draw(t, "only") == 0 {
				works[i].Only = fmt.Sprint("n", rapid.IntRange(0, 6).Draw(t, "which"))
			}
		}
		on := Assign(nodes, "r", works)
		if on == nil {
			return
		}
		if len(on) != len(works) {
			t.Fatalf("%d of %d are placed", len(on), len(works))
		}
		put := map[string]int{}
		for _, w := range works {
			if w.Only != "" && on[w.ID] != w.Only {
				t.Fatalf("%s is on %s, and only %s can carry it", w.ID, on[w.ID], w.Only)
			}
			put[on[w.ID]] += w.Connections
		}
		for _, n := range nodes {
			if put[n.ID] > 0 && n.Capacity > 0 && n.Used+put[n.ID] > n.Capacity {
				t.Fatalf("%+v is given %d more", n, put[n.ID])
			}
		}
		turned := slices.Clone(nodes)
		slices.Reverse(turned)
		if again := Assign(turned, "r", works); fmt.Sprint(again) != fmt.Sprint(on) {
			t.Fatalf("in another order of the nodes %v, not %v", again, on)
		}
	})
}

// TestEqualRunWorkersFindTheRoomThatThereIs: nothing is refused that would fit, and it is spread evenly.
func TestEqualRunWorkersFindTheRoomThatThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := someNodes(t, 1)
		each := rapid.IntRange(1, 20).Draw(t, "each")
		works := make([]engine.WorkerDemand, rapid.IntRange(1, 12).Draw(t, "works"))
		for i := range works {
			works[i] = engine.WorkerDemand{ID: fmt.Sprint("w", i), Connections: each}
		}
		places := 0
		for _, n := range nodes {
			places += max(n.Capacity-n.Used, 0) / each
		}
		on := Assign(nodes, "r", works)
		if (on != nil) != (places >= len(works)) {
			t.Fatalf("there are %d places for %d run workers: %v", places, len(works), on)
		}
		count := map[string]int{}
		for _, n := range on {
			count[n]++
		}
		for _, n := range nodes {
			// A node may have fewer than another only when it is full.
			for other, more := range count {
				if more > count[n.ID]+1 && n.Used+(count[n.ID]+1)*each <= n.Capacity {
					t.Fatalf("%s has %d and %s has %d", other, more, n.ID, count[n.ID])
				}
			}
		}
	})
}

// TestANodeThatComesMovesOnlyItsOwn: rendezvous hashing, for single run workers.
func TestANodeThatComesMovesOnlyItsOwn(t *testing.T) {
	nodes := []engine.NodeCapacity{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	on := map[string]int{}
	for i := range 300 {
		run, work := fmt.Sprint("run-", i), []engine.WorkerDemand{{ID: "w", Connections: 1}}
		before, after := Assign(nodes[:2], run, work)["w"], Assign(nodes, run, work)["w"]
		if after != before && after != "c" {
			t.Errorf("%s moved from %s to %s", run, before, after)
		}
		on[after]++
	}
	for _, n := range nodes {
		if on[n.ID] < 60 {
			t.Errorf("the nodes have %v", on)
		}
	}
}

// TestUnequalRunWorkersAreTriedTightly: an even spread would leave no room for the last one.
func TestUnequalRunWorkersAreTriedTightly(t *testing.T) {
	works := []engine.WorkerDemand{{ID: "1", Connections: 25}, {ID: "2", Connections: 24}, {ID: "3", Connections: 24}}
	for i := range 20 {
		if on := Assign(
			[]engine.NodeCapacity{{ID: "a", Capacity: 48}, {ID: "b", Capacity: 25}},
			fmt.Sprint(i),
			works,
		); len(
			on,
		) != 3 {
			t.Errorf("run %d: %v", i, on)
		}
	}
}

func TestACapacityThatHasShrunkTakesNothing(t *testing.T) {
	nodes := WithReservations(
		[]engine.NodeCapacity{{ID: "a", Capacity: 8}, {ID: "b", Capacity: 8}},
		[]engine.Reservation{
			{RunID: "r1", WorkerID: "w1", NodeID: "a", Connections: 16},
			{RunID: "r2", WorkerID: "w1", NodeID: "b", Connections: 3},
			{RunID: "r3", WorkerID: "w1", NodeID: "b", Connections: 5},
		},
		"r3",
	)
	if on := Assign(nodes, "r3", []engine.WorkerDemand{{ID: "w", Connections: 5}}); on["w"] != "b" {
		t.Errorf("%v on %+v", on, nodes)
	}
	if on := Assign(nodes, "r3", []engine.WorkerDemand{{ID: "w", Connections: 6}}); on != nil {
		t.Errorf("%v on %+v", on, nodes)
	}
	if free := Free(nodes, ""); free != (FreeCapacity{Nodes: 2, Connections: 5}) {
		t.Errorf("free %+v", free)
	}
	if !FitsWhenEmpty(nodes, "r3", []engine.WorkerDemand{{ID: "w", Connections: 8}}) ||
		FitsWhenEmpty(nodes, "r3", []engine.WorkerDemand{{ID: "w", Connections: 9}}) {
		t.Error("what would fit on empty nodes")
	}
}

func TestWhatARunWaitsForIsSaid(t *testing.T) {
	two := []engine.WorkerDemand{{ID: "a", Connections: 24}, {ID: "b", Connections: 24}}
	for _, c := range []struct {
		ahead int
		nodes []engine.NodeCapacity
		works []engine.WorkerDemand
		want  string
	}{
		{0, []engine.NodeCapacity{{ID: "x", Capacity: 32, Used: 24}, {ID: "y", Capacity: 32, Used: 24}}, two,
			"waits for 48 connections; 16 are free on 2 nodes"},
		{1, []engine.NodeCapacity{{ID: "x", Capacity: 48, Used: 48}}, two,
			"waits for 48 connections; 0 are free on 1 node, and 1 run waits before it"},
		{3, nil, two, "waits for 48 connections; there is no node to carry them, and 3 runs wait before it"},
		{0, []engine.NodeCapacity{{ID: "x"}}, two, "waits for 48 connections; there is room, and a server starts it in a moment"},
		{2, []engine.NodeCapacity{{ID: "x", Capacity: 64}}, two,
			"waits for 48 connections; 64 are free on 1 node, and 2 runs wait before it"},
		{0, []engine.NodeCapacity{{ID: "x", Capacity: 23}, {ID: "y", Capacity: 64, Used: 60}}, []engine.WorkerDemand{{ID: "a", Connections: 65}},
			"waits for 65 connections; they do not fit on 2 nodes, also when nothing else runs"},
		{0, []engine.NodeCapacity{{ID: "x", Capacity: 64}, {ID: "y", Capacity: 64, Used: 60}}, []engine.WorkerDemand{{ID: "a", Connections: 5, Only: "y"}},
			"waits for 5 connections; 4 are free on 1 node"},
	} {
		if got := WaitReason(c.nodes, c.works, c.ahead); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestWantedNodesHoldTheDemand: as many typical nodes as are wanted have room for all, no fewer
// than carry something, none when there is no demand, and never fewer for more demand.
func TestWantedNodesHoldTheDemand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Demand{Nodes: someNodes(t, 1)}
		total := 0
		var works []engine.WorkerDemand
		add := func(n int) {
			works = append(works, engine.WorkerDemand{ID: fmt.Sprint(len(works)), Connections: n})
			total += n
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "held") {
			h := engine.Reservation{RunID: "r", WorkerID: fmt.Sprint(i), NodeID: fmt.Sprint("n", i%3),
				Connections: rapid.IntRange(1, 40).Draw(t, "connections")}
			d.Reserved = append(d.Reserved, h)
			add(h.Connections)
		}
		for range rapid.IntRange(0, 6).Draw(t, "waiting") {
			d.Queued = append(d.Queued, rapid.IntRange(1, 40).Draw(t, "connections"))
			add(d.Queued[len(d.Queued)-1])
		}
		wanted, typical := d.NodesNeeded(), d.TypicalNode()
		switch {
		case len(works) == 0:
			if wanted != 0 {
				t.Fatalf("%d are wanted for nothing", wanted)
			}
			return
		case typical == 0:
			if wanted < 1 {
				t.Fatal("none is wanted")
			}
			return
		}
		if wanted < min(len(d.Reserved), 3) || wanted < (total+typical-1)/typical && total <= typical*len(works) &&
			slices.MaxFunc(
				works,
				func(a, b engine.WorkerDemand) int { return a.Connections - b.Connections },
			).Connections <= typical {
			t.Fatalf("%d are wanted: %+v", wanted, d)
		}
		more := d
		more.Queued = append(slices.Clone(d.Queued), 1)
		if more.NodesNeeded() < wanted {
			t.Fatalf("%d are wanted, and %d for more", wanted, more.NodesNeeded())
		}
	})
}

func TestWantedNodesFromZeroAndBack(t *testing.T) {
	var d Demand
	if d.NodesNeeded() != 0 {
		t.Error("idle")
	}
	d.Queued = []int{24, 24, 24}
	if d.NodesNeeded() != 1 {
		t.Errorf("from none %d are wanted", d.NodesNeeded())
	}
	d.Nodes = []engine.NodeCapacity{{ID: "a", Capacity: 48}}
	if d.NodesNeeded() != 2 {
		t.Errorf("%d are wanted", d.NodesNeeded())
	}
	d = Demand{
		Nodes: []engine.NodeCapacity{{ID: "a", Capacity: 48}, {ID: "b", Capacity: 48}},
		Reserved: []engine.Reservation{{RunID: "r", WorkerID: "1", NodeID: "a", Connections: 4},
			{RunID: "s", WorkerID: "1", NodeID: "b", Connections: 4}},
	}
	if d.NodesNeeded() != 2 {
		t.Errorf("two nodes carry something, and %d are wanted", d.NodesNeeded())
	}
}
