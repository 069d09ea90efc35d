// Package postgres writes the rows of a continuous query into a table of Postgres, each of them once.
//
// Rows are collected, and written in transactions: BEGIN, which returns the transaction's number, COPY, COMMIT. Until
// COMMIT is sent, whatever breaks leaves nothing behind, and the rows are written again. Where the answer to COMMIT
// does not come, the server is asked what became of the transaction of that number, and the rows are written again only
// if it says that nothing did. A crash may lose a number that was given out but not flushed, and give it out again;
// when the server was started anew meanwhile, rows of that number have to be in the table besides.
//
// While the server is gone it is tried again for two minutes; who writes waits, with at most two transactions' rows.
package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine/base/backoff"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

const (
	// batchDelay is how long rows wait for others to share their transaction.
	batchDelay = 200 * time.Millisecond
	// stallTimeout is how long an attempt to write a transaction's rows may stand still: no row is taken, or a statement
	// is not answered.
	stallTimeout = 30 * time.Second
	// minBackoff and maxBackoff are how far attempts are apart.
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// DefaultRetryTimeout is how long a server is tried that is gone: longer than a restart, a failover or a minute's
// outage takes.
const DefaultRetryTimeout = 2 * time.Minute

// Options are what a sink is made of.
type Options struct {
	Dial Dial
	// Schema and Table name the table.
	Schema, Table string
	Columns       []column.Column
	// RetryTimeout is how long a server is tried that is gone; 0 is DefaultRetryTimeout.
	RetryTimeout time.Duration
	// OnAttempt, if it is set, is told why an attempt has failed that is followed by another one, and nil when there is
	// nothing to wait for any more.
	OnAttempt func(error)
	// MaxBytes is how many bytes of rows a transaction has, but for the batch that is added last; 0 is 4 MiB.
	MaxBytes int
}

// Sink implements connector.Sink. Write, Close and Failed are for one goroutine.
type Sink struct {
	o    Options
	into string // COPY …
	at   Table
	ctx  context.Context
	end  context.CancelFunc
	conn *pgconn.PgConn
	// serverID names the incarnation of the server that conn leads to; empty: it is not known.
	serverID string

	mu      sync.Mutex
	changed sync.Cond
	filling *batch
	spare   *batch
	// held is how many bytes both batches take.
	held int
	// waiting is how many rows a Write has that waits for room.
	waiting int
	// due: rows in filling have waited long enough; closing: there will be no more.
	due, closing bool
	err          error
	failed, done chan struct{}
}

// Open connects, compares the table with the columns, and begins to write. The sink ends when ctx does, with what it
// has not written; Close writes that first. The error is a *sql.Error: an InvalidConfig stays, a NetworkError may
// not.
func Open(ctx context.Context, o Options) (*Sink, error) {
	if o.RetryTimeout == 0 {
		o.RetryTimeout = DefaultRetryTimeout
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.OnAttempt == nil {
		o.OnAttempt = func(error) {}
	}
	s := &Sink{o: o, filling: &batch{}, spare: &batch{}, failed: make(chan struct{}), done: make(chan struct{})}
	s.changed.L = &s.mu
	opening, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	if err := s.connect(opening); err != nil {
		return nil, explain(err)
	}
	var err error
	if s.at, err = describe(opening, s.conn, o.Schema, o.Table); err == nil {
		s.into, err = copyInto(s.at, o.Columns)
	}
	if err != nil {
		closeConn(s.conn)
		return nil, explain(err)
	}
	s.ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, s.end)
	go func() {
		defer close(s.done)
		defer stop()
		s.writing()
	}()
	return s, nil
}

func copyInto(t Table, columns []column.Column) (string, error) {
	names, err := t.Fit(columns)
	if err != nil {
		return "", err
	}
	text := []byte("COPY " + t.Quoted() + " (")
	for i, n := range names {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(text, Quote(n)...)
	}
	return string(append(text, ") FROM STDIN"...)), nil
}

// Write implements connector.Sink. It waits while as many rows as it holds have not been written.
func (s *Sink) Write(b *column.Batch) error {
	if b.N == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = b.N
	for s.full() && s.err == nil {
		s.changed.Wait()
	}
	s.waiting = 0
	if s.err != nil {
		return s.err
	}
	if s.filling.rows == 0 {
		of := s.filling
		time.AfterFunc(batchDelay, func() { s.expire(of) })
	}
	before := cap(s.filling.text)
	err := s.filling.add(s.o.Columns, b)
	s.held += cap(s.filling.text) - before
	s.changed.Broadcast()
	var unfit *sql.Error
	if errors.As(err, &unfit) {
		unfit.Message = fmt.Sprintf("%d rows were not written to %s: %s", b.N, s.at.Shown(), unfit.Message)
	}
	return err
}

// Held implements connector.Holding.
func (s *Sink) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// expire has rows written that have waited for others.
func (s *Sink) expire(of *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.filling == of {
		s.due = true
		s.changed.Broadcast()
	}
}

// Failed is closed when rows could not be written, though nobody writes: Close says why.
func (s *Sink) Failed() <-chan struct{} { return s.failed }

// Close implements connector.Sink: it writes what is left, unless the query was stopped.
func (s *Sink) Close() error {
	s.mu.Lock()
	s.closing = true
	s.changed.Broadcast()
	s.mu.Unlock()
	<-s.done
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	return nil
}

// writing writes what was collected, until there is no more, it can not be written, or the query is stopped.
func (s *Sink) writing() {
	wake := context.AfterFunc(s.ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer wake()
	defer func() {
		if s.conn != nil {
			closeConn(s.conn)
		}
	}()
	for {
		s.mu.Lock()
		for s.ctx.Err() == nil && !s.closing && !s.readyToSend() {
			s.changed.Wait()
		}
		if s.ctx.Err() != nil && s.err == nil {
			s.err = s.ctx.Err()
		}
		if s.err != nil || s.filling.rows == 0 {
			s.changed.Broadcast()
			s.mu.Unlock()
			return
		}
		b := s.filling
		s.filling, s.spare, s.due = s.spare, nil, false
		s.changed.Broadcast()
		s.mu.Unlock()
		unclear, err := s.write(b)
		s.mu.Lock()
		if err != nil {
			if s.err = err; s.ctx.Err() == nil {
				s.err = s.retryTimeoutError(err, b.rows, unclear)
			}
			close(s.failed)
		}
		if b.text, b.rows = b.text[:0], 0; cap(b.text) > 2*s.o.MaxBytes { // of rows that are longer than others
			s.held -= cap(b.text)
			b.text = nil
		}
		s.spare = b
		s.mu.Unlock()
	}
}

// readyToSend reports whether rows are to go out. It needs mu.
func (s *Sink) readyToSend() bool { return s.filling.rows > 0 && (s.due || s.full()) }

// full reports whether no more rows fit into a transaction. It needs mu.
func (s *Sink) full() bool { return len(s.filling.text) >= s.o.MaxBytes }

// write writes a transaction's rows, and tries again while the server is gone. unclear says that they may be written
// though there is an error.
func (s *Sink) write(b *batch) (unclear bool, err error) {
	begun, again := time.Now(), backoff.Backoff{Min: minBackoff, Max: maxBackoff}
	defer s.o.OnAttempt(nil)
	var last *transaction
	for {
		err := s.attempt(b, &last)
		switch {
		case err == nil:
			return false, nil
		case s.ctx.Err() != nil:
			return last != nil, s.ctx.Err()
		case isPermanent(err) || time.Since(begun) > s.o.RetryTimeout:
			return last != nil, err
		}
		s.o.OnAttempt(attemptError{err})
		if s.conn != nil && s.conn.IsClosed() {
			s.conn = nil
		}
		again.Wait(s.ctx) // where that ends the next attempt says so
	}
}

// attempt writes the rows once, unless a transaction of which that was not known has written them.
func (s *Sink) attempt(b *batch, unclear **transaction) error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	stalled := time.AfterFunc(stallTimeout, cancel)
	defer stalled.Stop()
	goesOn := func() { stalled.Reset(stallTimeout) }
	if s.conn == nil || s.conn.IsClosed() {
		if err := s.connect(ctx); err != nil {
			return err
		}
	}
	if *unclear != nil {
		there, err := s.committed(ctx, **unclear)
		if err != nil || there {
			return err
		}
		*unclear = nil
	}
	t, err := s.begin(ctx)
	if err != nil {
		return s.rollback(ctx, err)
	}
	goesOn()
	if _, err := s.conn.CopyFrom(ctx, &progressReader{bytes.NewReader(b.text), goesOn}, s.into); err != nil {
		return s.rollback(ctx, err)
	}
	goesOn()
	open, err := s.commit(ctx)
	if open {
		*unclear = &t
	}
	return err
}

// progressReader tell whenever rows go on.
type progressReader struct {
	io.Reader
	onProgress func()
}

func (p *progressReader) Read(b []byte) (int, error) {
	p.onProgress()
	return p.Reader.Read(b[:min(len(b), 8<<10)])
}

// connect dials, and asks which incarnation of the server answers.
func (s *Sink) connect(ctx context.Context) (err error) {
	if s.conn, err = s.o.Dial(ctx); err != nil {
		s.conn = nil
		return err
	}
	s.serverID = incarnation(ctx, s.conn)
	return nil
}

// failure is what a query ends with.
func failure(kind sql.Kind, message, hint string, cause error) error {
	e := sql.Errorf(kind, "", -1, hint, "%s", message)
	e.Cause = cause
	return e
}

func mismatchFailure(message, hint string, cause error) error {
	return failure(sql.InvalidConfig, message, hint, cause)
}
