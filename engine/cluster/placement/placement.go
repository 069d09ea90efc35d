// Package placement decides which nodes carry the run workers of a run: all of them find room,
// or none is placed. It knows connections, capacities and who waits; it is pure, and every
// server that is given the same comes to the same.
package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/assignment"
)

// free is how many more connections a node takes; bounded is false where there is no limit.
func free(n engine.NodeCapacity) (free int, bounded bool) {
	return max(n.Capacity-n.Used, 0), n.Capacity > 0
}

// fits reports whether there is room for so many connections on a node.
func fits(n engine.NodeCapacity, connections int) bool {
	left, bounded := free(n)
	return !bounded || connections <= left
}

// Total adds up what works need.
func Total(works []engine.WorkerDemand) (connections int) {
	for _, w := range works {
		connections += w.Connections
	}
	return connections
}

// Pool is what the works of a run wait for together with others: the one node that can carry
// them, or empty for any.
func Pool(works []engine.WorkerDemand) string {
	for _, w := range works {
		if w.Only != "" {
			return w.Only
		}
	}
	return ""
}

// BypassAfter is how long nodes that could carry a run may be away before those that wait behind it
// are let by: as long as a node that comes back at all usually takes, and one that lost its server
// may still bear load.
const BypassAfter = time.Minute

// WithReservations are the nodes with what is held on them, that of the run but left out.
func WithReservations(nodes []engine.NodeCapacity, held []engine.Reservation, but string) []engine.NodeCapacity {
	used := map[string]int{}
	for _, h := range held {
		if h.RunID != but {
			used[h.NodeID] += h.Connections
		}
	}
	out := slices.Clone(nodes)
	for i := range out {
		out[i].Used = used[out[i].ID]
	}
	return out
}

// Assign finds a node for each work of a run, nil when there is none for one of them. They are
// spread evenly; which of two equal nodes has one is decided by rendezvous hashing, so that a
// node that comes or goes moves only what is its own. Where spreading finds no way, the
// fullest node that has room is taken.
func Assign(nodes []engine.NodeCapacity, runID string, works []engine.WorkerDemand) map[string]string {
	order := slices.Clone(works)
	slices.SortStableFunc(order, func(a, b engine.WorkerDemand) int { return b.Connections - a.Connections })
	for _, better := range []func(a, b *candidate) bool{even, tight} {
		if on := fill(nodes, runID, order, better); on != nil {
			return on
		}
	}
	return nil
}

// candidate is a node while works are put on it.
type candidate struct {
	engine.NodeCapacity
	assigned int // works
}

func even(a, b *candidate) bool { return a.assigned < b.assigned }

func tight(a, b *candidate) bool {
	x, bounded := free(a.NodeCapacity)
	y, other := free(b.NodeCapacity)
	return bounded && (!other || x < y)
}

func fill(
	nodes []engine.NodeCapacity,
	runID string,
	works []engine.WorkerDemand,
	better func(a, b *candidate) bool,
) map[string]string {
	places := make([]candidate, len(nodes))
	for i, n := range nodes {
		places[i].NodeCapacity = n
	}
	on := make(map[string]string, len(works))
	for _, w := range works {
		var best *candidate
		affinity := runID + "/" + w.ID
		for i := range places {
			p := &places[i]
			if w.Only != "" && w.Only != p.ID || !fits(p.NodeCapacity, w.Connections) {
				continue
			}
			if best == nil || better(p, best) || !better(best, p) && prefers(p.ID, best.ID, affinity) {
				best = p
			}
		}
		if best == nil {
			return nil
		}
		best.Used += w.Connections
		best.assigned++
		on[w.ID] = best.ID
	}
	return on
}

// prefers reports whether a comes before b for an affinity.
func prefers(a, b, affinity string) bool {
	x, y := assignment.Score(a, affinity), assignment.Score(b, affinity)
	return x > y || x == y && a < b
}

// FitsWhenEmpty reports whether the works found room if nothing else were on the nodes.
func FitsWhenEmpty(nodes []engine.NodeCapacity, runID string, works []engine.WorkerDemand) bool {
	return Assign(WithReservations(nodes, nil, ""), runID, works) != nil
}

// FreeCapacity is what is free on nodes.
type FreeCapacity struct {
	Nodes       int
	Connections int
	Unbounded   bool
}

// Free adds up what is free on the nodes of a pool.
func Free(nodes []engine.NodeCapacity, pool string) (r FreeCapacity) {
	for _, n := range nodes {
		if pool != "" && n.ID != pool {
			continue
		}
		left, bounded := free(n)
		r.Nodes++
		r.Connections += left
		r.Unbounded = r.Unbounded || !bounded
	}
	return r
}

// WaitReason say what the works of a run wait for, behind so many other runs, on nodes with what is held on them.
func WaitReason(nodes []engine.NodeCapacity, works []engine.WorkerDemand, ahead int) string {
	room := Free(nodes, Pool(works))
	var b strings.Builder
	fmt.Fprintf(&b, "waits for %d connections; ", Total(works))
	switch {
	case room.Nodes == 0:
		b.WriteString("there is no node to carry them")
	case ahead == 0 && Assign(nodes, "", works) != nil:
		b.WriteString("there is room, and a server starts it in a moment")
	case !FitsWhenEmpty(nodes, "", works):
		fmt.Fprintf(&b, "they do not fit on %d %s, also when nothing else runs",
			room.Nodes, plural(room.Nodes, "node", "nodes"))
	default:
		fmt.Fprintf(&b, "%d are free on %d %s", room.Connections, room.Nodes, plural(room.Nodes, "node", "nodes"))
	}
	if ahead > 0 {
		fmt.Fprintf(&b, ", and %d %s before it", ahead, plural(ahead, "run waits", "runs wait"))
	}
	return b.String()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// WrittenReservations is what is known to be written of what the run workers of one run hold.
type WrittenReservations map[string]engine.Reservation

// Changed are those that hold another thing than is written. They count as written from then on.
func (a *WrittenReservations) Changed(now []engine.Reservation) (changed []engine.Reservation) {
	if *a == nil {
		*a = WrittenReservations{}
	}
	for _, h := range now {
		if before, known := (*a)[h.WorkerID]; !known || before != h {
			(*a)[h.WorkerID] = h
			changed = append(changed, h)
		}
	}
	return changed
}
