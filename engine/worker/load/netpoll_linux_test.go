package load

import (
	"testing"
	"time"
)

// TestYieldingOnlyWhereItHelps: a loop yields while sessions of the server run
// meanwhile, seldom when nobody does, and not at all for a while after somebody took the processor for long.
func TestYieldingOnlyWhereItHelps(t *testing.T) {
	const connections = 8
	now := int64(1)
	yields := func(y *yieldPolicy, waits int, took time.Duration) (n int) {
		for range waits {
			now += 100_000
			if y.due(now) {
				n++
				y.took(int64(took), now, connections)
			}
		}
		return n
	}
	var y yieldPolicy
	if n := yields(&y, 6400, time.Microsecond); n != 100 {
		t.Errorf("%d of 6400 waits yielded to nobody", n)
	}
	if n := yields(&y, 1000, 100*time.Microsecond); n < 1000-yieldProbe {
		t.Errorf("%d of 1000 waits yielded to sessions", n)
	}
	// 5000 waits are half a second.
	if n := yields(&y, 5000, 4*time.Millisecond); n != 1 {
		t.Errorf("%d waits yielded to somebody who takes milliseconds", n)
	}
	now += yieldRest
	if n := yields(&y, 1000, 100*time.Microsecond); n < 1000-yieldProbe {
		t.Errorf("%d of 1000 waits yielded after the rest", n)
	}
}
