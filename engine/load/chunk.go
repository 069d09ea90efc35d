package load

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

const (
	// chunkSize is the number of records in a chunk (24 KB). Many recorders get
	// smaller ones: together those being filled hold fillingRecords, or smallChunk for each.
	chunkSize      = 256
	smallChunk     = 32
	fillingRecords = 64 * chunkSize
	// spareRecords is how many may wait for the Sink beyond a chunk for each
	// recorder: 25 MB, some seconds of a full speed run.
	spareRecords = 1024 * chunkSize
)

// chunkSizeFor is the size of chunks for so many recorders.
func chunkSizeFor(recorders int) int {
	return min(max(fillingRecords/max(recorders, 1), smallChunk), chunkSize)
}

// chunk is a block of records with one writer (a recorder's) and one reader (the
// collector). records[:length] are published and do not change any more.
type chunk struct {
	records []engine.Execution
	length  atomic.Uint32
	// read is the collector's own position, uses how often it has made the chunk free.
	read, uses uint32
}

// pool hands chunks to slots and takes them back from the collector. There are
// never more than its limit; when none is free the slot waits. A slot comes
// here once in a chunk's operations.
type pool struct {
	mu      sync.Mutex
	freed   sync.Cond
	free    []*chunk
	full    []*chunk
	made    int
	limit   int
	size    int // of the chunks to be made
	stalled time.Duration
	// ready holds a token when there are full chunks.
	ready chan struct{}
}

func newPool() *pool {
	p := &pool{ready: make(chan struct{}, 1)}
	p.freed.L = &p.mu
	return p
}

// resize sets the limit for a number of recorders and makes a first supply.
// The limit never falls: chunks that exist stay.
func (p *pool) resize(recorders int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if size := chunkSizeFor(recorders); p.size == 0 || size < p.size {
		p.size = size
	}
	p.limit = max(p.limit, 2*recorders+spareRecords/p.size)
	p.topUpLocked(recorders + 16)
	p.freed.Broadcast()
}

// topUp makes chunks until want are free or the limit is reached, so that
// slots do not have to.
func (p *pool) topUp(want int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.topUpLocked(want)
}

func (p *pool) topUpLocked(want int) {
	for len(p.free) < want && p.made < p.limit {
		p.made++
		p.free = append(p.free, &chunk{records: make([]engine.Execution, p.size)})
	}
}

// get takes a free chunk, waiting for one when there is none.
func (p *pool) get() *chunk {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		p.topUpLocked(1)
	}
	if len(p.free) == 0 {
		begin := time.Now()
		for len(p.free) == 0 {
			p.freed.Wait()
		}
		p.stalled += time.Since(begin)
	}
	c := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return c
}

// hand gives a chunk to the collector.
func (p *pool) hand(c *chunk) {
	p.mu.Lock()
	p.full = append(p.full, c)
	p.mu.Unlock()
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

// taken returns the oldest full chunk, or nil.
func (p *pool) taken() *chunk {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.full) == 0 {
		return nil
	}
	c := p.full[0]
	p.full = append(p.full[:0], p.full[1:]...)
	return c
}

// recycle makes a chunk that has been read free again.
func (p *pool) recycle(c *chunk) {
	c.read = 0
	c.uses++
	c.length.Store(0)
	p.mu.Lock()
	p.free = append(p.free, c)
	p.mu.Unlock()
	p.freed.Signal()
}

// takeStalled returns how long slots have waited since the last call.
func (p *pool) takeStalled() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.stalled
	p.stalled = 0
	return d
}

// recorder is the writing end of a slot, or of an event loop for all of its slots.
type recorder struct {
	pool *pool
	// current is read by the collector to see records of a chunk that is not full yet.
	current atomic.Pointer[chunk]
}

// place returns the place for the next record. It may wait for a chunk.
func (r *recorder) place() (*chunk, *engine.Execution) {
	c := r.current.Load()
	if c == nil {
		c = r.pool.get()
		r.current.Store(c)
	}
	return c, &c.records[c.length.Load()]
}

// publish makes the record that place gave visible to the collector.
func (r *recorder) publish(c *chunk) {
	n := c.length.Load() + 1
	c.length.Store(n)
	if int(n) == len(c.records) {
		r.current.Store(nil)
		r.pool.hand(c)
	}
}

// flush hands over a chunk that is not full; the writer is leaving.
func (r *recorder) flush() {
	if c := r.current.Swap(nil); c != nil {
		r.pool.hand(c)
	}
}
