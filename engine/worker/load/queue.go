package load

import (
	"sync"
	"sync/atomic"

	"github.com/loadstone-db/loadstone/engine"
)

// arrival is a group of operations that is due.
type arrival struct {
	work  Unit
	batch *OpBatch
	// due is the time on the schedule, noticed the time at which the dispatcher
	// handed it out; ns on the group's time line.
	due, noticed int64
	// queued says that it had to wait for a connection.
	queued bool
}

// split divides the time from due to begin into what the generator caused and
// what the lack of a free connection caused. An arrival that found a free
// connection waited for nothing but the generator.
func (a *arrival) split(begin int64) (lag, wait int64) {
	if !a.queued {
		return begin - a.due, 0
	}
	return a.noticed - a.due, begin - a.noticed
}

// drop reasons.
const (
	droppedFull         = iota // max_in_flight was reached
	droppedStopped             // due, but not begun when the run was stopped
	droppedUndispatched        // due when the load stopped or its generator stood still, and never dispatched
	dropReasons
)

// queue is where an open loop's arrivals meet its free connections. Both wait
// in the order they came. It bounds how many arrivals are due and not finished;
// what comes beyond the bound is dropped and counted.
type queue struct {
	g     *Group
	limit int

	mu       sync.Mutex
	due      ring[arrival]
	idle     ring[*slot]
	inFlight int  // due and not finished
	closed   bool // no arrival will come any more

	reportedMu sync.Mutex
	reported   reportedTotals

	// dropped counts by phase (1: warm-up) and reason.
	dropped [2][dropReasons]atomic.Int64
}

func (q *queue) drop(a *arrival, reason int) {
	q.count(a.due, reason)
	a.batch.Release()
}

// count counts an arrival that is dropped.
func (q *queue) count(due int64, reason int) {
	warm := 0
	if due < q.g.measured.Load() {
		warm = 1
	}
	q.dropped[warm][reason].Add(1)
}

// drops returns the arrivals that were dropped in the warm-up and after it.
func (q *queue) drops() (warm, measured engine.Drops) {
	of := func(n *[dropReasons]atomic.Int64) engine.Drops {
		return engine.Drops{MaxInFlight: n[droppedFull].Load(), Stopped: n[droppedStopped].Load(),
			NotDispatched: n[droppedUndispatched].Load()}
	}
	return of(&q.dropped[1]), of(&q.dropped[0])
}

// offer hands an arrival to a free connection, queues it, or drops it.
func (q *queue) offer(a *arrival) {
	q.mu.Lock()
	if q.inFlight >= q.limit || q.closed {
		reason := droppedFull
		if q.closed {
			reason = droppedStopped
		}
		q.drop(a, reason)
		q.mu.Unlock()
		return
	}
	q.inFlight++
	if s, ok := q.idle.pop(); ok {
		a.queued = false
		s.arrival = *a
		q.mu.Unlock()
		s.hand(true)
		return
	}
	a.queued = true
	q.due.push(*a)
	q.mu.Unlock()
}

// next puts the oldest arrival into s.arrival, waiting for one. finished says
// that the slot has executed the one before. It returns false when the slot
// should leave: it is retired, or nothing is due any more.
func (q *queue) next(s *slot, finished bool) bool {
	switch q.take(s, finished) {
	case takenArrival:
		return true
	case takenNothing:
		return false
	}
	return <-s.handed
}

// What take gives a slot: an arrival; a place in the line, so that hand will be
// called; or nothing, and the slot should leave.
const (
	takenArrival = iota
	takenPlace
	takenNothing
)

// take is next for a slot that cannot wait.
func (q *queue) take(s *slot, finished bool) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if finished {
		q.inFlight--
	}
	if s.leave.Load() {
		return takenNothing
	}
	if a, ok := q.due.pop(); ok {
		s.arrival = a
		return takenArrival
	}
	if q.closed {
		return takenNothing
	}
	q.idle.push(s)
	return takenPlace
}

// finish notes that a slot has executed an arrival and does not want another yet.
func (q *queue) finish() {
	q.mu.Lock()
	q.inFlight--
	q.mu.Unlock()
}

// dismiss wakes a slot that waits, to leave. One that has been handed an
// arrival executes it first.
func (q *queue) dismiss(s *slot) {
	if q.withdraw(s) {
		s.hand(false)
	}
}

// close says that no arrival will come any more. What is due is still executed.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	var waiting []*slot
	for s, ok := q.idle.pop(); ok; s, ok = q.idle.pop() {
		waiting = append(waiting, s)
	}
	q.mu.Unlock()
	for _, s := range waiting {
		s.hand(false)
	}
}

// clear drops what is due and has not begun.
func (q *queue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for a, ok := q.due.pop(); ok; a, ok = q.due.pop() {
		q.drop(&a, droppedStopped)
		q.inFlight--
	}
}

// depth returns how many arrivals are due and not finished, and how many of
// them wait for a connection.
func (q *queue) depth() (inFlight, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.inFlight, q.due.n
}

// ring is a queue that keeps its memory.
type ring[T any] struct {
	items   []T
	head, n int
}

func (r *ring[T]) push(v T) {
	if r.n == len(r.items) {
		grown := make([]T, max(16, 2*r.n))
		for i := range r.n {
			grown[i] = r.items[(r.head+i)%len(r.items)]
		}
		r.items, r.head = grown, 0
	}
	r.items[(r.head+r.n)%len(r.items)] = v
	r.n++
}

func (r *ring[T]) pop() (v T, ok bool) {
	if r.n == 0 {
		return v, false
	}
	var none T
	v, r.items[r.head] = r.items[r.head], none
	r.head = (r.head + 1) % len(r.items)
	r.n--
	return v, true
}

// remove takes out the first element that matches, keeping the order of the others.
func (r *ring[T]) remove(match func(T) bool) bool {
	for i := range r.n {
		if !match(r.items[(r.head+i)%len(r.items)]) {
			continue
		}
		for ; i < r.n-1; i++ {
			r.items[(r.head+i)%len(r.items)] = r.items[(r.head+i+1)%len(r.items)]
		}
		var none T
		r.items[(r.head+r.n-1)%len(r.items)] = none
		r.n--
		return true
	}
	return false
}

// countDropped adds the arrivals and the drops of the phase and the tick to a
// snapshot. What is due and not finished is in neither count of executions yet.
func (q *queue) countDropped(s *engine.WorkerSnapshot, now int64, warm bool) {
	q.reportedMu.Lock()
	defer q.reportedMu.Unlock()
	before := &q.reported
	all, inWarmup := q.g.ledger.Scheduled(q.g.dispatcher.horizon(now))
	warmDrops, measuredDrops := q.drops()
	dropped := warmDrops.Total() + measuredDrops.Total()
	s.TickScheduled, s.TickDropped = all-before.scheduled, dropped-before.dropped
	before.scheduled, before.dropped = all, dropped
	s.Scheduled, s.Dropped = all-inWarmup, measuredDrops.Total()
	if warm {
		s.Scheduled, s.Dropped = inWarmup, warmDrops.Total()
	}
	s.InFlight, s.Waiting = q.depth()
}

// reportedTotals is what snapshots have said of an open loop so far.
type reportedTotals struct{ scheduled, dropped int64 }
