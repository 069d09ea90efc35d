package workcoord

import "hash/fnv"

// score is how much a node is meant for an affinity: rendezvous hashing gives
// the work to the highest. It is the same on every server, and a node that comes
// or goes moves only the work that is its own.
func score(node, affinity string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(node))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(affinity))
	// FNV leaves the high bits of similar texts similar; this mixes them.
	x := h.Sum64()
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// prefers reports whether a comes before b for an affinity.
func prefers(a, b, affinity string) bool {
	x, y := score(a, affinity), score(b, affinity)
	return x > y || x == y && a < b
}
