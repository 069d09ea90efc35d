package cli

import (
	"os"
	"runtime/debug"

	"github.com/loadstone-db/loadstone/engine/base/host"
)

// SetMemoryLimit has the collector work harder before the process reaches the memory that its container, or the
// machine, has: half of what is alive may be garbage otherwise, for which a container is killed. A quarter is left to
// what the collector does not count: plugins, the embedded Postgres, buffers of the system. GOMEMLIMIT in the
// environment is what the user wants instead.
func SetMemoryLimit() {
	if limit := memoryLimit(os.Getenv("GOMEMLIMIT"), host.Memory()); limit > 0 {
		debug.SetMemoryLimit(limit)
	}
}

// minMemoryLimit is below what a process needs in any case: a limit below it would only cost processor time.
const minMemoryLimit = 128 << 20

// memoryLimit is that of the collector, 0 where it is left alone.
func memoryLimit(wanted string, memory int64) int64 {
	if wanted != "" || memory <= 0 {
		return 0
	}
	return max(memory/4*3, minMemoryLimit)
}
