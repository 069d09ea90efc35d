package connector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/backoff"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Source is a physical source that is open. One goroutine reads.
type Source interface {
	// Read replaces the rows of a batch by the next ones, of which there may be none for the moment. It returns io.EOF
	// when there will be no more.
	Read(b *column.Batch) error
	// Malformed is how many rows were left out until now, since they did not fit the schema. Any goroutine may ask.
	Malformed() int64
	// Close ends a Read that waits.
	Close() error
}

// Metered is a Source of which a query may read only as much as its part of the processors allows.
type Metered interface {
	Source
	// Took is told how much processor time rows have taken, and returns how long to wait before the next ones. With an
	// error the query has to end, though it has not come to the end of what it has read.
	Took(d time.Duration) (wait time.Duration, err error)
}

// Partial is a Source that has of a stream only what a worker tells of itself.
type Partial interface {
	Source
	// SetRemote says from which other workers the query has the rest. It is called before the first Read.
	SetRemote(has func(worker string) bool)
}

// Waiting is an optional ability of a Source: it says what it waits for, and tries again; empty where it does not. Any
// goroutine may ask.
type Waiting interface {
	Waiting() string
}

type file struct {
	*rows
	io.Closer
}

// Read returns no rows after a while in which none came.
func (f *file) Read(b *column.Batch) error {
	err := f.rows.Read(b)
	if errors.Is(err, errNoData) {
		return nil
	}
	return err
}

// idleTimeout is how long a socket may have nothing before the rows that came are passed on, and how long a row waits
// while others come.
const idleTimeout = 100 * time.Millisecond

// connectTimeout is how long a connection may take.
const connectTimeout = 10 * time.Second

// Dial connects to an address, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Open opens a source of the type FILE or TCP; dial may refuse addresses, and nil refuses none.
func Open(ctx context.Context, kind string, c Config, columns []column.Column, folder *Folder, dial Dial) (Source,
	error) {
	switch kind {
	case File:
		f, err := folder.open(c.String("SOURCE.FILE_PATH"), os.O_RDONLY)
		if err != nil {
			return nil, err
		}
		if !c.Bool("SOURCE.FOLLOW") {
			return &file{newRows(f, columns, c), f}, nil
		}
		follow := &followedFile{File: f, folder: folder, name: c.String("SOURCE.FILE_PATH"), closed: make(chan struct{})}
		to := &file{newRows(follow, columns, c), follow}
		to.batchTimeout = idleTimeout
		return to, nil
	case TCP:
	default:
		return nil, fmt.Errorf("a source of the type %s %w: it needs a server", kind, ErrPath)
	}
	address := net.JoinHostPort(c.String("SOURCE.SOCKET_HOST"), strconv.FormatInt(c.Int("SOURCE.SOCKET_PORT"), 10))
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	s := &socket{address: address, dial: dial, reconnects: c.Bool("SOURCE.RECONNECT"), header: c.Bool("PARSER.HEADER"),
		wait: backoff.Backoff{Min: minReconnectDelay, Max: maxReconnectDelay}}
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.conn = conn
	s.rows = newRows(&quietConn{conn}, columns, c)
	s.torn = s.reconnects
	s.batchTimeout = idleTimeout
	return s, nil
}

// quietConn reads from a connection, which may be quiet for as long as it likes.
type quietConn struct{ net.Conn }

func (p *quietConn) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(idleTimeout)); err != nil {
		return 0, err
	}
	n, err := p.Conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errNoData
	}
	return n, err
}

// The pauses before a peer is connected to again.
const (
	minReconnectDelay = 250 * time.Millisecond
	maxReconnectDelay = 15 * time.Second
)

// socket reads from a peer, and connects to it again when it has ended the connection, or that broke.
type socket struct {
	*rows
	address            string
	dial               Dial
	reconnects, header bool
	wait               backoff.Backoff
	// life ends with Close.
	life    context.Context //nolint:containedctx // of the waits between connections
	end     context.CancelFunc
	waiting atomic.Pointer[string]

	mu   sync.Mutex
	conn net.Conn
}

// connect opens a connection.
func (s *socket) connect(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := s.dial(ctx, "tcp", s.address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", s.address, err)
	}
	return conn, nil
}

// Read returns no rows after a while in which none came, and while there is no connection.
func (s *socket) Read(b *column.Batch) error {
	err := s.rows.Read(b)
	switch {
	case errors.Is(err, errNoData):
		return nil
	case err == nil:
		s.wait.Reset() // a peer that ends each connection at once is not asked again and again
		return nil
	case !s.reconnects || s.life.Err() != nil:
		return err
	}
	return s.reconnect(err)
}

// reconnect waits, and connects again; lost is why the connection ended, or could not be made. Without a connection the
// next Read goes on with it.
func (s *socket) reconnect(lost error) error {
	why := "the peer " + s.address + " has ended the connection"
	if !errors.Is(lost, io.EOF) {
		why = "the connection to " + s.address + " was lost: " + lost.Error()
	}
	s.tell(why + "; it is connected to again")
	pause := backoff.Jitter(s.wait.Next())
	select {
	case <-s.life.Done():
		return lost
	case <-time.After(pause):
	}
	conn, err := s.connect(s.life)
	switch {
	case errors.Is(err, egress.ErrRefused):
		return err
	case err != nil:
		s.failed = err // of the next Read
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		_ = conn.Close()
		return lost
	}
	_ = s.conn.Close()
	s.conn = conn
	s.lines = lines{r: &quietConn{conn}, delimiter: s.delimiter, field: s.field, torn: s.torn, buffer: s.buffer}
	s.skip = s.header
	s.tell("")
	return nil
}

func (s *socket) tell(what string) { s.waiting.Store(&what) }

// Waiting implements Waiting.
func (s *socket) Waiting() string {
	if what := s.waiting.Load(); what != nil {
		return *what
	}
	return ""
}

// Close implements Source.
func (s *socket) Close() error {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn.Close()
}

// followedFile is a file that grows: what is behind its last line comes when that is whole. It is not followed into
// another file, nor into what was written after it was emptied: rows would be lost or come twice, and nobody would
// know.
type followedFile struct {
	*os.File
	folder *Folder
	name   string
	read   int64
	once   sync.Once
	closed chan struct{}
}

// Read implements io.Reader. It returns errNoData after a while in which the file has not grown.
func (f *followedFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	if n == 0 && errors.Is(err, io.EOF) {
		changed := f.changed()
		// What was written before that is read first.
		if n, err = f.File.Read(b); n == 0 && errors.Is(err, io.EOF) && changed != nil {
			return 0, changed
		}
	}
	f.read += int64(n)
	if n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	select {
	case <-time.After(idleTimeout):
		return 0, errNoData
	case <-f.closed:
		return 0, os.ErrClosed
	}
}

// changed says why the file is not the one any more that was opened.
func (f *followedFile) changed() error {
	const hint = "DROP the query and CREATE it again: it reads the file that is there, from its beginning"
	open, err := f.Stat()
	if err != nil {
		return err
	}
	if open.Size() < f.read {
		return sql.Errorf(
			sql.NetworkError,
			"",
			-1,
			hint,
			"the file %q was truncated while it was followed: it has %d bytes, "+
				"and %d were read",
			f.name,
			open.Size(),
			f.read,
		)
	}
	there, err := f.folder.root.Lstat(path.Clean(f.name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sql.Errorf(sql.NetworkError, "", -1, hint,
			"the file %q was removed, or renamed, while it was followed: %d bytes were read", f.name, f.read)
	case err != nil:
		return fmt.Errorf("looking at %q: %w", f.name, err)
	case !os.SameFile(open, there):
		return sql.Errorf(sql.NetworkError, "", -1, hint,
			"another file was put in the place of %q while it was followed: %d bytes were read of the one before", f.name,
			f.read)
	}
	return nil
}

// Close implements Source.
func (f *followedFile) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.File.Close()
}
