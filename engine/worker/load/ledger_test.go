package load

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// The account of an open loop can fail: each of these is what a dispatcher or a
// queue that loses, doubles or forgets an arrival would do.
func TestArrivalsAreCountedByTheSchedule(t *testing.T) {
	w := func(a engine.Arrival) engine.Workload {
		return engine.Workload{TargetQPS: rate(200), Arrival: a, Seed: 7}
	}
	paced := engine.Workload{Arrival: engine.ArrivalWorkload}
	for name, c := range map[string]struct {
		workload engine.Workload
		sabotage func(g *Group)
		off      int64 // scheduled - started - dropped
	}{
		"constant":                     {workload: w(engine.ArrivalConstant)},
		"poisson":                      {workload: w(engine.ArrivalPoisson)},
		"by the workload":              {workload: paced},
		"one is skipped":               {w(engine.ArrivalConstant), skip, 1},
		"one of poisson":               {w(engine.ArrivalPoisson), skip, 1},
		"one is doubled":               {w(engine.ArrivalConstant), double, -1},
		"one is forgotten":             {w(engine.ArrivalPoisson), forget, 1},
		"lost by the workload's clock": {paced, forget, 1},
		"the rate changes":             {w(engine.ArrivalPoisson), func(g *Group) { g.SetRate(1000, time.Second) }, 0},
		"the rate falls to nothing and comes back": {w(engine.ArrivalConstant), func(g *Group) {
			g.SetRate(0, 0)
			time.Sleep(time.Second)
			g.SetRate(300, 0)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := &fakeDB{latency: between(30*time.Millisecond, 80*time.Millisecond)}
				sink := &memorySink{}
				g := openRate(t, db, &fakeStream{think: 5 * time.Millisecond}, sink, 2, c.workload)
				g.Start(engine.PhaseWarmup)
				time.Sleep(1003 * time.Millisecond)
				g.SetPhase(engine.PhaseMeasurement)
				time.Sleep(time.Second)
				if c.sabotage != nil {
					c.sabotage(g)
				}
				time.Sleep(2 * time.Second)
				g.Stop()
				err := settle(g, db, sink, time.Minute)
				n := g.Totals()
				if off := n.Scheduled - n.Started - n.Dropped; off != c.off || (err == nil) != (c.off == 0) {
					t.Errorf("off by %d, want %d: %+v, %v", off, c.off, n, err)
				}
				if off := n.WarmupScheduled - n.Warmup - n.WarmupDropped; off != 0 && c.off == 0 {
					t.Errorf("the warm-up is off by %d: %+v", off, n)
				}
				if n.Scheduled < 300 {
					t.Errorf("hardly any load: %+v", n)
				}
			})
		})
	}
}

// skip is a dispatcher that takes an arrival off the schedule and does not offer it.
func skip(g *Group) {
	g.dispatcher.mu.Lock()
	g.dispatcher.schedule.Take()
	g.dispatcher.changes++
	g.dispatcher.mu.Unlock()
}

// double offers one arrival twice.
func double(g *Group) {
	a := arrival{batch: &OpBatch{}, due: g.clock.now(), noticed: g.clock.now()}
	a.work = Unit{Ops: []plugin.Op{{Statement: plugin.StatementCommit}}}
	g.queue.offer(&a)
}

// forget takes an arrival out of the queue that nobody executes.
func forget(g *Group) {
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	if _, ok := g.queue.due.pop(); !ok {
		panic("nothing waits")
	}
	g.queue.inFlight--
}

// A closed loop has a first equation too: what was taken for a connection begins on it.
func TestOperationsTakenAreCountedByTheWorkload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(time.Millisecond, 3*time.Millisecond)}
		sink := &memorySink{}
		g := open(t, fakeConfig(db, &fakeStream{think: time.Millisecond}, sink), 3)
		g.Start(engine.PhaseMeasurement)
		time.Sleep(time.Second)
		// A slot that takes a group and does not execute it.
		s := g.currentSlots()[0]
		s.books.drawn.Add(1)
		g.Stop()
		if err := settle(g, db, sink, time.Minute); err == nil {
			t.Errorf("the account balances over an operation that never began: %+v", g.Totals())
		}
		if n := g.Totals(); n.Scheduled != n.Started+1 {
			t.Errorf("%+v", n)
		}
	})
}

// What is due while the workload gives no operation is not dispatched, and said to be.
func TestArrivalsWithoutAnOperationAreNotDispatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(time.Millisecond, time.Millisecond)}
		sink := &memorySink{}
		stream := &stuckStream{after: 100, free: make(chan struct{})}
		g := openRate(t, db, stream, sink, 5, engine.Workload{TargetQPS: rate(100)})
		g.Start(engine.PhaseMeasurement)
		time.Sleep(3*time.Second + time.Millisecond)
		var s engine.WorkerSnapshot
		g.Collect(&s)
		if s.Scheduled != 301 || s.TickScheduled != 301 || s.Started >= 200 {
			t.Errorf("%d scheduled, %d started", s.Scheduled, s.Started)
		}
		g.Stop()
		synctest.Wait()
		close(stream.free)
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
		n := g.Totals()
		if n.Scheduled != 301 || n.DroppedByReason.NotDispatched != 301-n.Started || n.Started >= 200 ||
			n.DroppedByReason.Total() != n.Dropped {
			t.Errorf("%+v", n)
		}
	})
}

// stuckStream stops giving operations.
type stuckStream struct {
	fakeStream
	after int
	free  chan struct{}
}

func (s *stuckStream) Fill(b *plugin.Batch, n int) error {
	if s.made >= s.after {
		<-s.free
	}
	return s.fakeStream.Fill(b, n)
}

// A workload that fails ends the load; what was due until then counts.
func TestArrivalsOfAWorkloadThatFailsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{latency: between(time.Millisecond, time.Millisecond)}
		sink := &memorySink{}
		g := openRate(t, db, &fakeStream{failure: errors.New("no more"), failAt: 100}, sink, 5,
			engine.Workload{TargetQPS: rate(100)})
		g.Start(engine.PhaseMeasurement)
		<-g.Failed()
		if err := settle(g, db, sink, time.Minute); err != nil {
			t.Error(err)
		}
	})
}
