package targettest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// Trivial is a driver of a database that keeps nothing and finds one row for each
// operation: all that a third kind of database needs to be one, and nothing more.
// Executed counts what its connections were asked.
type Trivial struct{ Executed atomic.Int64 }

// Name implements target.Driver.
func (*Trivial) Name() string { return "trivial" }

// Open implements target.Driver.
func (d *Trivial) Open(target.Config) (target.Database, error) { return trivialDatabase{d}, nil }

type trivialDatabase struct{ d *Trivial }

func (trivialDatabase) Check(context.Context) (target.ServerInfo, error) {
	return target.ServerInfo{Version: "1", Local: true, MaxConnections: 100}, nil
}

func (trivialDatabase) Query(context.Context, string, ...any) (*target.ResultSet, error) {
	return &target.ResultSet{}, nil
}

func (trivialDatabase) Exec(context.Context, ...string) error { return nil }

func (trivialDatabase) Load(_ context.Context, _ string, _ []engine.Column, next func() (plugin.Rows, error),
	progress func(int64)) (int64, error) {
	var rows int64
	for {
		r, err := next()
		if err != nil || r == nil {
			return rows, err
		}
		rows += int64(r.Len())
		progress(rows)
	}
}

func (b trivialDatabase) Connect(context.Context, []engine.Statement) (target.Conn, error) {
	return &trivialConn{d: b.d}, nil
}

func (trivialDatabase) Classify(err error) engine.ExecutionError {
	return engine.ExecutionError{Class: engine.ErrClassOther, Message: err.Error()}
}

func (trivialDatabase) Close() error { return nil }

type trivialConn struct {
	d      *Trivial
	closed atomic.Bool
}

func (c *trivialConn) Exec(ctx context.Context, _ *plugin.Batch, _ plugin.Op, res *target.Result) error {
	if c.closed.Load() {
		return errors.New("the connection is closed")
	}
	c.d.Executed.Add(1)
	*res = target.Result{Rows: 1}
	return ctx.Err()
}

func (c *trivialConn) Broken() bool               { return c.closed.Load() }
func (*trivialConn) Cancel(context.Context) error { return nil }
func (c *trivialConn) Close() error               { c.closed.Store(true); return nil }
