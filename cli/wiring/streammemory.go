package wiring

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/host"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
)

// StreamMemoryFlags bound what continuous queries and rules hold.
type StreamMemoryFlags struct {
	Total int `name:"streams-memory" placeholder:"MB" env:"LOADSTONE_STREAMS_MEMORY" help:"MB for all continuous queries and rules of this process (default: an eighth of the memory, at most 96)."`
	Query int `name:"streams-query-memory" placeholder:"MB" default:"64" env:"LOADSTONE_STREAMS_QUERY_MEMORY" help:"MB for a continuous query without QUERY.MEMORY_MIB (default: 64)."`
}

// StreamReleaseFlags say when a lost node has nothing of a query any more.
type StreamReleaseFlags struct {
	After time.Duration `name:"streams-release-after" placeholder:"TIME" default:"2m" env:"LOADSTONE_STREAMS_RELEASE_AFTER" help:"When fragments of a dropped continuous query on a lost node count as gone, at least 20s (default: 2m)."`
}

// Check refuses a time in which a fragment may still run.
func (f StreamReleaseFlags) Check() error {
	if f.After < coordinator.MinReleaseAfter {
		return engine.InvalidField("--streams-release-after", "is "+f.After.String(), "at least "+
			coordinator.MinReleaseAfter.String()+": a fragment ends by itself 15 s after its server has fallen silent")
	}
	return nil
}

const (
	minStreamMemory = 64 << 20
	maxStreamMemory = 96 << 20
)

// Limits are what the flags say.
func (f StreamMemoryFlags) Limits() memory.Limits {
	total := f.Total << 20
	if total <= 0 {
		total = defaultStreamMemory(host.Memory())
	}
	return memory.Limits{Pool: memory.NewPool(total), Query: max(f.Query, 0) << 20}
}

// defaultStreamMemory is what all queries may hold on a machine, or in a container, with so much memory; 0 is unknown.
func defaultStreamMemory(machine int64) int {
	if machine <= 0 {
		return maxStreamMemory
	}
	return int(min(max(machine/8, minStreamMemory), maxStreamMemory))
}
