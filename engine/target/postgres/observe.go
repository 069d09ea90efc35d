package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

// OpenObserver implements target.Observable. Through a pooler it is refused: what is set for a session would be set for
// those of others.
func (d *database) OpenObserver(ctx context.Context, limit time.Duration) (target.Observer, error) {
	info, err := d.Check(ctx)
	if err != nil {
		return nil, err
	}
	if info.Pooled {
		return nil, &engine.Error{Code: engine.CodeUnsupported,
			Message: "A pooler stands before the server, and its sessions are not those of the run.",
			Hint:    "Let the connection lead to the server itself to see what it does."}
	}
	c, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.answer)
	defer cancel()
	set := "SET statement_timeout = " + strconv.FormatInt(limit.Milliseconds(), 10) +
		"; SET lock_timeout = " + strconv.FormatInt(max(1, limit.Milliseconds()/2), 10) +
		"; SET default_transaction_read_only = on; SET jit = off; SET max_parallel_workers_per_gather = 0" +
		"; SET idle_in_transaction_session_timeout = " + strconv.FormatInt(limit.Milliseconds(), 10)
	if d.reader != "" {
		set += "; SET ROLE " + pgx.Identifier{d.reader}.Sanitize()
	}
	if err := execAll(ctx, c, set); err != nil {
		closeQuietly(c)
		return nil, fmt.Errorf("setting the observer's session up: %w", observed(err))
	}
	return &observer{c: c, limit: limit, prepared: map[string]string{}}, nil
}

// errInTransaction is of a server that leaves a transaction open which nobody has begun.
var errInTransaction = &engine.Error{Code: engine.CodeTarget,
	Message: "The server left a transaction open that nobody has begun."}

// observer implements target.Observer.
type observer struct {
	c     *pgconn.PgConn
	limit time.Duration
	// prepared are names of statements by their SQL.
	prepared map[string]string
}

// Read implements target.Observer.
func (o *observer) Read(ctx context.Context, sql string) (*target.ResultSet, error) {
	// The server ends what takes longer than the limit; one that does not answer at all loses the connection.
	ctx, cancel := context.WithTimeout(ctx, 2*o.limit)
	defer cancel()
	o.c.Frontend().SetMaxBodyLen(target.MaxObserved)
	name, known := o.prepared[sql]
	if !known {
		name = "observe" + strconv.Itoa(len(o.prepared))
		if _, err := o.c.Prepare(ctx, name, sql, nil); err != nil {
			return nil, fmt.Errorf("preparing: %w", observed(err))
		}
		o.prepared[sql] = name
	}
	rs, err := readResult(o.c.ExecPrepared(ctx, name, nil, nil, nil), target.MaxObserved, cancel)
	if err == nil && o.c.TxStatus() != 'I' {
		closeQuietly(o.c)
		return nil, errInTransaction
	}
	return rs, observed(err)
}

// observed is an error of an observer's statement in words for the user.
func observed(err error) error {
	var known *engine.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	out := &engine.Error{Code: engine.CodeTarget, Cause: err, Message: sentence(err)}
	switch {
	case errors.Is(err, target.ErrTooLarge):
		out.Message = fmt.Sprintf("The answer has more than %d MB.", target.MaxObserved>>20)
	case errors.Is(err, context.DeadlineExceeded):
		out.Message = "The server did not answer in time."
	}
	return out
}

// Broken implements target.Observer.
func (o *observer) Broken() bool { return o.c.IsClosed() }

// Close implements target.Observer.
func (o *observer) Close() error {
	closeQuietly(o.c)
	return nil
}
