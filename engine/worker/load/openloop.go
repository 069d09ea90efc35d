package load

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	loadarrival "github.com/loadstone-db/loadstone/engine/worker/load/arrival"
)

// defaultMaxInFlight applies when the workload has no limit of its own.
const defaultMaxInFlight = 10_000

// openLoop makes what drives an open loop. Nothing runs before Start.
func (g *Group) openLoop() {
	w := g.cfg.Workload
	limit := w.MaxInFlight
	if limit <= 0 {
		limit = defaultMaxInFlight
	}
	g.queue = &queue{g: g, limit: max(g.cfg.Share.Part(limit), 1)}
	planned := func() *loadarrival.Schedule {
		if w.Arrival == engine.ArrivalWorkload {
			return nil
		}
		return loadarrival.New(w.StartRate(), w.Arrival, g.cfg.Share, uint64(w.Seed))
	}
	g.ledger = loadarrival.NewLedger(planned())
	g.dispatcher = &dispatcher{g: g, queue: g.queue, ledger: g.ledger, ahead: NewPrefetcher(g.source, g.stopping),
		changed: make(chan struct{}, 1),
		paced:   w.Arrival == engine.ArrivalWorkload, schedule: planned(), behind: catchUp{policy: w.CatchUp}}
}

// startDispatcher begins the schedule of an open loop.
func (g *Group) startDispatcher(now int64) {
	d := g.dispatcher
	if d == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped() {
		g.queue.close()
		return
	}
	if d.waiter == nil {
		d.waiter = newWaiter()
	}
	d.mu.Lock()
	d.origin = now
	d.mu.Unlock()
	d.ledger.Begin(now)
	g.dispatching = true
	g.ramps.Add(2)
	go func() {
		defer g.ramps.Done()
		d.run()
	}()
	go func() {
		defer g.ramps.Done()
		d.ahead.Run()
	}()
}

// beginStages lets the workload's stages begin now.
func (g *Group) beginStages(now int64) {
	stages := g.cfg.Workload.Stages
	if len(stages) == 0 {
		return
	}
	if d := g.dispatcher; d != nil {
		d.change(now, loadarrival.Legs(stages))
		return
	}
	g.follow(now, loadarrival.Legs(stages))
}

// SetRate changes the rate of an open loop, linearly over ramp: rate is the
// whole run's in operations per second, of which the group takes its share. It
// replaces stages that are not over. A closed loop, or one that the workload paces, ignores it.
func (g *Group) SetRate(rate float64, ramp time.Duration) {
	if d := g.dispatcher; d != nil {
		d.change(g.clock.now(), []loadarrival.Leg{{Level: max(rate, 0), Length: ramp}})
	}
}

// DropQueued drops the operations of an open loop that are due and that no
// connection has begun, for a run that is given up.
func (g *Group) DropQueued() {
	if g.queue == nil {
		return
	}
	if g.stopped() {
		g.abandonedRun.Store(true)
	}
	g.queue.clear()
}

// follow changes the number of connections along stages. They are the run's;
// the group takes its share of every level, so that the shares always add up.
func (g *Group) follow(begin int64, legs []loadarrival.Leg) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended || g.stopped() {
		return
	}
	c := loadarrival.NewCurve(float64(g.cfg.Workload.ConcurrentConnections))
	c.Change(0, legs)
	var most, total = 0.0, time.Duration(0)
	for _, l := range legs {
		most = max(most, l.Level)
		total += l.Length
	}
	g.expect(g.cfg.Share.Part(int(most)))
	if g.ramp != nil {
		g.ramp()
	}
	ctx, cancel := context.WithCancel(g.ctx)
	g.ramp = cancel
	g.ramps.Add(1)
	go func() {
		defer g.ramps.Done()
		defer cancel()
		ticker := time.NewTicker(stageTick)
		defer ticker.Stop()
		for {
			at := time.Duration(g.clock.now() - begin)
			n := g.cfg.Share.Part(int(c.Level(at) + 0.5))
			g.mu.Lock()
			if ctx.Err() == nil {
				g.target = n
			}
			g.mu.Unlock()
			g.apply(ctx, n)
			if at >= total {
				return
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			case <-g.stopping:
				return
			}
		}
	}()
}

// stageTick is how often connections follow their stages.
const stageTick = 50 * time.Millisecond
