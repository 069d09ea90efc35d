package live

import (
	"maps"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
)

// busyPercent of a machine's processors are so good as all of them.
const busyPercent = 95

// cpuContention counts the seconds in which a node's machine had no processor left, and the node itself used less than
// half.
type cpuContention struct{ seconds, total int }

// observeContention looks whether others work on a node's machine.
func (v *Validity) observeContention(n NodeSample) {
	b := v.contention[n.NodeID]
	b.total++
	if r := n.Resources; r.HostCPUPercent >= busyPercent && r.CPUPercent < busyPercent/2 {
		b.seconds++
	}
	v.contention[n.NodeID] = b
}

// contentionNotes are remarks of nodes on whose machines others left no processor for a tenth of the measurement, 5 s
// at least. An open loop sees by its schedule whether it suffered from that; nothing else sees it of a closed one.
func (v *Validity) contentionNotes() (notes []engine.Note) {
	if slices.ContainsFunc(v.notes, func(n engine.Note) bool { return n.Code == engine.NoteTargetLocal }) {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(v.contention)) {
		if b := v.contention[id]; b.seconds >= 5 && 10*b.seconds >= b.total {
			notes = append(notes, engine.Note{Code: engine.NoteProcessorsTaken, Node: id, Count: int64(b.seconds),
				Total: int64(b.total)})
		}
	}
	return notes
}
