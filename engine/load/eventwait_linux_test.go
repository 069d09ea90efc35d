package load

import (
	"testing"
	"time"
)

func TestLoopCount(t *testing.T) {
	for _, c := range []struct{ connections, procs, want int }{
		{0, 8, 1}, {1, 8, 1}, {8, 2, 1}, {9, 2, 2}, {16, 2, 2}, {2000, 2, 2}, {16, 1, 1}, {16, 8, 2}, {2000, 8, 4},
		{2000, 3, 2},
	} {
		if got := loopCount(c.connections, c.procs); got != c.want {
			t.Errorf("%d connections on %d processors: %d loops, want %d", c.connections, c.procs, got, c.want)
		}
	}
}

// TestYieldingOnlyWhereItHelps: a loop yields while sessions of the server run
// meanwhile, seldom when nobody does, and not at all for a while after somebody took the processor for long.
func TestYieldingOnlyWhereItHelps(t *testing.T) {
	const connections = 8
	now := int64(1)
	yields := func(y *yielding, waits int, took time.Duration) (n int) {
		for range waits {
			now += 100_000
			if y.due(now) {
				n++
				y.took(int64(took), now, connections)
			}
		}
		return n
	}
	var y yielding
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

func TestProcessorsAreLent(t *testing.T) {
	const own = 3
	procs := own
	p := lentProcessors{restore: func() {}, procs: func(n int) int {
		before := procs
		if n > 0 {
			procs = n
		}
		return before
	}}
	n := 0
	for p.lend() {
		n++
		if procs != own+n || p.own() != own {
			t.Errorf("%d processors, %d own, with %d lent", procs, p.own(), n)
		}
	}
	if n != own {
		t.Errorf("%d were lent beside %d", n, own)
	}
	for range n {
		p.giveBack()
	}
	if procs != own || p.own() != own {
		t.Errorf("%d processors afterwards", procs)
	}
}
