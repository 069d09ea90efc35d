package live

import (
	"fmt"
	"maps"
	"slices"
)

// busyPercent of a machine's processors are so good as all of them.
const busyPercent = 95

// cpuContention counts the seconds in which a node's machine had no processor left, and the node itself used less than
// half.
type cpuContention struct{ seconds, total int }

// TargetIsLocal is noted where the target is one of the others that work on the machine.
const TargetIsLocal = "The target is on the same machine as the load generator."

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
func (v *Validity) contentionNotes() (notes []string) {
	if slices.Contains(v.notes, TargetIsLocal) {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(v.contention)) {
		if b := v.contention[id]; b.seconds >= 5 && 10*b.seconds >= b.total {
			notes = append(notes, fmt.Sprintf("%s: in %d of %d s its machine had no processor left, of which the generator "+
				"used less than half: others worked there, and the latencies of a closed loop hold what the generator "+
				"waited for.", id, b.seconds, b.total))
		}
	}
	return notes
}
