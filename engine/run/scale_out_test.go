package run

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// grows checks that the run has come to its rate, on five run workers or six that hold no more than their part.
func (v *virtualServer) grows() {
	v.t.Helper()
	if p := v.live(); p.Ops.CurrentPerSec < 97 || p.Status != engine.StatusRunning {
		v.t.Errorf("%v/s of 100/s\n%s", p.Ops.CurrentPerSec, v.store.text())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	connections := 0
	for _, w := range v.workers {
		connections += w.connections
	}
	if n := len(v.workers); n < 5 || n > 6 || connections > 2*n {
		v.t.Errorf("%d run workers hold %d connections\n%s", n, connections, v.store.text())
	}
}

func serveTen(connections int, _ float64) float64 { return 10 * float64(connections) }

// TestARunGrowsWhenRoomComes: what the nodes lack now they may have later, when other runs have ended or a node comes.
func TestARunGrowsWhenRoomComes(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.served = serveTen
		v.report(protocol.Hello{NodeID: "local", Session: "s", Capacity: 5})
		v.wait(time.Second)
		v.start(overRate(engine.ScalingAuto, 0))
		v.wait(2 * time.Minute)
		if n := strings.Count(v.store.text(), "the nodes have no room for more connections; it is tried again"); n != 1 {
			t.Fatalf("it was said %d times\n%s", n, v.store.text())
		}
		more := protocol.Hello{NodeID: "local", Session: "s", Capacity: 50}
		v.mu.Lock()
		for _, w := range v.workers {
			more.Workers = append(more.Workers, w.report())
		}
		v.mu.Unlock()
		v.report(more)
		v.wait(time.Minute)
		v.grows()
	})
}

// TestARunGrowsAfterItsNodeHasRefused: it is tried again, later each time, and the connections of those who were
// refused are not counted as held.
func TestARunGrowsAfterItsNodeHasRefused(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.served = serveTen
		v.start(overRate(engine.ScalingBounded, 6))
		refuse := func(yes bool) {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.rejects = yes
		}
		refuse(true)
		v.wait(6 * time.Minute)
		v.mu.Lock()
		n := len(v.rejectedAt)
		for i := 2; i < n; i++ {
			if before, after := v.rejectedAt[i-1].Sub(
				v.rejectedAt[i-2],
			), v.rejectedAt[i].Sub(
				v.rejectedAt[i-1],
			); after < before*3/2 {
				t.Errorf("tried again after %v and then after %v", before, after)
			}
		}
		v.mu.Unlock()
		if n < 4 || n > 6 {
			t.Errorf("it was tried %d times in 6 minutes", n)
		}
		if said := strings.Count(v.store.text(), "no run worker that was added could join"); said != 1 {
			t.Errorf("it was said %d times", said)
		}
		refuse(false)
		v.wait(5 * time.Minute)
		v.grows()
	})
}
