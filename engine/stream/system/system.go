// Package system is what the product tells about itself as streams: sources of the type SYSTEM. Whoever tells waits
// for nobody, and where no query reads nothing is made. Queries that read the same stream share its batches, which
// nobody changes. A query that cannot keep up is told so and fails; no row is lost without that.
//
// Most streams are told once a second. Executions come in blocks from the recorders of the run workers of this process
// (see executions.Observers): they are turned into columns once, behind the recorder, and given out when a batch is
// full, and five times a second. With each round of that goes how far all run workers have come in time, so that rows
// that lie in several recorders make no others late. Queries over executions share a part of the processors; one that
// takes more than its part waits, and fails when it is too far behind: the load has the rest.
package system

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Hub brings rows from who tells them to the queries that read them. The zero value is ready; it is safe for concurrent
// use.
type Hub struct {
	// Node names the node of this process, whose run workers tell their executions; those of others do not come here.
	Node string
	// Account is that of the process; nil is one of its own.
	Account *Account

	mu      sync.Mutex
	readers map[string]map[*reader]bool
	// readerCounts says by stream that somebody reads.
	readerCounts [len(connector.Streams)]atomic.Int32
	rows         recorderPump
	kinds        lastKinds
	own          Account
	// onMissingNode is called when a query is seen that has not the executions of a node with a run worker.
	onMissingNode atomic.Pointer[func()]
}

// CPUAccount is the account of its queries over executions.
func (h *Hub) CPUAccount() *Account {
	if h.Account != nil {
		return h.Account
	}
	return &h.own
}

// OnMissingNode has f called, which does not wait, when a query is seen that has not the executions of a node with a
// run worker, and may be given them.
func (h *Hub) OnMissingNode(f func()) { h.onMissingNode.Store(&f) }

// queuedBatch is a batch on its way to those who read it.
type queuedBatch struct {
	column.Batch
	at time.Time
	// left is how many have not read on yet, and who gives it out.
	left atomic.Int32
	// home takes it back when nobody reads it any more; nil where nobody wants it.
	home *batchPool
}

// release says that one does not need it any more.
func (t *queuedBatch) release() {
	if t.left.Add(-1) == 0 && t.home != nil {
		t.home.put(t)
	}
}

// StreamOf is the name of the stream of a source, as connector.Streams has it; "" where there is none.
func StreamOf(source string) string {
	for _, s := range connector.Streams {
		if sql.SameName(s, source) {
			return s
		}
	}
	return ""
}

func index(stream string) int {
	for i, s := range connector.Streams {
		if s == stream {
			return i
		}
	}
	return -1
}

// HasReaders reports whether a query reads a stream; it costs nothing to ask. Nobody reads one of a nil Hub.
func (h *Hub) HasReaders(stream string) bool {
	i := index(stream)
	return h != nil && i >= 0 && h.readerCounts[i].Load() > 0
}

// Publish gives the queries that read a stream a batch. fill appends rows of its columns, and is called once, or not at
// all where nobody reads.
func (h *Hub) Publish(stream string, fill func(b *column.Batch)) {
	if !h.HasReaders(stream) {
		return
	}
	t := &queuedBatch{}
	t.Reset(schemas()[stream])
	if fill(&t.Batch); t.N > 0 {
		h.broadcast(stream, t)
	}
}

// broadcast gives a batch out. It is the hub's from then on.
func (h *Hub) broadcast(stream string, t *queuedBatch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.at = time.Now()
	t.left.Store(1) // until all have it
	for r := range h.readers[stream] {
		if failed := r.put(t); failed != nil {
			r.fail(failed)
		}
	}
	t.release()
}

// Open begins to read a stream that connector.Streams has, in upper or lower case. columns are those of its
// logical source, which Fits.
func (h *Hub) Open(stream string, _ []column.Column) connector.Source {
	stream = StreamOf(stream)
	r := &reader{hub: h, stream: stream, limits: limitsOf(stream), ready: make(chan struct{}, 1),
		batches: map[*column.Batch]*queuedBatch{}, part: allowance{began: time.Now()}}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers == nil {
		h.readers = map[string]map[*reader]bool{}
	}
	if h.readers[stream] == nil {
		h.readers[stream] = map[*reader]bool{}
	}
	h.readers[stream][r] = true
	h.readerCounts[index(stream)].Add(1)
	if ofRecorders(stream) {
		h.rows.addReader(h)
	}
	if stream == connector.Executions {
		h.CPUAccount().sharers.Add(1)
		return &metered{r}
	}
	return r
}
