package system

import (
	"io"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// limits are how far a query may be behind a stream.
type limits struct {
	batches int
	rows    int
	age     time.Duration
	// failFast has it fail without what waits.
	failFast bool
}

// limitsOf bounds what waits of a stream. Batches of executions are shared by all who read them, so that the memory is
// that of the slowest: about 50 MB.
func limitsOf(stream string) limits {
	if stream == connector.Executions {
		return limits{batches: 4096, rows: 1 << 18, age: 10 * time.Second, failFast: true}
	}
	return limits{batches: 256}
}

// reader is a query that reads a stream.
type reader struct {
	hub    *Hub
	stream string
	limits limits
	ready  chan struct{} // holds a token when something has come, or nothing follows
	// batches are the batches that the query has, by where it has them; the goroutine that reads has it.
	batches map[*column.Batch]*queuedBatch
	part    allowance
	// remote says which other nodes tell the query their part; nil: none does. lacks is since when one is known that
	// does not, lacking the run that has a run worker there. The hub's mu guards them.
	remote       func(node string) bool
	missingSince time.Time
	missing      string

	mu      sync.Mutex
	queue   []*queuedBatch
	waiting int // rows
	rows    int64
	left    bool
	failed  *sql.Error
}

// put has a batch wait, or returns why the query fails. The hub is locked.
func (r *reader) put(t *queuedBatch) *sql.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.queue); n >= r.limits.batches || r.limits.rows > 0 && n > 0 &&
		(r.waiting+t.N > r.limits.rows || t.at.Sub(r.queue[0].at) > r.limits.age) {
		return r.overloaded(t.at)
	}
	t.left.Add(1)
	r.queue, r.waiting, r.rows = append(r.queue, t), r.waiting+t.N, r.rows+int64(t.N)
	r.wake()
	return nil
}

func (r *reader) wake() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// overloaded says how far the query is behind, and what it costs.
func (r *reader) overloaded(now time.Time) *sql.Error {
	const hint = "let it read or do less, or add ON OVERFLOW DROP"
	if !r.limits.failFast {
		return sql.Errorf(sql.Overloaded, "", -1, hint,
			"the query cannot keep up with %s: %d batches were waiting", r.stream, len(r.queue))
	}
	return sql.Errorf(sql.Overloaded, "", -1, hint,
		"the query cannot keep up with %s: %d rows were waiting, the first of them for %.1f s; %s", r.stream, r.waiting,
		now.Sub(r.queue[0].at).Seconds(), r.part.figures(r.rows-int64(r.waiting), now))
}

// fail ends the query with an error. The hub is locked.
func (r *reader) fail(why *sql.Error) {
	r.mu.Lock()
	if r.failed == nil {
		r.failed = why
	}
	r.mu.Unlock()
	r.leave()
}

// leave ends the reading; the hub is locked.
func (r *reader) leave() {
	if !r.hub.readers[r.stream][r] {
		return
	}
	delete(r.hub.readers[r.stream], r)
	r.hub.readerCounts[index(r.stream)].Add(-1)
	if r.stream == connector.Executions {
		r.hub.CPUAccount().sharers.Add(-1)
	}
	r.hub.rows.removeReader(r.hub)
	r.mu.Lock()
	r.left = true
	r.mu.Unlock()
	r.wake()
}

// Read implements connector.Source. It waits for rows; what was told before Close is read to its end. The batch that it
// fills is shared with others, until it is filled again.
func (r *reader) Read(b *column.Batch) error {
	if t := r.batches[b]; t != nil {
		delete(r.batches, b)
		b.Cols = nil // others have its memory
		t.release()
	}
	for {
		t, err := r.take()
		if err != nil {
			return err
		}
		if t != nil {
			*b, r.batches[b] = t.Batch, t
			return nil
		}
		<-r.ready
	}
}

// take returns the next batch, or nothing for the moment.
func (r *reader) take() (*queuedBatch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.failed != nil && (r.limits.failFast || len(r.queue) == 0):
		r.queue = nil
		return nil, r.failed
	case len(r.queue) > 0:
		t := r.queue[0]
		r.queue[0] = nil
		r.queue, r.waiting = r.queue[1:], r.waiting-t.N
		return t, nil
	case r.left:
		return nil, io.EOF
	}
	return nil, nil
}

// Malformed implements connector.Source.
func (r *reader) Malformed() int64 { return 0 }

// Close implements connector.Source. What the query has of batches stays its own. It may be called again.
func (r *reader) Close() error {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	r.leave()
	return nil
}

// SetRemote implements connector.Partial.
func (r *reader) SetRemote(has func(node string) bool) {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	r.remote = has
}
