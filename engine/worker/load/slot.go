package load

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/backoff"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker/load/record"
)

// slot is one connection's place in the group: it keeps its id and its
// sequence while connections come and go.
//
// What every operation needs comes first. With thousands of connections a slot
// has left the processor's cache by the time its answer arrives, and each further part
// of memory to look at is a wait.
type slot struct {
	// conn is used by the slot's driver; others (Drain) reach it under mu.
	conn  target.Conn
	event eventState
	batch *OpBatch
	work  Unit
	books *counters
	id    uint32
	// leave is set, and retire closed, to make the slot leave after its operation.
	leave atomic.Bool
	// progress is that of the group in work. It was due then, began lag + waited
	// later, and warm says that it belongs to the warm-up. decoded is how long reading its answers took.
	progress                  Progress
	due, lag, waited, decoded int64
	warm                      bool
	// unproved: the group reconnects, and nothing has been answered on the connection since one was lost or refused.
	unproved bool
	step     uint16
	res      *target.Result
	seq      uint32
	ended    int64 // end of the last operation
	// lastError is the dictionary's id of the slot's last error.
	lastError uint32
	// errorText is its message as the database sent it, "" where that is not known. Only the sampler of parameters takes
	// it.
	errorText string

	// In an open loop, what the slot was handed and how it is woken: true with
	// an arrival, false to leave.
	arrival arrival
	handed  chan bool
	// seat is the slot's place in an event loop, which also drives conn while it is there.
	seat   seat
	mu     sync.Mutex
	retire chan struct{}
	// own is used where no event loop drives the slot, and loops bring theirs.
	own struct {
		counters
		res target.Result
	}
	timer *time.Timer
	// again are the pauses between attempts to open the connection.
	again backoff.Backoff
	// stale says that handed is about a connection that was lost while the slot waited.
	stale atomic.Bool
	// without is since when the slot has waited for a connection, 0 while it has one.
	without atomic.Int64
	// Guarded by Group.mu.
	retired bool
	lostIn  int64 // the window of losses that counts this slot
}

// counters are where operations are counted and recorded: those of one slot, or of
// all slots of an event loop. Totals reads the counts at any time.
type counters struct {
	started, succeeded, failed, warmup atomic.Int64
	// drawn counts what a closed loop took from the workload to execute. Nothing
	// may begin without it, nor be forgotten after it.
	drawn atomic.Int64

	rec record.Recorder
}

func (b *counters) addTo(t *engine.Totals) {
	// Ends before beginnings, so that a live reading never has more ends than beginnings.
	t.Succeeded += b.succeeded.Load()
	t.Failed += b.failed.Load()
	t.Warmup += b.warmup.Load()
	t.Started += b.started.Load()
	t.Scheduled += b.drawn.Load()
}

// next puts the slot's next group of operations into s.work. It returns false
// when the stream has ended or failed.
func (s *slot) next(g *Group) bool {
	s.batch = g.draw(s.batch, &s.work, (*OpBatch).Single)
	if s.work.Ops == nil {
		return false
	}
	s.books.drawn.Add(1)
	return true
}

// wait sleeps until the given time, or returns false when the slot should leave first.
func (s *slot) wait(g *Group, until int64) bool {
	d := time.Duration(until - g.clock.now())
	if d <= 0 {
		return true
	}
	if s.timer == nil {
		s.timer = time.NewTimer(d)
	} else {
		s.timer.Reset(d)
	}
	select {
	case <-s.timer.C:
		return true
	case <-g.stopping:
	case <-s.retire:
	}
	s.timer.Stop()
	return false
}

// leaving reports whether the slot should take no further operation.
func (s *slot) leaving(g *Group) bool { return g.halted.Load() || s.leave.Load() }

// execute runs the group in s.work on the slot's connection, again where the
// policy says so, and records it. It returns false when it must not begin.
func (s *slot) execute(g *Group) bool {
	begin, ok := s.begin(g)
	if !ok {
		return false
	}
	at := begin
	for next := s.progress.Start(s.work.Ops); next != StepDone; {
		if next == StepPause {
			if s.wait(g, at+s.pause(g)) {
				next = s.progress.Resume()
			} else {
				next = s.progress.GiveUp()
			}
			at = g.clock.now()
			continue
		}
		if g.pastDeadline(at) {
			s.cutShort(g)
			break
		}
		err := s.conn.Exec(g.ctx, &s.batch.Batch, s.progress.Op(), s.res)
		now := g.clock.now()
		next = s.answered(g, err, at, g.clock.at(s.res.FirstByte), now)
		at = now
	}
	s.record(g, begin, at)
	return true
}

// begin counts the group in s.work as started, and returns the time; false when the deadline has passed.
func (s *slot) begin(g *Group) (now int64, ok bool) {
	s.books.rec.Next() // a wait for a chunk comes before the clock starts
	now = g.clock.now()
	if g.pastDeadline(now) {
		return now, false
	}
	s.due, s.lag, s.waited, s.decoded = now, 0, 0, 0
	if g.queue != nil {
		s.due = s.arrival.due
		s.lag, s.waited = s.arrival.split(now)
	}
	s.warm = s.due < g.measured.Load()
	s.step = uint16(g.step.Load())
	g.failedInserts.Begin(&s.batch.Batch, s.work.Ops)
	s.books.started.Add(1)
	if s.warm {
		s.books.warmup.Add(1)
	}
	return now, true
}

// pause is the time before the next try, in ns.
func (s *slot) pause(g *Group) int64 {
	return int64(g.retry.Pause(int(s.progress.Tries)+1, rand.Float64()))
}

// lost reports that the connection cannot carry another group.
func (s *slot) lost() bool { return s.conn.Broken() || s.progress.Unclean }

// worn reports that the workload wants a new connection after so many operations.
func (s *slot) worn(g *Group) bool {
	every := g.cfg.Workload.ReconnectEvery
	return every > 0 && int64(s.seq)%every == 0
}

// hand wakes a slot that waits in the queue: with an arrival, or to leave.
func (s *slot) hand(arrival bool) {
	if s.seat != nil {
		s.seat.hand(s, arrival)
		return
	}
	s.handed <- arrival
}

// answered takes the result of the operation that was sent at began, in s.res;
// first is when its answer began to arrive, 0 for unknown.
func (s *slot) answered(g *Group, err error, began, first, ended int64) Step {
	decoded := int64(0)
	if first > began {
		decoded = ended - first
		s.decoded += decoded
	}
	var id uint32
	if err != nil {
		id, s.errorText = g.errorID(err, s.mayHaveCommitted(g, err))
		s.lastError = id
	}
	if s.unproved && !s.conn.Broken() {
		s.proved(g)
	}
	if s.progress.Transaction() {
		s.recordStatement(g, id, began, ended, decoded)
	}
	if err == nil {
		return s.progress.Succeeded(s.res.Rows)
	}
	retry := g.retry.Covers(g.errors.Get(id).Class) && !s.leaving(g)
	return s.progress.Fail(id, retry, s.conn.Broken(), target.TransactionOf(s.conn), &g.retry)
}

// failure is an error of the dictionary, in the database's own words where it is the last one.
func (s *slot) failure(g *Group, id uint32) engine.ExecutionError {
	e := g.errors.Get(id)
	if id != 0 && id == s.lastError && s.errorText != "" {
		e.Message = s.errorText
	}
	return e
}

// recordStatement records an operation of a transaction.
func (s *slot) recordStatement(g *Group, id uint32, began, ended, decoded int64) {
	statement, kind := s.progress.Op().Statement, engine.KindGenericSQL
	if int(statement) < len(g.kinds) {
		kind = g.kinds[statement]
	}
	chunk, rec := s.books.rec.Next()
	*rec = engine.Execution{DueAt: began, StartedAt: began, Elapsed: ended - began, Decode: decoded, Seq: s.seq,
		ConnectionID: s.id, Rows: s.res.Rows, ErrorID: id, QueryID: s.res.QueryID,
		Statement: statement, Step: s.step, Position: s.progress.Position(), Retries: s.progress.Tries, Kind: kind,
		Warmup: s.warm, Success: id == 0}
	if sampler := g.cfg.Binds; sampler.Wants(rec) {
		op := s.progress.Op()
		sampler.Record(rec, s.failure(g, id), &s.batch.Batch, []plugin.Op{op})
	}
	s.books.rec.Publish(chunk)
}

// record records the group, which began and ended at these times.
func (s *slot) record(g *Group, began, ended int64) {
	p := &s.progress
	chunk, rec := s.books.rec.Next()
	*rec = engine.Execution{DueAt: s.due, StartedAt: began, Elapsed: ended - s.due, ScheduleLag: s.lag, PoolWait: s.waited,
		Decode: s.decoded, Seq: s.seq, ConnectionID: s.id, Rows: int32(min(p.Rows, math.MaxInt32)), ErrorID: p.Failed,
		Statement: s.work.Statement, Step: s.step, Retries: p.Tries, Kind: s.work.Kind, Warmup: s.warm,
		Success: p.Failed == 0, RolledBack: p.RolledBack}
	if !p.Transaction() {
		rec.QueryID = s.res.QueryID
		g.failedInserts.Ended(&s.batch.Batch, s.work.Ops[0], p.Failed == 0, p.Rows)
	}
	if sampler := g.cfg.Binds; sampler.Wants(rec) {
		sent := s.work.Ops[:min(int(p.Position()), len(s.work.Ops))]
		sampler.Record(rec, s.failure(g, p.Failed), &s.batch.Batch, sent)
	}
	s.books.rec.Publish(chunk)
	if p.Failed == 0 {
		s.books.succeeded.Add(1)
	} else {
		s.books.failed.Add(1)
	}
	s.seq++
	s.ended = ended
}

const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
	// A group that reconnects looks for its target more often: each pause is a part of what it measures.
	firstReconnectBackoff = 50 * time.Millisecond
	maxReconnectBackoff   = time.Second
)

// pauses are those between attempts to open a connection.
func (g *Group) pauses() backoff.Backoff {
	if g.reconnects() {
		return backoff.Backoff{Min: firstReconnectBackoff, Max: maxReconnectBackoff}
	}
	return backoff.Backoff{Min: firstBackoff, Max: maxBackoff}
}

// connect opens the slot's connection, trying until it succeeds or the slot
// should leave. Where one was lost it pauses first; the pauses double, with jitter so that a
// thousand slots do not knock at once. A group that reconnects tries at once, unless the connection
// was lost before anything on it had been answered.
func (s *slot) connect(g *Group, lost bool) bool {
	pause := time.Duration(0)
	switch {
	case !lost || !g.reconnects():
		s.again = g.pauses()
		if lost {
			pause = s.again.Next()
		}
	case s.unproved:
		pause = s.again.Next()
	default:
		s.again, s.unproved = g.pauses(), true
	}
	s.without.Store(g.clock.now())
	ctx, cancel := context.WithCancel(g.ctx)
	defer cancel()
	go func() {
		select {
		case <-g.stopping:
			cancel()
		case <-s.retire:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		if pause > 0 && !s.wait(g, g.clock.now()+int64(backoff.Jitter(pause))) || g.pastDeadline(g.clock.now()) {
			return false
		}
		select {
		case g.dialing <- struct{}{}:
		case <-ctx.Done():
			return false
		}
		conn, err := g.cfg.Database.Connect(ctx, g.cfg.Plan.Statements)
		<-g.dialing
		if err == nil {
			s.mu.Lock()
			s.conn = conn
			s.mu.Unlock()
			s.without.Store(0)
			g.connectionOpened()
			return true
		}
		if s.leaving(g) {
			return false
		}
		s.unproved = g.reconnects()
		g.reopenFailed(err)
		pause = s.again.Next()
	}
}

// renew closes a connection that is in order and opens another.
func (s *slot) renew(g *Group) bool {
	s.closeConn(g)
	return s.connect(g, false)
}

// closeConn closes a connection that is in order.
func (s *slot) closeConn(g *Group) {
	s.drop()
	g.mu.Lock()
	g.open--
	g.mu.Unlock()
}

// connection returns the slot's connection, nil while it has none.
func (s *slot) connection() target.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn
}

// drop closes the slot's connection, if it has one.
func (s *slot) drop() {
	s.mu.Lock()
	conn := s.conn
	s.conn = nil
	s.mu.Unlock()
	if e, ok := conn.(target.EventConn); ok && s.seat != nil {
		s.seat = nil
		e.Detach()
		return
	}
	if conn != nil {
		_ = conn.Close() // nothing to do about a connection that is being given up
	}
}
