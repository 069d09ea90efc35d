package placement

import (
	"cmp"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
)

// Demand is what runs hold and what others wait for, as a scaler of nodes needs it. What only
// the own node of a server can carry is no part of it.
type Demand struct {
	// Nodes are those that take run workers now; what is held may be on others too.
	Nodes    []engine.NodeCapacity
	Reserved []engine.Reservation
	// Queued are the run workers of the runs that wait, by how many connections each needs.
	Queued []int
}

// TypicalNode is the capacity of a typical node: the median of those that there are, the larger of
// two in the middle; 0 when there is none, or when they have no bound.
func (d Demand) TypicalNode() int {
	var all []int
	for _, n := range d.Nodes {
		all = append(all, n.Capacity)
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// NodesNeeded is how many nodes the demand needs: as many typical ones as hold all run workers,
// those that run and those that wait, largest first, each on the first node that has room for
// it; no fewer than carry something now. One that is larger than a typical node has one
// for itself. While no node says what is typical, one is wanted where anything is.
func (d Demand) NodesNeeded() int {
	carrying := map[string]bool{}
	sizes := slices.Clone(d.Queued)
	for _, h := range d.Reserved {
		carrying[h.NodeID] = true
		sizes = append(sizes, h.Connections)
	}
	if len(sizes) == 0 {
		return 0
	}
	capacity := d.TypicalNode()
	if capacity == 0 {
		return max(len(carrying), 1)
	}
	slices.SortFunc(sizes, func(a, b int) int { return cmp.Compare(b, a) })
	var used []int
	for _, size := range sizes {
		i := slices.IndexFunc(used, func(u int) bool { return u+size <= capacity })
		if i < 0 {
			used = append(used, 0)
			i = len(used) - 1
		}
		used[i] += size
	}
	return max(len(used), len(carrying))
}
