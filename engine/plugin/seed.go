package plugin

// StreamSeed is the seed of a run worker's stream: the scenario's own for slot 0,
// so that a run of one worker is reproduced by its template, and splitmix64 of
// seed and slot for the others. 53 bits survive a trip through JSON numbers.
func StreamSeed(seed int64, slot int) int64 {
	if slot == 0 {
		return seed
	}
	z := uint64(seed) + uint64(slot)*0x9E3779B97F4A7C15
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	z ^= z >> 31
	return int64(z & (1<<53 - 1))
}
