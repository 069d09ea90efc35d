package admission

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/placement"
	"github.com/loadstone-db/loadstone/engine/store"
)

func drawNodes(t *rapid.T, most int) []engine.NodeCapacity {
	nodes := make([]engine.NodeCapacity, rapid.IntRange(0, most).Draw(t, "nodes"))
	for i := range nodes {
		nodes[i] = engine.NodeCapacity{ID: fmt.Sprint("n", i), Capacity: rapid.IntRange(1, 16).Draw(t, "capacity"),
			Used: rapid.IntRange(0, 16).Draw(t, "used")}
	}
	return nodes
}

func drawDemands(t *rapid.T) (all []engine.WorkerDemand) {
	for i := range rapid.IntRange(1, 3).Draw(t, "run workers") {
		all = append(
			all,
			engine.WorkerDemand{ID: fmt.Sprint("w", i), Connections: rapid.IntRange(1, 16).Draw(t, "connections")},
		)
	}
	return all
}

// TestOnlyWhatNobodyCanCarryIsLetBy: of each pool the first is started for which there are nodes, and none behind one
// for which there are, or were a moment ago.
func TestOnlyWhatNobodyCanCarryIsLetBy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := drawNodes(t, 4)
		waiting := make([]store.QueuedRun, rapid.IntRange(0, 8).Draw(t, "waiting"))
		for i := range waiting {
			w := store.QueuedRun{RunID: fmt.Sprint("r", i), Demands: drawDemands(t)}
			if rapid.IntRange(0, 3).Draw(t, "own") == 0 {
				w.Pool = "n0"
				for j := range w.Demands {
					w.Demands[j].Only = w.Pool
				}
			}
			w.Unfit = time.Duration(rapid.IntRange(0, 90).Draw(t, "unfit")) * time.Second
			waiting[i] = w
		}
		got := nextAdmissions(waiting, nodes)
		started, fit := map[string]bool{}, map[string]bool{}
		for _, w := range got.start {
			if started[w.RunID] = true; placement.Assign(nodes, w.RunID, w.Demands) == nil {
				t.Fatalf("%s is started without room", w.RunID)
			}
		}
		for _, id := range got.fit {
			fit[id] = true
		}
		held := map[string]bool{}
		for _, w := range waiting {
			ever := placement.FitsWhenEmpty(nodes, w.RunID, w.Demands)
			if fit[w.RunID] != (ever && w.Unfit >= fitInterval) {
				t.Fatalf("%s, unfit for %s, ever %v: said to fit %v", w.RunID, w.Unfit, ever, fit[w.RunID])
			}
			first := !held[w.Pool] && (ever || w.Unfit < placement.BypassAfter)
			if room := placement.Assign(nodes, w.RunID, w.Demands) != nil; started[w.RunID] != (first && room) {
				t.Fatalf("%s (first %v, room %v) is started: %v", w.RunID, first, room, started[w.RunID])
			}
			held[w.Pool] = held[w.Pool] || first
		}
	})
}

// queueSimulation is a queue of runs that take their time on nodes that come and go, in steps of a second.
type queueSimulation struct {
	nodes     []engine.NodeCapacity
	away      map[string]bool
	waiting   []store.QueuedRun
	held      []engine.Reservation
	ends      map[string]int
	now       int
	startedAt map[string]int
}

// visibleNodes are the nodes that are there.
func (c *queueSimulation) visibleNodes() []engine.NodeCapacity {
	return placement.WithReservations(
		slices.DeleteFunc(slices.Clone(c.nodes), func(n engine.NodeCapacity) bool { return c.away[n.ID] }),
		c.held,
		"",
	)
}

func (c *queueSimulation) step(lasts func(runID string) int) {
	c.now++
	for i := range c.waiting {
		c.waiting[i].Unfit += time.Second
	}
	c.held = slices.DeleteFunc(c.held, func(h engine.Reservation) bool { return c.ends[h.RunID] <= c.now })
	for {
		got := nextAdmissions(c.waiting, c.visibleNodes())
		for i := range c.waiting {
			if slices.Contains(got.fit, c.waiting[i].RunID) {
				c.waiting[i].Unfit = 0
			}
		}
		for _, w := range got.start {
			on := placement.Assign(c.visibleNodes(), w.RunID, w.Demands)
			for _, one := range w.Demands {
				c.held = append(c.held, engine.Reservation{RunID: w.RunID, WorkerID: one.ID, NodeID: on[one.ID],
					Connections: one.Connections})
			}
			c.ends[w.RunID], c.startedAt[w.RunID] = c.now+lasts(w.RunID), c.now
			c.waiting = slices.DeleteFunc(c.waiting, func(o store.QueuedRun) bool { return o.RunID == w.RunID })
		}
		if len(got.start) == 0 {
			return
		}
	}
}

// TestNobodyWaitsForEver: however many small runs come all the time, a large one begins as soon as those are over that
// ran when its nodes were there again, or when it came to be the first; and while its nodes are away, the small ones do
// not wait for it for longer than placement.BypassAfter.
func TestNobodyWaitsForEver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const longest = 20
		c := &queueSimulation{
			nodes:     []engine.NodeCapacity{{ID: "a", Capacity: 8}, {ID: "b", Capacity: 8}},
			away:      map[string]bool{},
			ends:      map[string]int{},
			startedAt: map[string]int{},
		}
		lasts := func(string) int { return rapid.IntRange(1, longest).Draw(t, "seconds") }
		back := rapid.IntRange(0, 100).Draw(t, "back")
		c.away["b"] = back > 0
		c.waiting = []store.QueuedRun{{RunID: "large",
			Demands: []engine.WorkerDemand{{ID: "w0", Connections: 8}, {ID: "w1", Connections: 8}}}}
		c.held = []engine.Reservation{{RunID: "before", NodeID: "a", Connections: rapid.IntRange(1, 8).Draw(t, "before")}}
		c.ends["before"] = lasts("before")
		small, lastBegin, longestGap := 0, 0, 0
		for c.now < back+longest+5 {
			if c.now == back {
				c.away["b"] = false
			}
			for range rapid.IntRange(1, 3).Draw(t, "small") {
				small++
				c.waiting = append(c.waiting, store.QueuedRun{RunID: fmt.Sprint("s", small),
					Demands: []engine.WorkerDemand{{ID: "w0", Connections: rapid.IntRange(1, 8).Draw(t, "connections")}}})
			}
			before := len(c.startedAt)
			c.step(lasts)
			if len(c.startedAt) > before {
				lastBegin = c.now
			}
			if _, there := c.startedAt["large"]; !there {
				longestGap = max(longestGap, c.now-lastBegin)
			}
		}
		begun, there := c.startedAt["large"]
		if !there || begun > back+1+longest {
			t.Fatalf("its nodes were there at %d, and it began at %d (%v)", back, begun, there)
		}
		if most := int(placement.BypassAfter/time.Second) + longest + 1; longestGap > most {
			t.Fatalf("nothing began for %d s", longestGap)
		}
	})
}
