package load

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker/load/record"
)

// fakeStream makes point lookups; limit 0 is endless.
type fakeStream struct {
	mu      sync.Mutex
	made    int
	limit   int
	failAt  int
	failure error
	think   time.Duration
	group   bool // transactions of two statements
}

func (s *fakeStream) Fill(b *plugin.Batch, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.Reset()
	if s.failure != nil && s.made >= s.failAt {
		return s.failure
	}
	for len(b.Ops)+4 <= n {
		if s.limit > 0 && s.made >= s.limit {
			if len(b.Ops) == 0 {
				return plugin.ErrEnded
			}
			return nil
		}
		if s.think > 0 {
			b.Ops = append(b.Ops, plugin.Op{Statement: plugin.StatementDelay, Delay: s.think})
		}
		op := plugin.Op{Statement: 0, FirstArg: uint32(len(b.Args)), NArgs: 1}
		b.Args = append(b.Args, plugin.Value{Type: engine.TypeI64, I: int64(s.made)})
		if s.group {
			b.Ops = append(b.Ops, plugin.Op{Statement: plugin.StatementBegin}, op, plugin.Op{Statement: plugin.StatementCommit})
		} else {
			b.Ops = append(b.Ops, op)
		}
		s.made++
	}
	return nil
}

func (s *fakeStream) Close() error { return nil }

var (
	errServer = errors.New("the server says no")
	errEOF    = io.EOF
)

// fakeDB is a database whose connections behave as its hooks say.
type fakeDB struct {
	latency func() time.Duration
	// fail returns an operation's error and whether it breaks the connection.
	fail func() (error, bool)
	// loses says of which operation the answer never comes.
	loses func(statement uint16) bool
	// refuse makes Connect fail.
	refuse atomic.Bool
	// hang makes Exec wait for Cancel or Close; deaf ignores Cancel, and stuck both, until it is closed.
	hang, deaf atomic.Bool
	stuck      chan struct{}

	queries atomic.Int64 // for their ids

	mu     sync.Mutex
	open   int
	opened int
	seen   map[int64]int // executions by argument
}

func (d *fakeDB) Connect(ctx context.Context, _ []engine.Statement) (target.Conn, error) {
	if d.refuse.Load() {
		return nil, &engine.Error{Code: engine.CodeTarget, Message: "Nothing accepts connections."}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open++
	d.opened++
	return &fakeConn{db: d, wake: make(chan struct{}, 1), gone: make(chan struct{})}, nil
}

func (d *fakeDB) Classify(err error) engine.ExecutionError {
	switch {
	case errors.Is(err, io.EOF):
		return engine.ExecutionError{Class: engine.ErrClassConnection, Code: "connection_lost",
			Message: "the server closed it"}
	case errors.Is(err, errSerialization):
		return engine.ExecutionError{Class: engine.ErrClassSerialization, Code: "40001", Message: err.Error()}
	case errors.Is(err, context.Canceled):
		return engine.ExecutionError{Class: engine.ErrClassCancelled, Code: "57014",
			Message: "canceling statement due to user request"}
	}
	return engine.ExecutionError{Class: engine.ErrClassOther, Code: "XX000", Message: err.Error()}
}

func (d *fakeDB) Check(context.Context) (target.ServerInfo, error) { return target.ServerInfo{}, nil }
func (d *fakeDB) Query(context.Context, string, ...any) (*target.ResultSet, error) {
	return &target.ResultSet{}, nil
}
func (d *fakeDB) Exec(context.Context, ...string) error { return nil }
func (d *fakeDB) Load(context.Context, string, []engine.Column, func() (plugin.Rows, error), func(int64)) (int64,
	error) {
	return 0, nil
}
func (d *fakeDB) Close() error { return nil }

type fakeConn struct {
	db     *fakeDB
	broken atomic.Bool
	once   sync.Once
	wake   chan struct{}
	gone   chan struct{}
}

func (c *fakeConn) Exec(_ context.Context, b *plugin.Batch, op plugin.Op, res *target.Result) error {
	*res = target.Result{}
	binary.BigEndian.PutUint64(res.QueryID[8:], uint64(c.db.queries.Add(1)))
	if c.db.loses != nil && c.db.loses(op.Statement) {
		c.broken.Store(true)
		return errUnanswered
	}
	if op.Statement >= plugin.StatementBegin {
		return nil
	}
	c.db.mu.Lock()
	if c.db.seen != nil {
		c.db.seen[b.Args[op.FirstArg].I]++
	}
	c.db.mu.Unlock()
	if c.db.hang.Load() {
		wake := c.wake
		if c.db.deaf.Load() {
			wake = nil
		}
		gone := c.gone
		if c.db.stuck != nil {
			wake, gone = nil, c.db.stuck
		}
		select {
		case <-wake:
			return context.Canceled
		case <-gone:
			c.broken.Store(true)
			return io.EOF
		}
	}
	if c.db.latency != nil {
		select {
		case <-time.After(c.db.latency()):
		case <-c.wake:
			return context.Canceled
		case <-c.gone:
			c.broken.Store(true)
			return io.EOF
		}
	}
	if c.db.fail != nil {
		if err, breaks := c.db.fail(); err != nil {
			c.broken.Store(breaks)
			return err
		}
	}
	res.Rows = 1
	return nil
}

func (c *fakeConn) Broken() bool { return c.broken.Load() }

func (c *fakeConn) Cancel(context.Context) error {
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

func (c *fakeConn) Close() error {
	c.once.Do(func() {
		close(c.gone)
		c.db.mu.Lock()
		c.db.open--
		c.db.mu.Unlock()
	})
	return nil
}

// memorySink keeps what it was given.
type memorySink struct {
	mu    sync.Mutex
	recs  []engine.Execution
	delay time.Duration
	err   error
}

func (s *memorySink) Write(recs []engine.Execution) error {
	if s.delay > 0 {
		time.Sleep(s.delay)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.recs = append(s.recs, recs...)
	return nil
}

func fakeConfig(db *fakeDB, stream plugin.Stream, sink record.Sink) Config {
	return Config{
		Plan: &engine.Plan{Statements: []engine.Statement{{ID: "lookup", Kind: engine.KindPointLookup,
			Binds: []engine.Bind{{Name: "id", Type: engine.TypeI64}}}}},
		Stream: stream, Database: db, Sink: sink, Log: zerolog.Nop(),
	}
}

func between(low, high time.Duration) func() time.Duration {
	return func() time.Duration { return low + rand.N(high-low+1) }
}
