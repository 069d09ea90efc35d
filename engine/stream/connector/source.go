package connector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
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

type file struct {
	*rows
	io.Closer
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
		return &file{newRows(f, columns, c), f}, nil
	case TCP:
	default:
		return nil, fmt.Errorf("a source of the type %s %w: it needs a server", kind, ErrPath)
	}
	address := net.JoinHostPort(c.String("SOURCE.SOCKET_HOST"), strconv.FormatInt(c.Int("SOURCE.SOCKET_PORT"), 10))
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	connecting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := dial(connecting, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	to := &socket{newRows(&quietConn{conn}, columns, c), conn}
	to.batchTimeout = idleTimeout
	return to, nil
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

type socket struct {
	*rows
	io.Closer
}

// Read returns no rows after a while in which none came.
func (s *socket) Read(b *column.Batch) error {
	err := s.rows.Read(b)
	if errors.Is(err, errNoData) {
		return nil
	}
	return err
}
