// This part says how the collector of the process works: seldom while it starts, in step with what is alive
// later, and harder before the memory of the machine is used up.

package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

const (
	// defaultGCPercent is Go's own.
	defaultGCPercent = 100
	// startGCPercent lets the heap grow to 64 MB before it is looked through: Go's least
	// heap is 4 MB for each hundred.
	startGCPercent = 16 * defaultGCPercent
	// laterGCPercent is for starts that need more: those that compile plugins.
	laterGCPercent = 4 * defaultGCPercent
)

// TuneStartupGC lets garbage grow while the program starts: most of what is made then
// stays, and looking for garbage in it is a tenth of the CPU of a start. settle ends that, and the
// heap is paced from then on. GOGC in the environment is what the user wants instead.
func TuneStartupGC() (settle func()) {
	if os.Getenv("GOGC") != "" {
		return func() {} // as the user wants it
	}
	var mu sync.Mutex
	settled := false
	before := debug.SetGCPercent(startGCPercent)
	// It is garbage at once, and told so by the first collection.
	runtime.SetFinalizer(&gcSentinel{}, func(*gcSentinel) {
		mu.Lock()
		defer mu.Unlock()
		if !settled {
			debug.SetGCPercent(laterGCPercent)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if !settled {
			settled = true
			debug.SetGCPercent(before)
			paceGC(before, liveBytes)
		}
	}
}

// gcSentinel is an object of its own for the collector, which small ones without pointers are not.
type gcSentinel struct{ _ *byte }
