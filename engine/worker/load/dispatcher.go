package load

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	loadarrival "github.com/loadstone-db/loadstone/engine/worker/load/arrival"
)

// dispatcher is the clock of an open loop: one goroutine that takes operations
// from the workload in order, waits until each is due, and offers it to the
// queue. It never waits for a connection and never skips an arrival: what is
// due already is offered at once.
type dispatcher struct {
	g      *Group
	queue  *queue
	ahead  *Prefetcher
	waiter waiter
	// paced is true when the workload's delays are the schedule.
	paced bool

	// ledger counts what is due without asking the dispatcher.
	ledger *loadarrival.Ledger

	mu       sync.Mutex
	schedule *loadarrival.Schedule
	origin   int64
	changes  int // of the schedule
	// stopped is when the load was stopped, 0 before.
	stopped int64
	// changed holds a token when the schedule was changed.
	changed chan struct{}
	// behind is set while the dispatcher catches up with what it could not offer in time.
	behind catchUp
}

// catchUp is how a dispatcher goes on that stood still: since is when it did, first the due time of what it came to
// then.
type catchUp struct {
	policy       engine.CatchUp
	active       bool
	since, first int64
}

// catchUpAfter is by how much an arrival has to be late for the generator to have stood still. Less is only lag.
const catchUpAfter = int64(250 * time.Millisecond)

// place says when an arrival whose time has come is to be offered, and whether it is to be dropped instead.
func (c *catchUp) place(due, now int64) (at int64, drop bool) {
	if c.policy == engine.CatchUpBurst {
		return now, false
	}
	if !c.active && now-due > catchUpAfter {
		*c = catchUp{policy: c.policy, active: true, since: now, first: due}
	}
	if !c.active {
		return now, false
	}
	if c.policy == engine.CatchUpDrop {
		c.active = due <= c.since
		return now, c.active
	}
	// The schedule is followed at twice its speed.
	at = c.since + (due-c.first)/2
	switch {
	case at <= due:
		c.active = false
		return now, false
	case now-at > catchUpAfter: // it stood still again
		c.since, c.first, at = now, due, now
	}
	return at, false
}

// coarse is the wait that is left to the precise waiter; a longer one ends
// early when the schedule changes or the group stops.
const coarse = 2 * time.Millisecond

// maxBurst bounds how many arrivals a workload that paces itself may place at one instant.
const maxBurst = 1_000_000

func (d *dispatcher) run() {
	var (
		a       arrival
		ready   bool
		lastDue = d.origin
		burst   int
	)
	defer func() { d.ended(&a, ready) }()
	for {
		if !ready {
			if ready = d.take(&a); !ready {
				return
			}
		}
		changes := 0
		if !d.paced {
			var ok bool
			if a.due, changes, ok = d.nextDue(); !ok {
				if d.g.stopped() {
					return
				}
				d.sleep(time.Hour) // or until the schedule changes
				continue
			}
		}
		now := d.g.clock.now()
		if a.due > now {
			if d.g.stopped() {
				return
			}
			if !d.until(a.due, now) {
				continue // to see why
			}
			if now = d.g.clock.now(); a.due > now {
				continue
			}
		}
		at, drop := d.behind.place(a.due, now)
		if at > now {
			if d.g.stopped() {
				return // the rest was due, and nobody got to it
			}
			d.until(at, now)
			continue
		}
		switch d.commit(a.due, changes) {
		case commitRetry:
			continue
		case commitStop:
			return
		}
		if !d.paced {
			// The schedule spreads what is due.
		} else if burst++; a.due > lastDue {
			burst = 0
		} else if burst > cmp.Or(d.g.cfg.maxBurst, maxBurst) {
			d.g.fail(&engine.Error{Code: engine.CodePlugin,
				Message: "The workload places a million operations at the same moment.",
				Hint: "With arrival: workload its delays are the schedule; choose constant or poisson, or a workload that " +
					"has delays."})
			return
		}
		lastDue = a.due
		a.noticed = now
		if drop {
			d.queue.drop(&a, droppedUndispatched)
		} else {
			d.queue.offer(&a)
		}
		ready = false
	}
}

// What commit says of an arrival whose time has come.
const (
	commitNow   = iota
	commitRetry // the schedule was changed meanwhile
	commitStop  // the load was stopped before it was due, or is given up
)

// commit takes an arrival off the schedule. What was due when the load stopped
// is still handed out, unless the run is given up.
func (d *dispatcher) commit(due int64, changes int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.stopped != 0 && (due > d.stopped || d.g.abandonedRun.Load()):
		return commitStop
	case d.paced:
		return commitNow
	case changes != d.changes:
		return commitRetry
	}
	d.schedule.Take()
	return commitNow
}

// stop notes when the load was stopped: what is due later is nobody's.
func (d *dispatcher) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = d.g.clock.now() // read here: what was committed before was due before
}

// horizon is until when arrivals count as due.
func (d *dispatcher) horizon(now int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped != 0 {
		return min(now, d.stopped)
	}
	return now
}

// take decodes the workload's next group.
func (d *dispatcher) take(a *arrival) bool {
	p, err := d.ahead.Take(&a.work, d.g.kinds)
	switch {
	case err == nil:
		a.batch = p
		if due := d.ledger.RecordGroup(a.work.Delay); d.paced {
			a.due = due
		}
		return true
	case errors.Is(err, plugin.ErrEnded):
		d.ledger.End()
		d.g.streamEnded()
	case errors.Is(err, ErrStopped):
	default:
		d.g.fail(err)
	}
	return false
}

// nextDue returns when the next arrival is due, by a schedule that was changed so often.
func (d *dispatcher) nextDue() (at int64, changes int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	due, ok := d.schedule.Next()
	return d.origin + int64(due), d.changes, ok
}

// until waits for a time; it returns false when the schedule has changed or the group stopped.
func (d *dispatcher) until(due, now int64) bool {
	if left := time.Duration(due - now); left > coarse {
		if !d.sleep(left - coarse*3/4) {
			return false
		}
		now = d.g.clock.now()
	}
	if due > now {
		d.waiter.Wait(time.Duration(due - now))
	}
	return !d.g.stopped()
}

// sleep returns false when it was woken.
func (d *dispatcher) sleep(t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.changed:
	case <-d.g.stopping:
	}
	return false
}

// change replaces what follows of the schedule, from now on.
func (d *dispatcher) change(now int64, legs []loadarrival.Leg) {
	if d.paced {
		return
	}
	d.mu.Lock()
	d.ledger.Change(d.schedule, now, legs)
	d.changes++
	d.mu.Unlock()
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// rate is the rate on the schedule now, in operations per second; ok is false when the workload paces itself.
func (d *dispatcher) rate(now int64) (rate float64, ok bool) {
	if d.paced {
		return 0, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.schedule.Rate(time.Duration(max(now-d.origin, 0))), true
}

// ended closes the queue. What was due when the load stopped and was never
// offered, of which a may be the first, is dropped.
func (d *dispatcher) ended(a *arrival, ready bool) {
	d.waiter.Close()
	d.leave(a, ready)
	d.queue.close()
	d.g.mu.Lock()
	d.g.dispatching = false
	d.g.checkDone()
	d.g.mu.Unlock()
}

// leave drops what is left of the schedule.
func (d *dispatcher) leave(a *arrival, ready bool) {
	d.mu.Lock()
	until := d.stopped
	d.mu.Unlock()
	for ; d.paced && ready && a.due <= until; ready = d.take(a) {
		d.queue.drop(a, droppedUndispatched)
	}
	if ready {
		a.batch.Release()
	}
	if d.paced || d.ledger.Over() {
		return // there is no operation for what would be due
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for due, ok := d.schedule.Next(); ok && d.origin+int64(due) <= until; due, ok = d.schedule.Next() {
		d.schedule.Take()
		d.queue.count(d.origin+int64(due), droppedUndispatched)
	}
}
