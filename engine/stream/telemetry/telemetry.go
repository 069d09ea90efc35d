// Package telemetry is what the product tells about itself as streams: sources of the type SYSTEM. Whoever tells waits
// for nobody, and where no query reads nothing is made. A query that cannot keep up is told so and fails; no row is
// lost without that.
package telemetry

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/loadstone-db/loadstone/engine/statement"
	"github.com/loadstone-db/loadstone/engine/stream/column"
	"github.com/loadstone-db/loadstone/engine/stream/feed"
)

// ahead is how many batches a stream may be ahead of a query.
const ahead = 256

// Hub brings rows from who tells them to the queries that read them. The zero value is ready; it is safe for concurrent
// use.
type Hub struct {
	mu      sync.Mutex
	readers map[string]map[*reader]bool
	// some says by stream that somebody reads.
	some [len(feed.Streams)]atomic.Int32
}

// reader is a query that reads a stream.
type reader struct {
	hub     *Hub
	stream  string
	columns []column.Column
	batches chan *column.Batch
	behind  atomic.Bool
}

func index(stream string) int {
	for i, s := range feed.Streams {
		if s == stream {
			return i
		}
	}
	return -1
}

// Wanted reports whether a query reads a stream; it costs nothing to ask. Nobody reads one of a nil Hub.
func (h *Hub) Wanted(stream string) bool {
	i := index(stream)
	return h != nil && i >= 0 && h.some[i].Load() > 0
}

// Tell gives the queries that read a stream a batch. fill appends rows of its columns, and is called for each query.
func (h *Hub) Tell(stream string, fill func(b *column.Batch)) {
	if !h.Wanted(stream) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.readers[stream] {
		b := &column.Batch{}
		b.Reset(r.columns)
		if fill(b); b.N == 0 {
			continue
		}
		select {
		case r.batches <- b:
		default:
			r.behind.Store(true)
			r.leave() // it has what came before, and fails then
		}
	}
}

// Open begins to read a stream that feed.Streams has. columns are those of its logical source.
func (h *Hub) Open(stream string, columns []column.Column) feed.Source {
	r := &reader{hub: h, stream: stream, columns: columns, batches: make(chan *column.Batch, ahead)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers == nil {
		h.readers = map[string]map[*reader]bool{}
	}
	if h.readers[stream] == nil {
		h.readers[stream] = map[*reader]bool{}
	}
	h.readers[stream][r] = true
	h.some[index(stream)].Add(1)
	return r
}

// leave ends the reading; the hub is locked.
func (r *reader) leave() {
	if !r.hub.readers[r.stream][r] {
		return
	}
	delete(r.hub.readers[r.stream], r)
	r.hub.some[index(r.stream)].Add(-1)
	close(r.batches)
}

// Read implements feed.Source. It waits for rows; what was told before Close is read to its end.
func (r *reader) Read(b *column.Batch) error {
	next, more := <-r.batches
	switch {
	case more:
		*b = *next
		return nil
	case r.behind.Load():
		return statement.Errorf(statement.Overloaded, "", -1, "let it read or do less, or add ON OVERFLOW DROP",
			"the query cannot keep up with %s: %d batches were waiting", r.stream, ahead)
	}
	return io.EOF
}

// Malformed implements feed.Source.
func (r *reader) Malformed() int64 { return 0 }

// Close implements feed.Source. It may be called again.
func (r *reader) Close() error {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	r.leave()
	return nil
}
