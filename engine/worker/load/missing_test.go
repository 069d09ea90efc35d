package load

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Half of the connections are refused, as under a role's limit: it is counted and said.
func TestConnectionsThatAreRefusedAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(time.Millisecond, 3*time.Millisecond)}
		sink := &memorySink{}
		g := open(t, fakeConfig(db, &fakeStream{}, sink), 8)
		g.Start(engine.PhaseMeasurement)
		db.refuse.Store(true)
		g.SetTarget(16, 0)
		time.Sleep(500 * time.Millisecond)
		var s engine.WorkerSnapshot
		if g.Collect(&s); s.Missing != 0 || s.Connections.Refused < 8 {
			t.Errorf("after half a second: %d missing, %+v", s.Missing, s.Connections)
		}
		time.Sleep(3 * time.Second)
		if g.Collect(&s); s.Missing != 8 || s.ActiveConnections != 8 || s.TargetConnections != 16 ||
			!strings.Contains(s.Refusal, "Nothing accepts connections") {
			t.Errorf("%d missing, %d of %d open, %q", s.Missing, s.ActiveConnections, s.TargetConnections, s.Refusal)
		}
		db.refuse.Store(false)
		time.Sleep(10 * time.Second)
		if g.Collect(&s); s.Missing != 0 || s.Connections.Reopened != 8 || s.Connections.MaxMissing != 8 ||
			s.Connections.Lost != 0 {
			t.Errorf("when they are open: %d missing, %+v", s.Missing, s.Connections)
		}
		db.refuse.Store(true)
		g.SetTarget(20, 0)
		g.SetTarget(16, 0)
		time.Sleep(3 * time.Second)
		if g.Collect(&s); s.Missing != 0 {
			t.Errorf("%d are missing that nobody wants any more", s.Missing)
		}
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
	})
}

// A lost connection that cannot be opened again is missing; one that is renewed as planned is not lost.
func TestConnectionsThatAreLostAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		db := &fakeDB{latency: between(time.Millisecond, 3*time.Millisecond)}
		db.fail = func() (error, bool) {
			if !broken.CompareAndSwap(false, true) {
				return nil, false
			}
			db.refuse.Store(true)
			return errEOF, true
		}
		sink := &memorySink{}
		g := open(t, fakeConfig(db, &fakeStream{}, sink), 4)
		g.Start(engine.PhaseMeasurement)
		time.Sleep(5 * time.Second)
		var s engine.WorkerSnapshot
		if g.Collect(&s); s.Missing != 1 || s.Connections.Lost != 1 || s.Connections.Refused < 3 {
			t.Errorf("%d missing, %+v", s.Missing, s.Connections)
		}
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
		if n := g.Totals().Connections; n.Lost != 1 || n.MaxMissing != 1 {
			t.Errorf("%+v", n)
		}
	})
}
