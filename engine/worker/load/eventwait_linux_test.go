package load

import "testing"

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
