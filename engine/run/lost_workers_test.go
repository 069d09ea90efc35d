package run

import (
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// TestAnotherServerKnowsWhoMayStillBearLoad: of three run workers the server before has given up two, and others have
// the load of one of these. Who goes on with the run gives nobody the load of the other before it must have stopped,
// once, and gives up nobody who may come back and have contact before that.
func TestAnotherServerKnowsWhoMayStillBearLoad(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	of := func(id, node string, status engine.WorkerStatus, connections int, heard time.Duration) *Worker {
		w := &Worker{ID: id, Connections: connections, Dead: status == engine.WorkerDead, LastSeen: now.Add(-heard)}
		w.State.Status, w.State.NodeID = status, node
		return w
	}
	for _, shared := range []bool{true, false} {
		left := of("left", "n0", engine.WorkerRunning, 2, 55*time.Second)
		own := of("own", protocol.OwnNode, engine.WorkerRunning, 2, 40*time.Second)
		lost := of("lost", "n1", engine.WorkerDead, 3, 65*time.Second)
		given := of("given", "n2", engine.WorkerDead, 0, 70*time.Second)
		long := of("long", "n3", engine.WorkerDead, 3, time.Hour)
		var c WorkerTable
		for _, w := range []*Worker{left, own, lost, given, long} {
			c.Register(w)
		}
		c.RestoreAfterTakeover(now, shared)
		most := now.Add(DeadAfter)
		if !shared {
			most = now.Add(takeoverGrace)
		}
		if dead := left.LastSeen.Add(DeadAfter); !dead.Equal(most) || own.LastSeen != now.Add(-40*time.Second) {
			t.Errorf("shared %t: given up %v and %v after the new server has the run", shared, dead.Sub(now),
				own.LastSeen.Add(DeadAfter).Sub(now))
		}
		for at := now; at.Before(now.Add(protocol.ReassignAfter)); at = at.Add(time.Second) {
			connections, some := c.ReleaseExpired(at)
			if held, _ := c.HeldByLost(at); held != 3 || some || len(connections) > 0 || !c.LostWorkers.HoldsLoad("given") ||
				c.LostWorkers.HoldsLoad("long") {
				t.Fatalf("after %v %d connections are held, %v are free", at.Sub(now), held, connections)
			}
		}
		if connections, some := c.ReleaseExpired(
			now.Add(protocol.ReassignAfter),
		); !slices.Equal(connections, []int{3}) ||
			!some {
			t.Errorf("those of %v are free", connections)
		}
		if held, _ := c.HeldByLost(now.Add(protocol.ReassignAfter)); held != 0 || lost.Connections != 0 {
			t.Errorf("%d are held, %d are those of who is lost", held, lost.Connections)
		}
	}
}

// TestWhoIsLostWithoutAPartIsReplaced: a run worker that joins while nobody knows what others bear has no connections
// yet. When it is lost so, after another server went on with the run, somebody takes its place, or the run has one
// fewer to its end. Nobody takes that of who was to leave.
func TestWhoIsLostWithoutAPartIsReplaced(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var c WorkerTable
	before := &Worker{ID: "before", Connections: 2, Dead: true, LastSeen: now.Add(-70 * time.Second)}
	before.State.Status, before.State.NodeID = engine.WorkerDead, "n0"
	bears := &Worker{ID: "bears", Connections: 2, LastSeen: now}
	bears.State.Status, bears.State.NodeID = engine.WorkerRunning, "n1"
	c.Register(before)
	c.Register(bears)
	c.RestoreAfterTakeover(now, true)
	now = now.Add(protocol.ReassignAfter)
	if connections, _ := c.ReleaseExpired(now); !slices.Equal(connections, []int{2}) {
		t.Fatalf("those of %v are to be replaced first", connections)
	}
	joins, rated := &Worker{ID: "joins", Connections: 0}, &Worker{ID: "rated", Rate: new(float64)}
	leaves := &Worker{ID: "leaves", Retiring: true}
	for _, w := range []*Worker{joins, rated, leaves} {
		c.Register(w)
		w.Dead, w.State.Status = true, engine.WorkerDead
		c.LostWorkers.MarkLost(w.ID, now.Add(protocol.ReassignAfter))
	}
	if connections, some := c.ReleaseExpired(
		now.Add(protocol.ReassignAfter),
	); !slices.Equal(connections, []int{0, 0}) ||
		!some {
		t.Errorf("those of %v are to be replaced; want the two without a part", connections)
	}
}
