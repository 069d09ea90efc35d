package cli

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/loadstone-db/loadstone/engine/base/host"
)

// TestTheMemoryLimitFollowsTheMachine, or its container; the user's own stands, and a tiny one is not taken.
func TestTheMemoryLimitFollowsTheMachine(t *testing.T) {
	for _, c := range []struct {
		wanted       string
		memory, want int64
	}{
		{"", 1 << 30, 768 << 20}, {"", 512 << 20, 384 << 20}, {"", 64 << 20, 128 << 20}, {"", 0, 0},
		{"200MiB", 1 << 30, 0}, {"off", 1 << 30, 0},
	} {
		if got := memoryLimit(c.wanted, c.memory); got != c.want {
			t.Errorf("GOMEMLIMIT=%q with %d bytes: %d, want %d", c.wanted, c.memory, got, c.want)
		}
	}
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	debug.SetMemoryLimit(math.MaxInt64)
	t.Setenv("GOMEMLIMIT", "")
	SetMemoryLimit()
	if got, want := debug.SetMemoryLimit(-1), max(host.Memory()/4*3, minMemoryLimit); got != want {
		t.Errorf("the limit is %d, want %d", got, want)
	}
}
