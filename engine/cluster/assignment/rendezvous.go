package assignment

// Score is how much a node is meant for an affinity: rendezvous hashing gives
// the work to the highest. It is the same on every server, and a node that comes
// or goes moves only the work that is its own.
func Score(node, affinity string) uint64 {
	// FNV-1a of node, a zero byte and affinity, without the garbage of hash/fnv.
	x := uint64(14695981039346656037)
	for i := range len(node) {
		x = (x ^ uint64(node[i])) * 1099511628211
	}
	x *= 1099511628211
	for i := range len(affinity) {
		x = (x ^ uint64(affinity[i])) * 1099511628211
	}
	// FNV leaves the high bits of similar texts similar; this mixes them.
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
