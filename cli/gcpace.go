package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// What is alive and no more than easyBytes may be followed by as much garbage as Go has it; of more, garbage stays at
// easyBytes, but leastPercent of what is alive, for the time that the collector takes grows as the percentage falls.
const (
	smallHeapBytes = 64 << 20
	minGCPercent   = 25
)

// gcPercentFor is how much garbage, in percent of what is alive, is let grow before the next collection, where usual is
// what it would be.
func gcPercentFor(alive uint64, usual int) int {
	if usual <= 0 || alive <= smallHeapBytes {
		return usual
	}
	return min(usual, max(minGCPercent, int(uint64(usual)*smallHeapBytes/alive)))
}

// paceGC adjusts GOGC after each collection and stops once other code has set it. alive returns the live heap of the
// last collection, in bytes.
func paceGC(usual int, alive func() uint64) {
	set := usual
	var next func(*gcSentinel)
	next = func(*gcSentinel) {
		if p := gcPercentFor(alive(), usual); p != set {
			if was := debug.SetGCPercent(p); was != set {
				debug.SetGCPercent(was)
				return
			}
			set = p
		}
		// It is garbage at once again: the collection after this one finds it.
		runtime.SetFinalizer(&gcSentinel{}, next)
	}
	runtime.SetFinalizer(&gcSentinel{}, next)
}

// liveBytes are those that the last collection found alive.
func liveBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
