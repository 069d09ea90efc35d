package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// slot is one connection's place in the group: it keeps its id, its sequence
// and its counters while connections come and go.
type slot struct {
	id  uint32
	rec recorder

	// conn is used by the slot's driver; others (Drain) reach it under mu.
	mu   sync.Mutex
	conn target.Conn

	batch *private
	work  group
	// In an open loop, what the slot was handed and how it is woken: true with
	// an arrival, false to leave.
	arrival arrival
	handed  chan bool
	res     target.Result
	seq     uint32
	ended   int64 // end of the last operation
	// lastError is the dictionary's id of the slot's last error.
	lastError uint32

	// retire is closed to make the slot leave after its operation.
	retire chan struct{}
	// Guarded by Group.mu.
	retired bool
	lostIn  int64 // the window of losses that counts this slot

	// Read by Totals at any time.
	started, succeeded, failed, warmup atomic.Int64
	timer                              *time.Timer
}

// next puts the slot's next group of operations into s.work. It returns false
// when the stream has ended or failed.
func (s *slot) next(g *Group) bool {
	s.work.delay = 0
	for {
		ok, err := s.batch.take(&s.work, g.kinds)
		if ok {
			return true
		}
		if err != nil {
			g.fail(&engine.Error{Code: engine.CodePlugin, Cause: err, Message: "The workload plugin failed: " + strings.TrimRight(err.Error(), ".") + ".",
				Hint: "It asked for something that its own statement list does not contain."})
			return false
		}
		if s.batch, err = g.source.refill(s.batch); err != nil {
			if errors.Is(err, plugin.ErrEnded) {
				g.streamEnded()
			} else {
				g.fail(err)
			}
			return false
		}
	}
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

// flying reports whether an operation is in flight.
func (s *slot) flying() bool {
	ended := s.succeeded.Load() + s.failed.Load()
	return s.started.Load() > ended
}

// leaving reports whether the slot should take no further operation.
func (s *slot) leaving(g *Group) bool {
	select {
	case <-g.stopping:
		return true
	case <-s.retire:
		return true
	default:
		return false
	}
}

// execute runs the group in s.work on the slot's connection and records it.
func (s *slot) execute(g *Group) {
	chunk, rec := s.rec.place()
	begin := g.clock.now()
	due, lag, wait := begin, int64(0), int64(0)
	if g.queue != nil {
		due = s.arrival.due
		lag, wait = s.arrival.split(begin)
	}
	warm := due < g.measured.Load()
	s.started.Add(1)
	if warm {
		s.warmup.Add(1)
	}
	err := s.run(g, &s.res)
	end := g.clock.now()
	rec.DueAt, rec.StartedAt, rec.Elapsed = due, begin, end-due
	rec.ScheduleLag, rec.PoolWait = lag, wait
	rec.Seq, rec.ConnectionID = s.seq, s.id
	rec.Rows, rec.Statement, rec.Step, rec.Retries = s.res.Rows, s.work.statement, 0, 0
	rec.Kind, rec.Warmup = s.work.kind, warm
	if err == nil {
		rec.Success, rec.ErrorID = true, 0
		s.succeeded.Add(1)
	} else {
		s.lastError = g.errorID(err)
		rec.Success, rec.ErrorID = false, s.lastError
		s.failed.Add(1)
	}
	s.rec.publish(chunk)
	s.seq++
	s.ended = end
}

// run executes one operation, or a transaction whole. A transaction that fails is rolled back.
func (s *slot) run(g *Group, res *target.Result) error {
	b := &s.batch.batch
	if len(s.work.ops) == 1 {
		return s.conn.Exec(g.ctx, b, s.work.ops[0], res)
	}
	var rows int32
	for i, op := range s.work.ops {
		if err := s.conn.Exec(g.ctx, b, op, res); err != nil {
			res.Rows = rows
			if i > 0 && !s.conn.Broken() {
				var ignored target.Result
				_ = s.conn.Exec(g.ctx, b, plugin.Op{Statement: plugin.StatementRollback}, &ignored) // the first error is the cause
			}
			return err
		}
		if op.Statement < plugin.StatementBegin {
			rows += res.Rows
		}
	}
	res.Rows = rows
	return nil
}

const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// connect opens the slot's connection, trying until it succeeds or the slot
// should leave. It waits for pause first; the pauses double, with jitter so that a
// thousand slots do not knock at once.
func (s *slot) connect(g *Group, pause time.Duration) bool {
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
		if pause > 0 && !s.wait(g, g.clock.now()+int64(pause/2+rand.N(pause))) {
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
			g.connectionOpened()
			return true
		}
		if s.leaving(g) {
			return false
		}
		g.reopenFailed(err)
		pause = max(firstBackoff, min(2*pause, maxBackoff))
	}
}

// renew closes a connection that is in order and opens another.
func (s *slot) renew(g *Group) bool {
	s.drop()
	g.mu.Lock()
	g.open--
	g.mu.Unlock()
	return s.connect(g, 0)
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
	if conn != nil {
		_ = conn.Close() // nothing to do about a connection that is being given up
	}
}
